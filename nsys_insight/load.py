"""Bring nsys exports into DuckDB: a connection, and the files attached to it."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from nsys_insight import extents
from nsys_insight.errors import TraceError
from nsys_insight.raw import Source
from nsys_insight.sqlite_file import opened
from nsys_insight.sqltext import identifier, literal

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

# What a query may hold in memory before it spills to disk. With 512 MB no report on 6.5 million kernels took more than
# 1 GB for the whole process, and none slowed by more than a third (docs/performance.md).
DEFAULT_MEMORY = "512MB"
_CONNECTIONS = count(1)


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
    return Source({table: f"{name}.{identifier(table)}" for table in columns}, columns, in_order, path)


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
        with opened(path) as database:
            for table, column in database.execute(
                "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'"
            ):
                found.setdefault(table, set()).add(column)
            named = "SELECT name FROM sqlite_master WHERE type = 'view'"
            for (view,) in database.execute(named).fetchall() if views else ():
                with suppress(sqlite3.OperationalError):
                    columns = database.execute("SELECT name FROM pragma_table_info(?)", (view,)).fetchall()
                    found[view] = {column for (column,) in columns}
    except sqlite3.Error as error:
        raise TraceError(f"{path} cannot be read: {error}", "export it again: nsys export --type sqlite") from None
    return found
