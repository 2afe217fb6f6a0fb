"""``python -m nsys_insight`` runs ``nsys-insight``."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C during the import exits without a traceback."""
    try:
        from nsys_insight.cli.main import main as run
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
