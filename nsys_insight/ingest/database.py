"""Bring nsys exports into DuckDB: a connection, and the files attached to it."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from nsys_insight.errors import InsightError, UsageError
from nsys_insight.ingest import cache_folder
from nsys_insight.ingest.limits import Limits
from nsys_insight.sql.parser import take_connection
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    import duckdb

DEFAULT = Limits()
_CONNECTIONS = count(1)
_REASONS = ("No space left on device", "Disk quota exceeded", "File too large", "Permission denied")


def spill_folder() -> str:
    """Where answers of this process are handed over from, and in which queries spill: nobody else can look into it.

    Raises:
        InsightError: There is no room for it, or something has removed it.
    """
    try:
        folder = cache_folder.temporary()
    except OSError as error:
        raise InsightError(
            f"there is no folder for temporary files: {error.strerror}", "name one with room in it: TMPDIR=/path"
        ) from None
    return str(folder)


def spill_failed(error: Exception) -> InsightError | None:
    """What to say of an error of a query that spilled to disk; None if it is about something else."""
    import duckdb

    text, folder = str(error), cache_folder.temporary()
    if not isinstance(error, duckdb.Error) or (str(folder) not in text and "temporary file" not in text):
        return None
    if not folder.is_dir() or "No such file" in text:
        return spill_gone()
    return InsightError(
        f"this does not fit in memory, and cannot be spilled to {folder.parent}: {_reason(text)}",
        "name a folder with room: TMPDIR=/path; or raise the limit: --memory 8GB",
    )


def spill_gone() -> InsightError:
    """What to say when something has removed the temporary files."""
    return InsightError(
        f"temporary files of this command are gone: something removes files in {cache_folder.temporary().parent}",
        "name a folder that nothing cleans up: TMPDIR=/path",
    )


def _reason(text: str) -> str:
    return next((reason for reason in _REASONS if reason in text), text.partition("\n")[0])


# What is attached with this to be written: a file that DuckDB before 1.2 cannot read, and that takes a fifth less time.
STORAGE = "(STORAGE_VERSION 'v1.2.0')"


def connect(limits: Limits = DEFAULT) -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB, which spills to a folder of its own among the temporary ones, never beside a trace."""
    import duckdb

    connection = take_connection()
    memory, threads = limits.settled
    if not re.fullmatch(r"\s*[\d.]+\s*([KMGT]i?)?B?\s*", memory, re.IGNORECASE):
        raise _no_size(memory)
    try:
        connection.execute(
            # Row order is of no meaning in SQL; giving it up lets the extension scan a SQLite file in parallel.
            f"""SET preserve_insertion_order = false;
                SET threads = {threads};
                SET memory_limit = {literal(memory)};
                -- What a query lets go is the machine's again sooner: a tenth less memory, in no more time.
                SET allocator_bulk_deallocation_flush_threshold = '64MB';
                -- An ASOF join whose left side DuckDB takes to be small compares all with all, and it guesses badly.
                SET GLOBAL asof_loop_join_threshold = 0;
                -- Two databases that spill to one folder give their files the same names, and read each other's.
                SET temp_directory = {literal(f"{spill_folder()}/spill-{next(_CONNECTIONS)}")}"""
        )
    except duckdb.Error as error:
        raise _no_size(memory, f": {error}") from None
    # In a session of Python's own it would write to stdout, where the data go. In a notebook without ipywidgets there
    # is none, and DuckDB refuses to be asked.
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")
    return connection


def _no_size(memory: str, why: str = "") -> UsageError:
    return UsageError(f"--memory cannot be {memory!r}{why}", "give a size such as 512MB or 4GB")


def tables(connection: duckdb.DuckDBPyConnection, catalog: str, schema: str) -> dict[str, set[str]]:
    """The tables in a schema of an attached DuckDB file, with the columns that are stored in it.

    A view is none, nor is a table with a column that an expression gives: what the file says would be evaluated.
    """
    found: dict[str, set[str]] = {}
    for table, column in connection.execute(
        f"""SELECT table_name, column_name FROM duckdb_columns() SEMI JOIN (
                FROM duckdb_tables() WHERE NOT contains(sql, 'GENERATED ALWAYS')
            ) USING (database_oid, table_oid)
            WHERE database_name = {literal(catalog)} AND schema_name = {literal(schema)}"""
    ).fetchall():
        found.setdefault(table, set()).add(column)
    return found


def has_tables_only(connection: duckdb.DuckDBPyConnection, catalog: str) -> bool:
    """Tell whether an attached DuckDB file has no views and no macros, which could call what is loaded beside it."""
    more = f"""SELECT 1 FROM duckdb_views() WHERE database_name = {literal(catalog)} AND NOT internal
        UNION ALL SELECT 1 FROM duckdb_functions() WHERE database_name = {literal(catalog)} AND NOT internal"""
    return not connection.execute(more).fetchall()
