"""Attaching the files of a session to its connection, so that their rows can be read in place."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from nsys_insight.errors import TraceError
from nsys_insight.ingest import extension, extents, facts_folder
from nsys_insight.ingest.database import tables
from nsys_insight.ingest.files import Kind
from nsys_insight.ingest.ncu.store import attach as attach_ncu
from nsys_insight.ingest.source import NOT_COPIED, Export, Source
from nsys_insight.ingest.sqlite_file import sqlite_columns
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import duckdb

    from nsys_insight.ingest.files import File


# The name of an attached cache file (`ingest.store`), and its beginning where there are several.
KEPT = "kept"


def attach(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[File],
    built: Mapping[Path, Path | None],
    ncu: Path | None,
    *,
    lasting: bool = True,
) -> list[Source] | None:
    """Attach each file, or what was built of it; None where a file needs the extension and that cannot be used.

    `lasting` is as in `extension.load`, `ncu` is a file that `ncu import` wrote, to be read beside a single trace.
    """
    sources: list[Source] = []
    source: Source | None
    # What else a DuckDB file holds is inert, unless that extension is there: its functions read any SQLite file.
    may_scan = not any(file.kind is Kind.DATABASE for file in files)
    for number, file in enumerate(files):
        name, kept = ("trace", KEPT) if len(files) == 1 else (f"trace_{number}", f"{KEPT}_{number}")
        if cached := built.get(file.path):
            source = _attach_cached(connection, cached, kept, file.path, name, lasting=lasting)
        elif file.kind is Kind.PARQUET:
            source = attach_parquet(connection, file.path)
        elif file.kind is Kind.DATABASE:
            source = attach_database(connection, file.path, name)
        else:
            source = attach_sqlite(connection, file.path, name, lasting=lasting) if may_scan else None
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


def attach_sqlite(
    connection: duckdb.DuckDBPyConnection, path: Path, name: str = "trace", *, lasting: bool = True
) -> Source | None:
    """Attach a SQLite export, to be scanned in place; None where the extension cannot be loaded.

    `lasting` is as in `extension.load`.
    """
    import duckdb

    which = extension.scanner()
    if which is None:
        return None
    try:
        extension.load(connection, which, lasting=lasting)
    except duckdb.Error:
        return None
    connection.execute(f"ATTACH {literal(str(path.absolute()))} AS {name} (TYPE sqlite, READ_ONLY)")
    columns = sqlite_columns(path)
    in_order = cache(partial(extents.known, path, columns))
    relations = {table: f"{name}.{identifier(table)}" for table in columns}
    return Source(relations, columns, in_order, Export(name, path, frozenset(columns)))


def attach_database(connection: duckdb.DuckDBPyConnection, path: Path, name: str) -> Source:
    """Attach a converted trace: a DuckDB file that holds raw tables in the schema `raw`."""
    connection.execute(f"ATTACH {literal(str(path.absolute()))} AS {name} (TYPE duckdb, READ_ONLY)")
    columns = tables(connection, name, "raw")
    if "StringIds" not in columns:
        raise TraceError(
            f"{path} is a DuckDB file, but not one that nsys-insight convert wrote",
            "nsys-insight convert trace.nsys-rep -o trace.duckdb",
        )
    return Source({table: f"{name}.raw.{identifier(table)}" for table in columns}, columns)


def _attach_cached(  # noqa: PLR0913 - what is attached, and as what
    connection: duckdb.DuckDBPyConnection, cached: Path, kept: str, export: Path, name: str, *, lasting: bool
) -> Source | None:
    """Attach the cache file of an export, and the export for what is not copied; None where that cannot be scanned."""
    connection.execute(f"ATTACH {literal(str(cached.absolute()))} AS {kept} (TYPE duckdb, READ_ONLY)")
    columns = tables(connection, kept, "copy")
    relations = {table: f"{kept}.copy.{identifier(table)}" for table in columns}
    if "StringIds" in columns:  # a copy made without the extension has everything
        return Source(relations, columns)
    source = attach_sqlite(connection, export, name, lasting=lasting)
    if source is None or not columns:
        return source
    left = NOT_COPIED & source.columns.keys()
    return Source(
        relations | {table: source.relations[table] for table in left},
        columns | {table: source.columns[table] for table in left},
        export=Export(name, export, left),
    )


def attach_parquet(connection: duckdb.DuckDBPyConnection, folder: Path) -> Source:
    """Read a folder that ``nsys export --type parquetdir`` made, ``convert`` or ``fleet``: one Parquet file a table."""
    relations, columns = {}, {}
    about = facts_folder.about(folder)
    for file in parquet_files(folder):
        relations[file.stem] = f"read_parquet({literal(str(file))})"
        known = about.columns.get(file.stem) if about else None
        if known is None:
            known = [name for name, *_ in connection.execute(f"DESCRIBE FROM {relations[file.stem]}").fetchall()]
        columns[file.stem] = set(known)
    return Source(relations, columns, facts=facts_folder.stored(folder, about) if about else None)


def parquet_files(folder: Path) -> list[Path]:
    """The files of such a folder: of one that ``convert`` or ``fleet`` made, those with the raw tables."""
    folder = folder.absolute()
    return sorted((folder / "raw" if (folder / "raw").is_dir() else folder).glob("*.parquet"))
