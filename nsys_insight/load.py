"""Bring an nsys export into DuckDB: one raw relation for each table of the contract, whatever the file has."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

from nsys_insight import extents
from nsys_insight.errors import TraceError
from nsys_insight.paths import queries_folder
from nsys_insight.scope import WHOLE_TRACE, Scope, condition, cut
from nsys_insight.sqltext import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb

# What a query may hold in memory before it spills to disk. With 512 MB no report on 6.5 million kernels took more than
# 1 GB for the whole process, and none slowed by more than a third (docs/performance.md).
DEFAULT_MEMORY = "512MB"
_CONNECTIONS = count(1)

# The tables of which the whole is read to say when a GPU was idle, and why.
WHOLE = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "OSRT_API",
    "PROFILER_OVERHEAD",
)


@cache
def contract() -> dict[str, dict[str, str]]:
    """The tables that the model reads, each with its columns and their DuckDB types, from `queries/model/0_raw.sql`."""
    text = re.sub(r"--[^\n]*", "", (queries_folder() / "model" / "0_raw.sql").read_text(encoding="utf-8"))
    return {
        table: {name.strip('"'): kind for name, kind in (column.split() for column in body.split(","))}
        for table, body in re.findall(r"CREATE TABLE (\w+) \(([^)]*)\)", text)
    }


@dataclass(frozen=True)
class Source:
    """An opened trace: where each raw table's rows are, which columns they have, and where big tables begin and end."""

    relations: dict[str, str]
    columns: dict[str, set[str]]
    extents: extents.Extents = field(default_factory=dict)


def spill_folder() -> str:
    """Where answers of this process are handed over from, and beside which queries spill: a folder not yet made."""
    import os
    import tempfile

    return os.path.join(tempfile.gettempdir(), f"nsys-insight-{os.getpid()}")  # noqa: PTH118 - pathlib would cost start-up time


def connect(memory: str | None = None) -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB, which spills to a folder of its own among the temporary ones, never beside a trace."""
    import duckdb

    try:
        return duckdb.connect(
            config={
                # Row order is of no meaning in SQL; giving it up lets the extension scan a SQLite file in parallel.
                "preserve_insertion_order": False,
                "memory_limit": memory or DEFAULT_MEMORY,
                # Two databases that spill to one folder give their files the same names, and read each other's.
                "temp_directory": f"{spill_folder()}-{next(_CONNECTIONS)}",
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                # DuckDB checks a signature by hashing the 35 MB of the extension, 0.08 s at each start. The file came
                # from PyPI as this code did; `sandbox.lock` forbids it before anybody's SQL runs.
                "allow_unsigned_extensions": True,
            }
        )
    except duckdb.Error as error:
        from nsys_insight.errors import UsageError

        raise UsageError(f"--memory cannot be {memory!r}: {error}", "give a size such as 512MB or 4GB") from None


def scanner() -> Path | None:
    """DuckDB's SQLite extension as installed from PyPI, or None where there is none for this DuckDB and platform."""
    from importlib.util import find_spec
    from pathlib import Path

    import duckdb

    spec = find_spec("duckdb_extension_sqlite_scanner")
    if not spec or not spec.origin:
        return None
    path = Path(spec.origin).parent / "extensions" / f"v{duckdb.__version__}" / "sqlite_scanner.duckdb_extension"
    return path if path.is_file() else None


def attach_sqlite(connection: duckdb.DuckDBPyConnection, path: Path, name: str = "trace") -> Source | None:
    """Attach a SQLite export, to be scanned in place; None where the extension cannot be loaded."""
    import duckdb

    extension = scanner()
    if extension is None:
        return None
    try:
        connection.execute(f"LOAD {literal(str(extension))}")
    except duckdb.Error:
        return None
    connection.execute(f"ATTACH {literal(str(path))} AS {name} (TYPE sqlite, READ_ONLY)")
    columns = sqlite_columns(path)
    in_order = extents.known(path, sqlite_columns(path, views=False))  # a view has no row numbers to look at
    return Source({table: f"{name}.{identifier(table)}" for table in columns}, columns, in_order)


def attach_database(
    connection: duckdb.DuckDBPyConnection, path: Path, name: str = "trace", *, schema: str = "main"
) -> Source:
    """Attach a DuckDB file that holds raw tables in `schema`: `main` in the cache, `raw` in a converted trace."""
    connection.execute(f"ATTACH {literal(str(path))} AS {name} (READ_ONLY)")
    found = connection.execute(
        f"""SELECT table_name, column_name FROM duckdb_columns()
            WHERE database_name = {literal(name)} AND schema_name = {literal(schema)}"""
    ).fetchall()
    columns: dict[str, set[str]] = {}
    for table, column in found:
        columns.setdefault(table, set()).add(column)
    if "StringIds" not in columns and schema != "main":
        raise TraceError(
            f"{path} is a DuckDB file, but not one that nsys-insight convert wrote",
            "nsys-insight convert trace.nsys-rep -o trace.duckdb",
        )
    return Source({table: f"{name}.{schema}.{identifier(table)}" for table in columns}, columns)


