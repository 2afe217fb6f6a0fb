"""Attaching the files of a session to its connection, so that their rows can be read in place."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from nsys_insight.errors import TraceError
from nsys_insight.ingest import extents
from nsys_insight.ingest.identify import Kind
from nsys_insight.ingest.ncu.store import attach as attach_ncu
from nsys_insight.ingest.source import Source
from nsys_insight.ingest.sqlite_file import opened
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import duckdb

    from nsys_insight.ingest.files import File


def attach(
    connection: duckdb.DuckDBPyConnection, files: Sequence[File], built: Mapping[Path, Path | None], ncu: Path | None
) -> list[Source] | None:
    """Attach each file, or what was built of it; None where a file needs the extension and there is none.

    `ncu` is a file that `ncu import` wrote, to be read beside a single trace.
    """
    sources = []
    for number, file in enumerate(files):
        name = "trace" if len(files) == 1 else f"trace_{number}"
        database = built.get(file.path)
        if database:
            source: Source | None = attach_database(connection, database, name)
        elif file.kind is Kind.PARQUET:
            source = attach_parquet(connection, file.path)
        elif file.kind is Kind.DATABASE:
            source = attach_database(connection, file.path, name, schema="raw")
        else:
            source = attach_sqlite(connection, file.path, name)
        if source is None:
            return None
        sources.append(attach_ncu(connection, ncu, source) if ncu else source)
    return sources


def is_unreadable_cell(error: Exception) -> bool:
    """Tell whether the extension met text that is not UTF-8, or a cell of another type than its column's."""
    text = str(error)
    return isinstance(error, UnicodeDecodeError) or "Mismatch Type Error" in text or "nvalid unicode" in text


def is_damaged(error: Exception) -> bool:
    """Tell whether SQLite found what no SQLite file has."""
    text = str(error)
    return any(
        word in text for word in ("disk image is malformed", "file is not a database", "disk I/O error", "blob too big")
    )


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
