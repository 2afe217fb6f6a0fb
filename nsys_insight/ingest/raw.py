"""The raw relations under the model: one for each table of the expected schema, whether the file has it or not."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from nsys_insight.ingest import gpus, processes, row_search, time_bounds
from nsys_insight.ingest.bad_rows import check_keys, guard_column, raise_unless
from nsys_insight.ingest.expected_schema import cast_column, read_expected_schema
from nsys_insight.ingest.scope import FULL_TRACE, Scope, cut_column, write_condition
from nsys_insight.ingest.source import RowChecks, Source
from nsys_insight.ingest.sqlite_file import open_read_only
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import duckdb

    from nsys_insight.sql.names import Names

# The tables that are also read outside the scope, to find out when a GPU was idle, and why.
UNSCOPED_TABLES = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "OSRT_API",
    "PROFILER_OVERHEAD",
    "COMPOSITE_EVENTS",
    "SCHED_EVENTS",
    "MPI_P2P_EVENTS",
    "MPI_COLLECTIVES_EVENTS",
    "MPI_START_WAIT_EVENTS",
    "MPI_OTHER_EVENTS",
    "NVTX_EVENTS",
)

_DEVICE_TABLE = "TARGET_INFO_CUDA_DEVICE"
# What is checked for repeated correlation ids: the first calls, and a sample of all calls. Of an export, the sample is
# this number of calls, spread evenly; of other files, it is all calls of one id in this number.
_FIRST_CALLS, _PROBES, _IDS_PER_SAMPLE = 20_000, 500, 97


def has_repeated_ids(connection: duckdb.DuckDBPyConnection, source: Source) -> bool:
    """Return whether several API calls of a process have the same correlation id.

    A capture of runtime and driver calls may give one id to a call and the calls inside it, from its start on. A check
    of millions of calls would double the cost of `launches`. So the first calls are checked, and all calls if ids of
    the sample are used again, or the trace is known to have invalid rows.
    """
    table = "CUPTI_ACTIVITY_KIND_RUNTIME"
    if not {"start", "end", "globalTid", "correlationId", "eventClass"} <= source.columns.get(table, set()):
        return False
    needs_all = source.row_checks.is_filtered or _are_ids_used_again(connection, source, table)
    limit = "" if needs_all else f"LIMIT {_FIRST_CALLS}"
    calls = f"""SELECT globalTid >> 24 AS process, correlationId FROM {source.relations[table]}
        WHERE correlationId IS NOT NULL AND eventClass IS DISTINCT FROM 67 {limit}"""
    repeats = f"SELECT 1 FROM ({calls}) GROUP BY process, correlationId HAVING count(*) > 1 LIMIT 1"
    return bool(connection.execute(repeats).fetchall())


def _are_ids_used_again(connection: duckdb.DuckDBPyConnection, source: Source, table: str) -> bool:
    """Return whether a sample of the calls of a trace suggests that ids were counted up and then used again.

    In an export, which has its calls in their order, the ids of a process are then lower than before.
    """
    import sqlite3

    if source.export is None or table not in source.export.tables:
        query = f"""SELECT 1 FROM {source.relations[table]}
            WHERE correlationId % {_IDS_PER_SAMPLE} = 0 AND eventClass IS DISTINCT FROM 67
            GROUP BY globalTid >> 24, correlationId HAVING count(*) > 1 LIMIT 1"""
        return bool(connection.execute(query).fetchall())
    last_ids: dict[int, int] = {}
    with suppress(sqlite3.Error), open_read_only(source.export.file) as database:
        numbers = row_search.read_row_numbers(database, table)
        probe = f"""SELECT globalTid >> 24, correlationId FROM {identifier(table)}
            WHERE rowid = ? AND typeof(globalTid) = 'integer' AND typeof(correlationId) = 'integer'"""
        probes = numbers[:: max(1, len(numbers) // _PROBES)] if len(numbers) > _FIRST_CALLS else ()
        for number in (*probes, *numbers[-1:]):
            for process, call_id in database.execute(probe, (number,)):
                if call_id < last_ids.get(process, call_id):
                    return True
                last_ids[process] = call_id
    return False


def _locate_rows(connection: duckdb.DuckDBPyConnection, source: Source, table: str) -> str:
    """Write the SQL for the rows of a table, with at most one API call per correlation id.

    If a call and the calls inside it share an id, GPU work belongs to the outermost one. The id of the others becomes
    NULL, which joins with nothing. If a call has the id of an earlier one that had returned, the ids were counted up to
    their end and used again: which of them launched what is unknown, and both ids become NULL. A call that was
    recorded twice is read once.
    """
    rows = source.relations[table]
    check_keys(connection, source, table)
    if table != "CUPTI_ACTIVITY_KIND_RUNTIME" or not has_repeated_ids(connection, source):
        return rows
    call_id = "globalTid >> 24, correlationId, eventClass IS NOT DISTINCT FROM 67"
    call_key = 'globalTid, correlationId, eventClass, start, "end"'
    is_first = f"correlationId IS NULL OR row_number() OVER (PARTITION BY {call_key}) = 1"
    checked_rows = is_first if source.row_checks.is_filtered else raise_unless(is_first)
    return f"""(SELECT * REPLACE (CASE WHEN row_number() OVER outermost_first = 1
            AND max(start) OVER (PARTITION BY {call_id}) < greatest("end", start + 1)
            THEN correlationId END AS correlationId)
        FROM {rows}
        WINDOW outermost_first AS (PARTITION BY {call_id} ORDER BY start, "end" DESC, eventClass)
        QUALIFY {checked_rows})"""


def can_read_some_rows(connection: duckdb.DuckDBPyConnection, source: Source, table: str) -> bool:
    """Return whether a query can read some of a table's rows alone: not in an export, nor where ids repeat."""
    in_place = source.export is not None and table in source.export.tables
    return not in_place and not (table == "CUPTI_ACTIVITY_KIND_RUNTIME" and has_repeated_ids(connection, source))


