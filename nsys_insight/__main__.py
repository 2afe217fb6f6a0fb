"""``python -m nsys_insight`` runs ``nsys-insight``."""

import gc
import sys


def main() -> None:
    """Run the command line. Ctrl-C during the import exits without a traceback."""
    # A command makes few cycles of objects: the search for them after each 700 new objects takes 25 ms of a diagnosis.
    gc.set_threshold(50_000)
    try:
        from nsys_insight.cli.main import main as run
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
