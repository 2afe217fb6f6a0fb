"""The sandbox of a user's SQL: it reads the trace, but no files, network, extensions or settings.

DuckDB's settings restrict most access, but not all. Without external access, the SQLite extension still opens any file
(`sqlite_scan`, `ATTACH … (TYPE sqlite)`), attached files can be overwritten, and logs can be directed to a file. So
statements are checked too: only queries and definitions run, and they call only functions of a list. The list has the
functions of DuckDB 1.5 and 2.0 that compute, make rows from their arguments or describe the session. A function that a
newer DuckDB adds is refused until somebody has reviewed it.
"""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from nsys_insight import cache_folder, outputs, own_files
from nsys_insight.errors import QueryError
from nsys_insight.ingest.waiting import Interruptible, StopSignal, wait_for
from nsys_insight.model import views
from nsys_insight.paths import queries_folder
from nsys_insight.sql.names import find_called_functions, parse_names
from nsys_insight.sql.parser import get_locked_connection
from nsys_insight.sql.quoting import escape_glob, literal
from nsys_insight.sql.statements import Statement, read_one_query, split_statements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import duckdb


T = TypeVar("T")

# Words before a parenthesis that are reserved in SQL, or only mean what they mean there: no functions.
_WORDS = frozenset(
    """all and any as by case distinct else except exclude exists from group having in intersect join lateral
    limit materialized not on or order over partition select some then union using values when where with
    within""".split()  # noqa: SIM905 - easier to read than a list
)
# The maximum that a query can spill to disk. DuckDB's default is nine tenths of the disk.
MAX_SPILL = "32GB"


def lock(connection: duckdb.DuckDBPyConnection, *, files: Iterable[Path] = ()) -> None:
    """Permanently restrict a connection to its attached databases.

    It can still write to the spill folder, for answers (`open_writable_path`), and read `files`: those of a trace in
    Parquet format.
    """
    from nsys_insight.ingest.database import spill_folder

    # DuckDB checks a pattern, and then what it fits.
    allowed = ", ".join(literal(name) for file in files for name in dict.fromkeys([str(file), escape_glob(str(file))]))
    connection.execute(
        f"""SET allowed_directories = [{literal(spill_folder())}];
            SET allowed_paths = [{allowed}];
            SET max_temp_directory_size = {literal(MAX_SPILL)};
            SET python_enable_replacements = false;
            SET allow_unsigned_extensions = false;
            SET enable_external_access = false;
            SET lock_configuration = true"""
    )


def check_query(sql: str) -> None:
    """Refuse SQL that is not a single query, or calls a function with access beyond the trace.

    The query becomes part of built-in statements. So DuckDB's parser must accept it as one complete query.

    Raises:
        QueryError: The SQL is refused.
    """
    if "\0" in sql:
        raise QueryError("the SQL contains a NUL, where DuckDB would end it", "remove it")
    if parse_names(sql).queries != 1:
        read_one_query(sql)
    _check_calls(sql)


def check_definition(sql: str) -> None:
    """Refuse SQL that is not one definition of a table, view or macro, or has access beyond the trace.

    Raises:
        QueryError: The SQL is refused.
    """
    if len(statements := split_statements(sql)) != 1 or not statements[0].defined_name:
        raise QueryError("write one definition per statement", "write CREATE TEMP TABLE name AS SELECT")
    _check_calls(sql)


def _check_calls(sql: str) -> None:
    if refused := find_refused_functions(find_called_functions(sql) | parse_names(sql).functions):
        raise QueryError(
            f"{refused[0]} is not available: SQL reads the trace, but no files, network or settings",
            "nsys-insight schema lists what can be queried",
        )


def find_refused_functions(names: Iterable[str]) -> list[str]:
    """Return those of the names that are functions of DuckDB or its SQLite extension and are not in the list.

    Macros and words of other kinds are left out: DuckDB resolves them.
    """
    unlisted = {*names} - _read_listed_functions() - _WORDS
    return sorted(name for name in unlisted if name.startswith("sqlite_") or name in _read_functions())


@cache
def _read_listed_functions() -> frozenset[str]:
    return frozenset((queries_folder() / "catalog" / "duckdb_functions.txt").read_text(encoding="utf-8").split())


@cache
def _read_functions() -> frozenset[str]:
    """Read the names of all functions of this DuckDB, which takes a dozen milliseconds."""
    functions = (
        get_locked_connection()
        .cursor()
        .execute(
            """SELECT DISTINCT lower(function_name) FROM duckdb_functions()
        WHERE function_type <> 'pragma' AND NOT regexp_matches(function_name, '^(icu_)?collate_')"""
        )
    )
    return frozenset(name for (name,) in functions.fetchall())


def check_name(connection: duckdb.DuckDBPyConnection, statement: Statement) -> None:
    """Refuse a definition whose name is taken.

    DuckDB binds the model's views when a query reads them. A user's macro `sum` would replace DuckDB's in these views.

    Raises:
        QueryError: The name is taken.
    """
    name = statement.defined_name
    if statement.is_macro:
        conflicts = f"FROM duckdb_functions() WHERE lower(function_name) = {literal(name)} LIMIT 1"
    else:
        conflicts = f"""FROM duckdb_tables() WHERE lower(table_name) = {literal(name)} AND schema_name = 'main'
            AND database_name = current_database() LIMIT 1"""
    if connection.execute(conflicts).fetchall():
        kind = "a function" if statement.is_macro else "a table of the model"
        raise QueryError(f"{name} is {kind} already", "choose another name")
    # With several traces, each one has its table `scope` in a separate catalog.
    if name in {*views.definitions(), "scope"}:
        raise QueryError(f"{name} is part of the model", "choose another name")


@contextmanager
def open_writable_path(target: Path) -> Iterator[Path]:
    """Yield a path that a locked connection can write to; if the block succeeds, the file is copied to `target`.

    Raises:
        UsageError: The target is a file that this program did not write.
        OSError: The target cannot be written.
    """
    import duckdb

    from nsys_insight.ingest.database import missing_spill_folder_error, spill_folder

    if not os.path.isdir(spill_folder()):  # noqa: PTH112 - it is a text, for SQL
        raise missing_spill_folder_error()
    inner_path = cache_folder.claim_temporary("handover")
    try:
        outputs.refuse_foreign(target)
        yield inner_path
        shutil.copyfile(inner_path, target)
        if not own_files.is_own(target):
            outputs.remember(target.resolve())
    except duckdb.IOException as error:  # the message is "Could not write file …: No space left on device"
        raise OSError(errno.EIO, str(error).rpartition(": ")[2]) from None
    finally:
        own_files.remove(inner_path)


class Runner:
    """Runs work in a separate thread, with a time limit. Ctrl-C stops it too."""

    def __init__(self, seconds: float | None, work: str = "the query") -> None:
        """Set the time limit; None means no limit. `work` says in an error what was stopped."""
        from concurrent.futures import ThreadPoolExecutor

        self.seconds, self.work = seconds, work
        self._pool = ThreadPoolExecutor(1)

    def __call__(self, connection: Interruptible, run: Callable[[], T]) -> T:
        """Run a function and return its result.

        Raises:
            QueryError: The time limit was exceeded.
            KeyboardInterrupt: The user typed Ctrl-C.
        """
        stop = StopSignal()
        running = self._pool.submit(copy_context().run, stop.run, run)
        try:
            wait_for([running], [stop, connection], self.seconds)
        except TimeoutError:
            raise QueryError(
                f"{self.work} was stopped after {self.seconds:g} s", "allow more time with --timeout 600s"
            ) from None
        return running.result()