def attach_parquet(connection: duckdb.DuckDBPyConnection, folder: Path) -> Source:
    """Read a folder that ``nsys export --type parquetdir`` made, or ``convert``: one Parquet file a table."""
    relations, columns = {}, {}
    folder = folder / "raw" if (folder / "raw").is_dir() else folder
    for file in sorted(folder.glob("*.parquet")):
        relations[file.stem] = f"read_parquet({literal(str(file))})"
        described = connection.execute(f"DESCRIBE FROM {relations[file.stem]}").fetchall()
        columns[file.stem] = {name for name, *_ in described}
    return Source(relations, columns)


def sqlite_columns(path: Path, *, views: bool = True) -> dict[str, set[str]]:
    """The tables of a SQLite file with their columns, and the views, but for those over what is not there.

    Raises:
        TraceError: The file is damaged.
    """
    import sqlite3

    found: dict[str, set[str]] = {}
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            for table, column in database.execute(
                "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'"
            ):
                found.setdefault(table, set()).add(column)
            named = "SELECT name FROM sqlite_master WHERE type = 'view'"
            for (view,) in database.execute(named).fetchall() if views else ():
                with suppress(sqlite3.OperationalError):
                    columns = database.execute("SELECT name FROM pragma_table_info(?)", (view,)).fetchall()
                    found[view] = {column for (column,) in columns}
        finally:
            database.close()
    except sqlite3.Error as error:
        raise TraceError(f"{path} cannot be read: {error}", "export it again: nsys export --type sqlite") from None
    return found


def cell(name: str, kind: str, expression: str = "") -> str:
    """SQL for a column of a trace as the type that the contract gives it.

    Text in a trace need not be UTF-8 (SQLite does not look), and DuckDB takes it for granted that it is: bytes that are
    not come out in hexadecimal.
    """
    column = identifier(name)
    value = f"{expression or column}::{kind}"
    if kind == "VARCHAR":
        value = f"coalesce(try(decode(encode({value}))), encode({value})::VARCHAR)"
    return f"{value} AS {column}"


def _relation(connection: duckdb.DuckDBPyConnection, source: Source, table: str) -> str:
    """SQL for where a table's rows are, with at most one API call to a correlation id.

    A capture of runtime and driver calls may give both one id. GPU work belongs to the outer one; the inner ones get
    theirs negated, which joins with nothing. Such a capture has it from the start: to look at more than the first calls
    would double the cost of `launches` on a big trace.
    """
    rows = source.relations[table]
    needed = {"start", "end", "globalTid", "correlationId", "eventClass"}
    if table != "CUPTI_ACTIVITY_KIND_RUNTIME" or not needed <= source.columns[table]:
        return rows
    first = f"""SELECT globalTid >> 24 AS process, correlationId FROM {rows}
        WHERE correlationId IS NOT NULL AND eventClass IS DISTINCT FROM 67 LIMIT 10000"""
    repeats = f"SELECT count(*) > count(DISTINCT (process, correlationId)) FROM ({first})"
    if not connection.execute(repeats).fetchall()[0][0]:
        return rows
    return f"""(SELECT * REPLACE (CASE WHEN row_number() OVER (
        PARTITION BY globalTid >> 24, correlationId, eventClass IS NOT DISTINCT FROM 67
        ORDER BY start, "end" DESC, eventClass
    ) = 1 THEN correlationId ELSE -correlationId END AS correlationId) FROM {rows})"""


def create_raw_views(
    connection: duckdb.DuckDBPyConnection, source: Source, scope: Scope, *, as_exported: bool = False
) -> None:
    """Make the relations of the contract in the schema `raw`: each has its columns, and the rows in scope.

    With `as_exported`, what else the file has follows: other columns behind those of the contract, and other tables.
    The schema `whole` holds what explains why a GPU was idle, whatever part of it the scope is about.
    """
    statements = ["CREATE SCHEMA IF NOT EXISTS raw", "CREATE SCHEMA IF NOT EXISTS whole"]
    others = sorted(source.columns.keys() - contract().keys()) if as_exported else []
    for table in (*contract(), *others):
        columns = source.columns.get(table, set())
        more = sorted(columns - contract().get(table, {}).keys()) if as_exported else []
        rows = f"FROM {_relation(connection, source, table)}" if columns else "WHERE false"
        statements.append(_raw_view("raw", table, columns, rows, scope, more))
        if table in WHOLE:
            statements.append(_raw_view("whole", table, columns, rows, Scope(device=scope.device)))
    # A scope has written down its own time; see `nsys_insight.scope`.
    wall = extents.select(source.extents) if scope == WHOLE_TRACE else "FROM main.scope_windows"
    statements.append(f"CREATE OR REPLACE VIEW raw.wall AS {wall}")
    connection.execute(";\n".join(statements))


def _raw_view(  # noqa: PLR0913, PLR0917 - what a relation is made of
    schema: str, table: str, columns: set[str], rows: str, scope: Scope, more: Sequence[str] = ()
) -> str:
    """SQL that creates the relation of a table: the columns of the contract, from rows that have these, and `more`."""
    types = contract().get(table, {})
    select = [
        cell(name, kind, cut(scope, table, name)) if name in columns else f"NULL::{kind} AS {identifier(name)}"
        for name, kind in types.items()
    ]
    select += map(identifier, more)
    test = condition(scope, table, (set(types) or columns) & columns) if columns else ""
    where = f" WHERE {test}" if test else ""
    return f"CREATE OR REPLACE VIEW {schema}.{identifier(table)} AS SELECT {', '.join(select)} {rows}{where}"
