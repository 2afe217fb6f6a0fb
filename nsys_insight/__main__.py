"""``python -m nsys_insight`` is ``nsys-insight``."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C may be typed while it is still being imported."""
    try:
        from nsys_insight.cli.main import main as run
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
