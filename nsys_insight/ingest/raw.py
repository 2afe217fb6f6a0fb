"""The raw relations that the model is made of: one for each table of the contract, whatever the file has."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from nsys_insight.ingest import extents, gpus
from nsys_insight.ingest.bad_rows import guarded, must
from nsys_insight.ingest.contract import cell, contract
from nsys_insight.ingest.scope import WHOLE_TRACE, Scope, condition, cut
from nsys_insight.ingest.source import Screen
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import duckdb

    from nsys_insight.ingest.source import Source
    from nsys_insight.sql.names import Names

# The tables of which the whole is read to say when a GPU was idle, and why.
WHOLE = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "OSRT_API",
    "PROFILER_OVERHEAD",
    "COMPOSITE_EVENTS",
    "SCHED_EVENTS",
)

_DEVICES = "TARGET_INFO_CUDA_DEVICE"
# So many are looked at for correlation ids that repeat.
_FIRST_CALLS = 20_000


def has_repeats(connection: duckdb.DuckDBPyConnection, source: Source) -> bool:
    """Tell whether several API calls of a process have one correlation id.

    A capture of runtime and driver calls may give it to a call and those within. Such a capture has it from the start,
    and to look at all of millions of calls would double the cost of `launches`: so only the first are looked at, unless
    the trace is known to have rows that cannot be.
    """
    table = "CUPTI_ACTIVITY_KIND_RUNTIME"
    if not {"start", "end", "globalTid", "correlationId", "eventClass"} <= source.columns.get(table, set()):
        return False
    first = "" if source.screen.looked else f"LIMIT {_FIRST_CALLS}"
    calls = f"""SELECT globalTid >> 24 AS process, correlationId FROM {source.relations[table]}
        WHERE correlationId IS NOT NULL AND eventClass IS DISTINCT FROM 67 {first}"""
    repeats = f"SELECT 1 FROM ({calls}) GROUP BY process, correlationId HAVING count(*) > 1 LIMIT 1"
    return bool(connection.execute(repeats).fetchall())


def _relation(connection: duckdb.DuckDBPyConnection, source: Source, table: str) -> str:
    """SQL for where a table's rows are, with at most one API call to a correlation id.

    GPU work belongs to the outer one of calls that share one; the inner ones have none, which joins with nothing. A
    call that is there twice is one call.
    """
    rows = source.relations[table]
    if table != "CUPTI_ACTIVITY_KIND_RUNTIME" or not has_repeats(connection, source):
        return rows
    calls = "globalTid >> 24, correlationId, eventClass IS NOT DISTINCT FROM 67"
    same = 'globalTid, correlationId, eventClass, start, "end"'
    once = f"correlationId IS NULL OR row_number() OVER (PARTITION BY {same}) = 1"
    return f"""(SELECT * REPLACE (CASE WHEN
        row_number() OVER (PARTITION BY {calls} ORDER BY start, "end" DESC, eventClass) = 1 THEN correlationId
        END AS correlationId) FROM {rows} QUALIFY {once if source.screen.looked else must(once)})"""


def is_read_in_parts(connection: duckdb.DuckDBPyConnection, source: Source, table: str) -> bool:
    """Tell whether some rows of a table can be read without a look at all: not in an export, nor where ids repeat."""
    in_place = source.export is not None and table in source.export.tables
    return not in_place and not (table == "CUPTI_ACTIVITY_KIND_RUNTIME" and has_repeats(connection, source))


def create_empty(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the relations of a trace without any rows, for the template of the model.

    `whole` shows the rows of `raw` until a scope narrows `raw`.
    """
    connection.execute("CREATE SCHEMA raw; CREATE SCHEMA whole")
    for table, types in contract().items():
        connection.execute(_view("raw", table, set(), "WHERE false", WHOLE_TRACE, Screen()))
        if table in WHOLE:
            columns, name = ", ".join(map(identifier, types)), identifier(table)
            connection.execute(f"CREATE VIEW whole.{name} AS SELECT {columns} FROM raw.{name}")
    connection.execute(f"CREATE VIEW raw.wall AS {extents.select({})}")
    gpus.create_macro(connection)
    gpus.create_line(connection, {})


def begin(connection: duckdb.DuckDBPyConnection, source: Source) -> None:
    """Create the relation that tells GPUs apart, and the macro `gpu_of` over it."""
    create_relations(connection, source, WHOLE_TRACE, [_DEVICES])
    gpus.create_macro(connection)


def every_relation() -> list[str]:
    """List what `create_relations` can create: the tables of the contract, and what is derived from several."""
    return [*contract(), "wall", "on_line"]


def read_by(names: Names, source: Source) -> list[str]:
    """List those that a statement with these names reads."""
    of_raw = names.of_schema("raw")
    read = of_raw | names.of_schema("whole")
    tables = {name for name in contract() if name.lower() in read}
    if "wall" in of_raw:
        tables |= {table for table in extents.EVENTS if None in source.extents.get(table, (None,))}
    if names.functions & gpus.LINE:
        tables |= {*gpus.WORK}
    return [*tables, *(["wall"] if "wall" in of_raw else []), *(["on_line"] if names.functions & gpus.LINE else [])]


