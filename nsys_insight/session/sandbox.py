"""What SQL may do: read the trace, and nothing else. No file, network, extension or setting can be reached from it.

DuckDB's own settings do most of it, but not all. With external access switched off, the SQLite extension still opens
any file by itself (`sqlite_scan`, `ATTACH … (TYPE sqlite)`), files that are attached may still be written over, and
logs may be told to go to a file. So statements are looked at too: only queries and definitions run, and of DuckDB's
table functions only those that make rows of their arguments or describe the session.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

from nsys_insight.errors import QueryError
from nsys_insight.ingest.waiting import wait_for
from nsys_insight.model import views
from nsys_insight.sql.names import called, mentioned
from nsys_insight.sql.quoting import literal
from nsys_insight.sql.statements import one_query, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import duckdb

    from nsys_insight.ingest.waiting import Interruptible
    from nsys_insight.sql.statements import Statement

T = TypeVar("T")

# All others of DuckDB's table functions are refused; tests/test_sandbox.py holds the two lists against DuckDB itself.
TABLE_FUNCTIONS = frozenset(
    """range generate_series unnest repeat repeat_row json_each json_tree histogram histogram_values summary
    duckdb_columns duckdb_constraints duckdb_databases duckdb_dependencies duckdb_functions duckdb_indexes
    duckdb_keywords duckdb_memory duckdb_optimizers duckdb_schemas duckdb_sequences duckdb_settings duckdb_tables
    duckdb_temporary_files duckdb_types duckdb_variables duckdb_views pragma_collations pragma_database_size
    pragma_platform pragma_show pragma_table_info pragma_user_agent pragma_version icu_calendar_names pg_timezone_names
    test_all_types test_vector_types""".split()  # noqa: SIM905 - easier to read than a list
)
REFUSED = frozenset(
    """arrow_scan arrow_scan_dumb checkpoint disable_logging disable_profiling duckdb_approx_database_count
    duckdb_connection_count duckdb_coordinate_systems duckdb_extensions duckdb_external_file_cache duckdb_log_contexts
    duckdb_logs duckdb_logs_parsed duckdb_prepared_statements duckdb_profiling_settings duckdb_secret_types
    duckdb_secrets duckdb_table_sample enable_logging enable_profiling force_checkpoint glob
    json_execute_serialized_sql pandas_scan parquet_bloom_probe parquet_file_metadata parquet_full_metadata
    parquet_kv_metadata parquet_metadata parquet_scan parquet_schema pragma_metadata_info pragma_storage_info
    python_map_function query query_table read_blob read_csv read_csv_auto read_duckdb read_json read_json_auto
    read_json_objects read_json_objects_auto read_ndjson read_ndjson_auto read_ndjson_objects read_parquet read_text
    seq_scan sniff_csv sqlite_attach sqlite_query sqlite_scan truncate_duckdb_logs which_secret write_log""".split()  # noqa: SIM905 - the same
)
# What a query may spill to disk; DuckDB's own limit is nine tenths of the disk.
SPILL = "32GB"


def lock(connection: duckdb.DuckDBPyConnection, *, files: Iterable[Path] = ()) -> None:
    """Cut a connection off from everything but what is attached to it, for good.

    It still reaches the folder where an answer is handed over, and `files`: a trace that is a folder of Parquet files.
    """
    from nsys_insight.ingest.database import spill_folder

    allowed = ", ".join(literal(str(file)) for file in files)
    connection.execute(
        f"""SET allowed_directories = [{literal(spill_folder())}];
            SET allowed_paths = [{allowed}];
            SET max_temp_directory_size = {literal(SPILL)};
            SET python_enable_replacements = false;
            SET allow_unsigned_extensions = false;
            SET enable_external_access = false;
            SET lock_configuration = true"""
    )


def check(sql: str) -> None:
    """Refuse what is not one query, or calls what reaches beyond the trace.

    A query is written into statements of our own. So it has to be one as it stands, by DuckDB's parser.

    Raises:
        QueryError: It is refused.
    """
    if "\0" in sql:
        raise QueryError("the SQL contains a NUL, where DuckDB would end it", "remove it")
    if mentioned(sql).queries != 1:
        one_query(sql)
    _check_calls(sql)


def check_definition(sql: str) -> None:
    """Refuse what does not define one table, view or macro, or calls what reaches beyond the trace.

    Raises:
        QueryError: It is refused.
    """
    if len(found := split(sql)) != 1 or not found[0].creates:
        raise QueryError("write one definition per statement", "write CREATE TEMP TABLE name AS SELECT")
    _check_calls(sql)


def _check_calls(sql: str) -> None:
    refused = sorted((called(sql) | mentioned(sql).functions) & REFUSED)
    if refused:
        raise QueryError(
            f"{refused[0]} is not available: SQL reads the trace, but no files, network or settings",
            "nsys-insight schema lists what can be queried",
        )


def check_name(connection: duckdb.DuckDBPyConnection, statement: Statement) -> None:
    """Refuse a definition under a name that is taken.

    The model's views are bound when a query reads them, and in them a user's `sum` would be as good as DuckDB's.

    Raises:
        QueryError: The name is taken.
    """
    name = statement.creates
    if statement.is_macro:
        taken = f"FROM duckdb_functions() WHERE lower(function_name) = {literal(name)} LIMIT 1"
    else:
        taken = f"""FROM duckdb_tables() WHERE lower(table_name) = {literal(name)} AND schema_name = 'main'
            AND database_name = current_database() LIMIT 1"""
    if connection.execute(taken).fetchall():
        what = "a function" if statement.is_macro else "a table of the model"
        raise QueryError(f"{name} is {what} already", "choose another name")
    # Of several traces, each has the table `scope` in a catalog of its own.
    if name in {*views.definitions(), "scope"}:
        raise QueryError(f"{name} is part of the model", "choose another name")


@contextmanager
def handover(target: Path) -> Iterator[Path]:
    """Give a path that a locked connection may write to; what is there when the block ends well becomes `target`.

    Raises:
        OSError: The target cannot be written.
    """
    import errno
    import shutil
    import tempfile
    from pathlib import Path

    import duckdb

    from nsys_insight.ingest.database import spill_folder, spill_gone

    with ExitStack() as held:
        try:
            folder = held.enter_context(tempfile.TemporaryDirectory(dir=spill_folder()))
        except FileNotFoundError as error:
            raise spill_gone() from error
        inner = Path(folder) / "handover"
        try:
            yield inner
        except duckdb.IOException as error:  # which DuckDB says as "Could not write file …: No space left on device"
            raise OSError(errno.EIO, str(error).rpartition(": ")[2]) from None
        shutil.copyfile(inner, target)


class Runner:
    """Runs what asks a connection for so long at most, in a thread of its own. Ctrl-C stops it too."""

    def __init__(self, seconds: float | None) -> None:
        """None is no limit."""
        from concurrent.futures import ThreadPoolExecutor

        self.seconds = seconds
        self._pool = ThreadPoolExecutor(1)

    def __call__(self, connection: Interruptible, run: Callable[[], T]) -> T:
        """Run it and return what it returns.

        Raises:
            QueryError: The time was over.
            KeyboardInterrupt: Ctrl-C was typed.
        """
        running = self._pool.submit(run)
        try:
            wait_for([running], [connection], self.seconds)
        except TimeoutError:
            raise QueryError(
                f"the query was stopped after {self.seconds:g} s", "allow more time with --timeout 600s"
            ) from None
        return running.result()
