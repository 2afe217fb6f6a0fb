"""Names in a trace for shell completion: read from the SQLite file within a short time limit."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nsys_insight import cache_folder
from nsys_insight.ingest import private
from nsys_insight.ingest.files import find_neighbor
from nsys_insight.ingest.identify import REPORT_SUFFIXES
from nsys_insight.ingest.sqlite_file import open_read_only

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

# Reading stops after this time, and returns the names found so far.
_TIME_LIMIT_S = 0.2
_MAX_ROWS = 500
_CHECK_INTERVAL = 5_000  # the time is checked after this many instructions of SQLite's virtual machine


def find_export(trace: Path) -> Path | None:
    """Return the SQLite file of a trace: itself, the export next to a report, or its export in the cache."""
    if trace.suffix not in REPORT_SUFFIXES:
        return trace if trace.is_file() else None
    nearby_export = find_neighbor(trace, trace.with_suffix(".sqlite").name)
    if nearby_export and nearby_export.stat().st_mtime >= trace.stat().st_mtime:
        return nearby_export
    cached_exports = cache_folder.location().glob(f"{cache_folder.key(trace, private.CACHE_KEY_PART)}-*.sqlite")
    return max(cached_exports, default=None)


def list_range_names(export: Path) -> list[str]:
    """List the names of NVTX ranges."""
    text_column = "text" if "text" in _list_columns(export, "NVTX_EVENTS") else "NULL"
    id_column = "textId" if "textId" in _list_columns(export, "NVTX_EVENTS") else "NULL"
    return _read_names(
        export, f"SELECT DISTINCT {text_column}, {id_column} FROM NVTX_EVENTS WHERE eventType IN (59, 60, 70, 71)"
    )


def list_kernel_names(export: Path) -> list[str]:
    """List the short names of kernels."""
    return _read_names(export, "SELECT DISTINCT NULL, shortName FROM CUPTI_ACTIVITY_KIND_KERNEL")


def list_ids(export: Path, column: str) -> list[str]:
    """List the numbers that kernels have in a column."""
    return [
        str(number)
        for number, _ in _read_rows(export, f"SELECT DISTINCT {column}, NULL FROM CUPTI_ACTIVITY_KIND_KERNEL")
    ]


def _read_names(export: Path, query: str) -> list[str]:
    texts_and_ids = _read_rows(export, query)
    string_ids = ", ".join(str(int(number)) for text, number in texts_and_ids if text is None and number is not None)
    texts = (
        dict(_read_rows(export, f"SELECT id, value FROM StringIds WHERE id IN ({string_ids})")) if string_ids else {}
    )
    names = (texts.get(number) if text is None else text for text, number in texts_and_ids)
    return sorted({name for name in names if isinstance(name, str) and name})


def _list_columns(export: Path, table: str) -> set[str]:
    return {name for name, _ in _read_rows(export, f"SELECT name, NULL FROM pragma_table_info('{table}')")}


def _read_rows(export: Path, query: str) -> list[tuple[Any, Any]]:
    import sqlite3

    rows: list[tuple[Any, Any]] = []
    deadline_s = time.monotonic() + _TIME_LIMIT_S
    with suppress(sqlite3.Error), open_read_only(export) as connection:
        connection.set_progress_handler(lambda: time.monotonic() > deadline_s, _CHECK_INTERVAL)
        cursor: sqlite3.Cursor = connection.execute(query)
        for row in cursor:
            rows.append(row)
            if len(rows) >= _MAX_ROWS:
                break
    return rows
