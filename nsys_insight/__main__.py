"""``python -m nsys_insight`` runs ``nsys-insight``."""

import gc
import sys

# Python searches for garbage in cycles after this number of new objects. Its default of 700 makes a hundred searches.
_OBJECTS_PER_SEARCH = 100_000


def main() -> None:
    """Run the command line. Ctrl-C during the import exits without a traceback."""
    gc.set_threshold(_OBJECTS_PER_SEARCH)
    try:
        from nsys_insight.cli.main import main as run
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    try:
        run()
    finally:
        gc.freeze()  # before it ends, the interpreter would search all objects several times


if __name__ == "__main__":
    main()