def create_empty(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the relations of a trace without rows, for the template of the model.

    The schema `unscoped` shows the rows of `raw` until a scope narrows `raw`.
    """
    connection.execute("CREATE SCHEMA raw; CREATE SCHEMA unscoped")
    for table, types in read_expected_schema().items():
        connection.execute(_write_view("raw", table, set(), "WHERE false", FULL_TRACE, RowChecks()))
        if table in UNSCOPED_TABLES:
            columns, name = ", ".join(map(identifier, types)), identifier(table)
            connection.execute(f"CREATE VIEW unscoped.{name} AS SELECT {columns} FROM raw.{name}")
    connection.execute(f"CREATE VIEW raw.wall AS {time_bounds.select_time_bounds({})}")
    processes.create_macros(connection)
    gpus.create_gpu_macro(connection)
    gpus.create_timeline_macros(connection, {})


def create_id_relations(connection: duckdb.DuckDBPyConnection, source: Source) -> None:
    """Create the relation that distinguishes the GPUs, the macro `gpu_of` on it, and those that name processes."""
    if source.shared_pids:
        processes.create_macros(connection, source.shared_pids)
    create_relations(connection, source, FULL_TRACE, [_DEVICE_TABLE])
    gpus.create_gpu_macro(connection)


def list_relations() -> list[str]:
    """List what `create_relations` can create: the tables of the expected schema, and relations over several ones."""
    return [*read_expected_schema(), "wall", "on_line"]


def list_relations_read(names: Names, source: Source) -> list[str]:
    """List the relations that a statement with these names reads."""
    raw_names = names.relations_in("raw")
    names_read = raw_names | names.relations_in("unscoped")
    tables = {name for name in read_expected_schema() if name.lower() in names_read}
    if "wall" in raw_names:
        tables |= {table for table in time_bounds.EVENT_CONDITIONS if None in source.time_bounds.get(table, (None,))}
    if names.functions & gpus.TIMELINE_MACROS:
        tables |= {*gpus.GPU_TABLES}
    return [
        *tables,
        *(["wall"] if "wall" in raw_names else []),
        *(["on_line"] if names.functions & gpus.TIMELINE_MACROS else []),
    ]


def create_relations(  # noqa: PLR0913 - all that relations depend on
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    scope: Scope,
    names: Collection[str],
    *,
    is_temporary: bool = False,
    in_memory: bool = False,
) -> None:
    """Replace empty relations of the template by the rows of a trace that are in scope.

    Args:
        connection: A connection whose catalog contains the model.
        source: The trace.
        scope: The part of the trace that `raw` shows. `unscoped` shows the tables that explain idle GPUs for all
            times.
        names: The relations, of `list_relations`. A session creates those that are read: binding all of them takes
            a tenth of the time of a report on a small trace.
        is_temporary: Whether a narrower scope will replace them, so that the wall time is not computed now.
        in_memory: Whether to read the rows of the full trace into tables now (benchmarks/measure.py --only small).
    """
    statements = []
    for table in read_expected_schema().keys() & set(names) & source.columns.keys():
        columns, rows = source.columns[table], f"FROM {_locate_rows(connection, source, table)}"
        if in_memory:
            table_name = f"in_memory.{identifier(table)}"
            select = _write_select(table, columns, rows, FULL_TRACE, source.row_checks)
            statements += [
                f"CREATE OR REPLACE TABLE {table_name} AS {select}",
                f"CREATE OR REPLACE VIEW raw.{identifier(table)} AS FROM {table_name}",
            ]
            continue
        statements.append(_write_view("raw", table, columns, rows, scope, source.row_checks))
        if table in UNSCOPED_TABLES and scope != FULL_TRACE:
            statements.append(_write_unscoped_view(table, columns, rows, scope, source.row_checks))
    if statements:
        connection.execute(";\n".join(statements))
    if "wall" in names:
        wall = _write_wall(connection, source, scope, is_temporary=is_temporary)
        connection.execute(f"CREATE OR REPLACE VIEW raw.wall AS {wall}")
    if "on_line" in names:
        gpus.create_timeline_macros(connection, source.time_bounds)


def _write_wall(connection: duckdb.DuckDBPyConnection, source: Source, scope: Scope, *, is_temporary: bool) -> str:
    """Write the SQL for the start and end of a scope.

    For the full trace, compute them here once. Half of the queries of a diagnosis need them, and would read all calls
    and kernels again. Other scopes store their own times; see `nsys_insight.ingest.scope`.
    """
    if scope != FULL_TRACE:
        return "FROM internal.scope_windows"
    if is_temporary:
        return time_bounds.select_time_bounds(source.time_bounds)
    ((start, end),) = connection.execute(time_bounds.select_time_bounds(source.time_bounds)).fetchall()
    return f"SELECT {literal(start)}::BIGINT AS start_ns, {literal(end)}::BIGINT AS end_ns"


def add_exported_columns(connection: duckdb.DuckDBPyConnection, source: Source, scope: Scope) -> None:
    """Add the rest of the file to the relations: columns after those of the expected schema, and other tables."""
    statements = []
    for table, columns in sorted(source.columns.items()):
        extra_columns = sorted(columns - read_expected_schema().get(table, {}).keys())
        rows = f"FROM {_locate_rows(connection, source, table)}"
        statements.append(_write_view("raw", table, columns, rows, scope, source.row_checks, extra_columns))
    connection.execute(";\n".join(statements))


@contextmanager
def replace_unscoped_rows(
    connection: duckdb.DuckDBPyConnection, source: Source, scope: Scope, rows: Mapping[str, tuple[str, set[str]]]
) -> Iterator[None]:
    """Let the schema `unscoped` show other rows in the block: for each table, a relation and its columns."""
    for table, (relation, columns) in rows.items():
        connection.execute(_write_unscoped_view(table, columns, f"FROM {relation}", scope, source.row_checks))
    try:
        yield
    finally:
        for table in rows:
            all_rows = f"FROM {_locate_rows(connection, source, table)}"
            columns = source.columns[table]
            connection.execute(_write_unscoped_view(table, columns, all_rows, scope, source.row_checks))


def _write_unscoped_view(table: str, columns: set[str], rows: str, scope: Scope, row_checks: RowChecks) -> str:
    # A wait of a stream has the device of the event, not that of the stream.
    device = None if table == "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION" else scope.device
    return _write_view("unscoped", table, columns, rows, Scope(device=device), row_checks)


def _write_view(  # noqa: PLR0913, PLR0917 - all that a relation depends on
    schema: str,
    table: str,
    columns: set[str],
    rows: str,
    scope: Scope,
    row_checks: RowChecks,
    extra_columns: Sequence[str] = (),
) -> str:
    """Write the SQL that creates a relation."""
    select = _write_select(table, columns, rows, scope, row_checks, extra_columns)
    return f"CREATE OR REPLACE VIEW {schema}.{identifier(table)} AS {select}"


def _write_select(  # noqa: PLR0913, PLR0917 - all that a relation depends on
    table: str, columns: set[str], rows: str, scope: Scope, row_checks: RowChecks, extra_columns: Sequence[str] = ()
) -> str:
    """Write the SQL for a relation: the expected columns, from rows with `columns`, and the `extra_columns`."""
    types = read_expected_schema().get(table, {})
    select = [
        cast_column(
            column, kind, cut_column(scope, table, column, guard_column(row_checks, table, column, kind, columns))
        )
        if column in columns
        else f"NULL::{kind} AS {identifier(column)}"
        for column, kind in types.items()
    ]
    select += map(identifier, extra_columns)
    test = write_condition(scope, table, (set(types) or columns) & columns) if columns else ""
    where_clause = f" WHERE {test}" if test else ""
    return f"SELECT {', '.join(select)} {rows}{where_clause}"
