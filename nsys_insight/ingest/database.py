"""Open DuckDB connections, and list what attached files contain."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from nsys_insight import cache_folder
from nsys_insight.errors import InsightError, TraceError, UsageError
from nsys_insight.ingest.limits import Limits
from nsys_insight.sql.parser import take_connection
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

DEFAULT_LIMITS = Limits()
_connection_numbers = count(1)
_REASONS = ("No space left on device", "Disk quota exceeded", "File too large", "Permission denied")


def spill_folder() -> str:
    """Return the private folder of this process where queries spill and answers are exchanged with other processes.

    Raises:
        InsightError: There is no room for it, or another program has removed it.
    """
    try:
        folder = cache_folder.temporary_folder()
    except OSError as error:
        raise InsightError(
            f"there is no folder for temporary files: {error.strerror}", "name one with room in it: TMPDIR=/path"
        ) from None
    return str(folder)


def explain_spill_error(error: Exception) -> InsightError | None:
    """Return the error to show when a query could not spill to disk; None if the error has another cause."""
    import duckdb

    text, folder = str(error), cache_folder.temporary_folder()
    if not isinstance(error, duckdb.Error) or (str(folder) not in text and "temporary file" not in text):
        return None
    if not folder.is_dir() or "No such file" in text:
        return missing_spill_folder_error()
    return InsightError(
        f"this does not fit in memory, and cannot be spilled to {folder.parent}: {_find_reason(text)}",
        "name a folder with room: TMPDIR=/path; or raise the limit: --memory 8GB",
    )


def missing_spill_folder_error() -> InsightError:
    """Return the error to show when another program has removed the temporary files."""
    parent = cache_folder.temporary_folder().parent
    return InsightError(
        f"temporary files of this command are gone: something removes files in {parent}",
        "name a folder that nothing cleans up: TMPDIR=/path",
    )


def _find_reason(text: str) -> str:
    return next((reason for reason in _REASONS if reason in text), text.partition("\n")[0])


# An option for databases that are written. Their files cannot be read by DuckDB before 1.2, and take a fifth less time.
STORAGE_OPTION = "(STORAGE_VERSION 'v1.2.0')"


def connect(limits: Limits = DEFAULT_LIMITS) -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB. It spills to its own temporary folder, never next to a trace."""
    import duckdb

    connection = take_connection()
    memory, threads = limits.effective
    if not re.fullmatch(r"\s*[\d.]+\s*([KMGT]i?)?B?\s*", memory, re.IGNORECASE):
        raise _invalid_memory_error(memory)
    try:
        connection.execute(
            # Row order has no meaning in SQL. Without it the extension scans a SQLite file in parallel.
            f"""SET preserve_insertion_order = false;
                SET threads = {threads};
                SET memory_limit = {literal(memory)};
                -- Return freed memory to the machine sooner: a tenth less memory, in the same time.
                SET allocator_bulk_deallocation_flush_threshold = '64MB';
                -- For an ASOF join with a left side that it estimates to be small, DuckDB compares all pairs. Its
                -- estimates are bad.
                SET GLOBAL asof_loop_join_threshold = 0;
                -- x / 0 is NULL, as unknown values are everywhere else, instead of infinity, which no BIGINT can hold.
                SET GLOBAL ieee_floating_point_ops = false;
                -- Two databases with one spill folder use the same file names and would read each other's files.
                SET temp_directory = {literal(f"{spill_folder()}/spill-{next(_connection_numbers)}")}"""
        )
    except duckdb.Error as error:
        raise _invalid_memory_error(memory, f": {error}") from None
    # DuckDB 2 has this setting, and fails at a division by 0 without it.
    with suppress(duckdb.CatalogException):
        connection.execute("SET GLOBAL error_on_division_by_zero = false")
    # In an interactive Python session the bar would go to stdout, which is for data. In a notebook without ipywidgets
    # there is no bar, and DuckDB rejects the setting.
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")
    return connection


def _invalid_memory_error(memory: str, reason: str = "") -> UsageError:
    return UsageError(f"--memory cannot be {memory!r}{reason}", "give a size such as 512MB or 4GB")


def attach_file(connection: duckdb.DuckDBPyConnection, path: Path, name: str, *, once: bool = False) -> None:
    """Attach a DuckDB file that the user named, to read it; with `once`, only if the name is not attached yet.

    Raises:
        TraceError: Another process has it open for writing, so DuckDB does not read it.
        duckdb.Error: It cannot be read for another reason.
    """
    import duckdb

    try:
        condition = "IF NOT EXISTS" if once else ""
        connection.execute(f"ATTACH {condition} {literal(str(path.absolute()))} AS {name} (TYPE duckdb, READ_ONLY)")
    except duckdb.IOException as error:
        # The second message is that of Windows.
        if not re.search(r"Conflicting lock is held|File is already open in", str(error)):
            raise
        process = re.search(r"\bPID \d+", str(error))
        raise TraceError(
            f"{path} is open in another process{f' ({process[0]})' if process else ''}, which may write to it",
            "close it there, and try again",
        ) from None


def list_tables(connection: duckdb.DuckDBPyConnection, catalog: str, schema: str) -> dict[str, set[str]]:
    """Return the tables in a schema of an attached DuckDB file, with their columns.

    Views and tables with generated columns are left out, because reading them evaluates expressions from the file.
    """
    columns_by_table: dict[str, set[str]] = {}
    for table, column in connection.execute(
        f"""SELECT table_name, column_name FROM duckdb_columns() SEMI JOIN (
                FROM duckdb_tables() WHERE NOT contains(sql, 'GENERATED ALWAYS')
            ) USING (database_oid, table_oid)
            WHERE database_name = {literal(catalog)} AND schema_name = {literal(schema)}"""
    ).fetchall():
        columns_by_table.setdefault(table, set()).add(column)
    return columns_by_table


def has_tables_only(connection: duckdb.DuckDBPyConnection, catalog: str) -> bool:
    """Return whether an attached DuckDB file has no views and no macros, which could call loaded extensions."""
    query = f"""SELECT 1 FROM duckdb_views() WHERE database_name = {literal(catalog)} AND NOT internal
        UNION ALL SELECT 1 FROM duckdb_functions() WHERE database_name = {literal(catalog)} AND NOT internal"""
    return not connection.execute(query).fetchall()
