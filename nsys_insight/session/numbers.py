"""NumPy, imported in a thread while DuckDB is at work."""

from __future__ import annotations

import os
from threading import Thread

# OpenBLAS reads it as it is loaded. Its threads would wait for work in a loop, for a tenth of a second; no matrix is
# multiplied here.
_THREADS = "OPENBLAS_NUM_THREADS"


def import_ahead() -> None:
    """Begin to import it; who imports it meanwhile waits."""
    Thread(target=_import, daemon=True).start()


def _import() -> None:
    had = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"
    try:
        import numpy  # noqa: F401, ICN001
    finally:
        if had is None:
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = had
