"""Memory that arrays took, and no longer do."""

from __future__ import annotations

from contextlib import suppress


def give_back() -> None:
    """Let the C library give freed memory back to the system: glibc keeps what lies between parts in use.

    After a million gaps with the calls around them that is a third of a gigabyte, which DuckDB's own memory then adds
    to. Elsewhere nothing happens.
    """
    import ctypes

    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