def create_relations(  # noqa: PLR0913 - what relations are made of
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
        connection: A connection in whose catalog the model is.
        source: The trace.
        scope: The part of it that `raw` shows; `whole` shows what explains why a GPU was idle, of all times.
        names: The relations, of `every_relation`. A session creates those that are read, because binding all of them
            takes a tenth of the time in which a small trace is answered.
        is_temporary: A narrower scope will replace them: do not compute the wall time now.
        in_memory: Read the rows of the whole trace into tables now (benchmarks/measure.py --only small).
    """
    statements = []
    for table in contract().keys() & set(names) & source.columns.keys():
        columns, rows = source.columns[table], f"FROM {_relation(connection, source, table)}"
        if in_memory:
            held = f"held.{identifier(table)}"
            statements += [
                f"CREATE OR REPLACE TABLE {held} AS {_select(table, columns, rows, WHOLE_TRACE, source.screen)}",
                f"CREATE OR REPLACE VIEW raw.{identifier(table)} AS FROM {held}",
            ]
            continue
        statements.append(_view("raw", table, columns, rows, scope, source.screen))
        if table in WHOLE and scope != WHOLE_TRACE:
            statements.append(_whole_view(table, columns, rows, scope, source.screen))
    if statements:
        connection.execute(";\n".join(statements))
    if "wall" in names:
        wall = _wall(connection, source, scope, is_temporary=is_temporary)
        connection.execute(f"CREATE OR REPLACE VIEW raw.wall AS {wall}")
    if "on_line" in names:
        gpus.create_line(connection, source.extents)


def _wall(connection: duckdb.DuckDBPyConnection, source: Source, scope: Scope, *, is_temporary: bool) -> str:
    """SQL for the start and end of a scope.

    Of the whole trace they are computed here, once: every second answer of a diagnosis has shares of it, and would read
    all calls and kernels again. Other scopes have stored their own time; see `nsys_insight.ingest.scope`.
    """
    if scope != WHOLE_TRACE:
        return "FROM internal.scope_windows"
    if is_temporary:
        return extents.select(source.extents)
    ((start, end),) = connection.execute(extents.select(source.extents)).fetchall()
    return f"SELECT {literal(start)}::BIGINT AS start_ns, {literal(end)}::BIGINT AS end_ns"


def create_as_exported(connection: duckdb.DuckDBPyConnection, source: Source, scope: Scope) -> None:
    """Add to the relations what else the file has: columns behind those of the contract, and other tables."""
    statements = []
    for table, columns in sorted(source.columns.items()):
        more = sorted(columns - contract().get(table, {}).keys())
        rows = f"FROM {_relation(connection, source, table)}"
        statements.append(_view("raw", table, columns, rows, scope, source.screen, more))
    connection.execute(";\n".join(statements))


@contextmanager
def reading_only(
    connection: duckdb.DuckDBPyConnection, source: Source, scope: Scope, rows: Mapping[str, tuple[str, set[str]]]
) -> Iterator[None]:
    """Let relations of the schema `whole` have other rows within the block: of a table a relation and its columns."""
    for table, (relation, columns) in rows.items():
        connection.execute(_whole_view(table, columns, f"FROM {relation}", scope, source.screen))
    try:
        yield
    finally:
        for table in rows:
            all_rows = f"FROM {_relation(connection, source, table)}"
            columns = source.columns[table]
            connection.execute(_whole_view(table, columns, all_rows, scope, source.screen))


def _whole_view(table: str, columns: set[str], rows: str, scope: Scope, screen: Screen) -> str:
    return _view("whole", table, columns, rows, Scope(device=scope.device), screen)


def _view(  # noqa: PLR0913, PLR0917 - what a relation is made of
    schema: str, table: str, columns: set[str], rows: str, scope: Scope, screen: Screen, more: Sequence[str] = ()
) -> str:
    """SQL that creates a relation."""
    select = _select(table, columns, rows, scope, screen, more)
    return f"CREATE OR REPLACE VIEW {schema}.{identifier(table)} AS {select}"


def _select(  # noqa: PLR0913, PLR0917 - what a relation is made of
    table: str, columns: set[str], rows: str, scope: Scope, screen: Screen, more: Sequence[str] = ()
) -> str:
    """SQL for a relation: its columns of the contract, from rows that have these, and `more`."""
    types = contract().get(table, {})
    select = [
        cell(column, kind, cut(scope, table, column, guarded(screen, table, column, kind, columns)))
        if column in columns
        else f"NULL::{kind} AS {identifier(column)}"
        for column, kind in types.items()
    ]
    select += map(identifier, more)
    test = condition(scope, table, (set(types) or columns) & columns) if columns else ""
    where = f" WHERE {test}" if test else ""
    return f"SELECT {', '.join(select)} {rows}{where}"
