"""Names in a trace for a shell's completion: read at once from the SQLite file, or not at all."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nsys_insight.ingest import cache_folder, private
from nsys_insight.ingest.identify import REPORT_SUFFIXES
from nsys_insight.ingest.sqlite_file import opened

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

# Reading ends after so long, with the names that were found until then.
_SECONDS = 0.2
_MOST = 500
_INSTRUCTIONS = 5_000  # of SQLite's machine, after which it is asked whether to go on


def export_of(trace: Path) -> Path | None:
    """The SQLite file of a trace: itself, what lies beside a report, or what the cache has of it."""
    if trace.suffix not in REPORT_SUFFIXES:
        return trace if trace.is_file() else None
    beside = trace.with_suffix(".sqlite")
    if beside.is_file() and beside.stat().st_mtime >= trace.stat().st_mtime:
        return beside
    kept = cache_folder.location().glob(f"{cache_folder.key(trace, private.WITHOUT)}-*.sqlite")
    return max(kept, default=None)


def ranges(export: Path) -> list[str]:
    """Names of NVTX ranges."""
    has = "text" if "text" in _columns(export, "NVTX_EVENTS") else "NULL"
    by_id = "textId" if "textId" in _columns(export, "NVTX_EVENTS") else "NULL"
    return _names(export, f"SELECT DISTINCT {has}, {by_id} FROM NVTX_EVENTS WHERE eventType IN (59, 60, 70, 71)")


def kernels(export: Path) -> list[str]:
    """Short names of kernels."""
    return _names(export, "SELECT DISTINCT NULL, shortName FROM CUPTI_ACTIVITY_KIND_KERNEL")


def ids(export: Path, column: str) -> list[str]:
    """Numbers that kernels have in a column."""
    return [
        str(number) for number, _ in _rows(export, f"SELECT DISTINCT {column}, NULL FROM CUPTI_ACTIVITY_KIND_KERNEL")
    ]


def _names(export: Path, query: str) -> list[str]:
    found = _rows(export, query)
    numbers = ", ".join(str(int(number)) for text, number in found if text is None and number is not None)
    texts = dict(_rows(export, f"SELECT id, value FROM StringIds WHERE id IN ({numbers})")) if numbers else {}
    names = (texts.get(number) if text is None else text for text, number in found)
    return sorted({name for name in names if isinstance(name, str) and name})


def _columns(export: Path, table: str) -> set[str]:
    return {name for name, _ in _rows(export, f"SELECT name, NULL FROM pragma_table_info('{table}')")}


def _rows(export: Path, query: str) -> list[tuple[Any, Any]]:
    import sqlite3

    rows: list[tuple[Any, Any]] = []
    until = time.monotonic() + _SECONDS
    with suppress(sqlite3.Error), opened(export) as connection:
        connection.set_progress_handler(lambda: time.monotonic() > until, _INSTRUCTIONS)
        cursor: sqlite3.Cursor = connection.execute(query)
        for row in cursor:
            rows.append(row)
            if len(rows) >= _MOST:
                break
    return rows
