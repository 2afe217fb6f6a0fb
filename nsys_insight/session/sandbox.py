"""The sandbox of a user's SQL: it reads the trace, but no files, network, extensions or settings.

DuckDB's settings restrict most access, but not all. Without external access, the SQLite extension still opens any file
(`sqlite_scan`, `ATTACH … (TYPE sqlite)`), attached files can be overwritten, and logs can be directed to a file. So
statements are checked too: only queries and definitions run, with only those table functions of DuckDB that make rows
from their arguments or describe the session.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

from nsys_insight import cache_folder, outputs, own_files
from nsys_insight.errors import QueryError
from nsys_insight.ingest.waiting import StopSignal, wait_for
from nsys_insight.model import views
from nsys_insight.sql.names import find_called_functions, parse_names
from nsys_insight.sql.quoting import escape_glob, literal
from nsys_insight.sql.statements import read_one_query, split_statements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import duckdb

    from nsys_insight.ingest.waiting import Interruptible
    from nsys_insight.sql.statements import Statement

T = TypeVar("T")

# All other table functions of DuckDB are refused. tests/test_sandbox.py compares the two lists with DuckDB, and other
# functions with tests/data/duckdb_functions.txt.
TABLE_FUNCTIONS = frozenset(
    """range generate_series unnest repeat repeat_row json_each json_tree histogram histogram_values summary
    duckdb_columns duckdb_constraints duckdb_databases duckdb_dependencies duckdb_functions duckdb_indexes
    duckdb_keywords duckdb_memory duckdb_optimizers duckdb_schemas duckdb_sequences duckdb_settings duckdb_tables
    duckdb_temporary_files duckdb_types duckdb_variables duckdb_views pragma_collations pragma_database_size
    pragma_platform pragma_show pragma_table_info pragma_user_agent pragma_version icu_calendar_names pg_timezone_names
    test_all_types test_vector_types""".split()  # noqa: SIM905 - easier to read than a list
)
# `json_serialize_plan` looks up the tables of the query in its argument: it opens files.
REFUSED_FUNCTIONS = frozenset(
    """arrow_scan arrow_scan_dumb checkpoint disable_logging disable_profiling duckdb_approx_database_count
    duckdb_connection_count duckdb_coordinate_systems duckdb_extensions duckdb_external_file_cache
    duckdb_log_contexts duckdb_logs duckdb_logs_parsed duckdb_prepared_statements duckdb_profiling_settings
    duckdb_secret_types duckdb_secrets duckdb_table_sample enable_logging enable_profiling force_checkpoint glob
    json_execute_serialized_sql json_serialize_plan pandas_scan parquet_bloom_probe parquet_file_metadata
    parquet_full_metadata parquet_kv_metadata parquet_metadata parquet_scan parquet_schema pragma_metadata_info
    pragma_storage_info python_map_function query query_table read_blob read_csv read_csv_auto read_duckdb read_json
    read_json_auto read_json_objects read_json_objects_auto read_ndjson read_ndjson_auto read_ndjson_objects
    read_parquet read_text seq_scan sniff_csv sqlite_attach sqlite_query sqlite_scan truncate_duckdb_logs
    which_secret write_log""".split()  # noqa: SIM905 - the same
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
    refused = sorted((find_called_functions(sql) | parse_names(sql).functions) & REFUSED_FUNCTIONS)
    if refused:
        raise QueryError(
            f"{refused[0]} is not available: SQL reads the trace, but no files, network or settings",
            "nsys-insight schema lists what can be queried",
        )


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
    import errno
    import shutil

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
