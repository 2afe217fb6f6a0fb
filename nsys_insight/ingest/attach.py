"""Attach the files of a session to its connection, so that their rows are read in place."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from nsys_insight.errors import TraceError
from nsys_insight.ingest import extension, facts_folder, time_bounds
from nsys_insight.ingest.database import attach_file, list_tables
from nsys_insight.ingest.expected_schema import has_expected_types
from nsys_insight.ingest.files import File, Kind, list_parquet_files
from nsys_insight.ingest.ncu.store import attach as attach_ncu
from nsys_insight.ingest.source import NOT_COPIED, Export, Source
from nsys_insight.ingest.sqlite_file import read_sqlite_types
from nsys_insight.sql.quoting import identifier, literal, read_parquet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import duckdb


# The catalog of an attached cache file (`ingest.store`). With several traces, a number is appended.
CACHE_CATALOG = "cache_file"


def attach(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[File],
    cache_files: Mapping[Path, Path | None],
    ncu: Path | None,
    *,
    use_cache: bool = True,
) -> list[Source] | None:
    """Attach each file, or its cache file; None where a file needs the SQLite extension and that cannot be loaded.

    Args:
        connection: The connection.
        files: The files of the session.
        cache_files: The cache file of each SQLite export; None where it has none.
        ncu: A file that `ncu import` wrote, which is read next to a single trace.
        use_cache: As in `extension.load`.
    """
    sources: list[Source] = []
    source: Source | None
    # Views and macros of a DuckDB file are harmless unless the SQLite extension is loaded: its functions read any
    # SQLite file.
    can_scan = not any(file.kind is Kind.DATABASE for file in files)
    for number, file in enumerate(files):
        name, cache_catalog = (
            ("trace", CACHE_CATALOG) if len(files) == 1 else (f"trace_{number}", f"{CACHE_CATALOG}_{number}")
        )
        if cache_file := cache_files.get(file.path):
            source = _attach_cached(connection, cache_file, cache_catalog, file.path, name, use_cache=use_cache)
        elif file.kind is Kind.PARQUET:
            source = attach_parquet(connection, file.path)
        elif file.kind is Kind.DATABASE:
            source = attach_database(connection, file.path, name)
        else:
            source = attach_sqlite(connection, file.path, name, use_cache=use_cache) if can_scan else None
        if source is None:
            return None
        sources.append(attach_ncu(connection, ncu, source) if ncu else source)
    return sources


def is_unreadable_cell(error: Exception) -> bool:
    """Return whether the extension met text that is not UTF-8, or a cell whose type is not its column's."""
    text = str(error)
    return isinstance(error, UnicodeDecodeError) or "Mismatch Type Error" in text or "nvalid unicode" in text


def is_damaged(error: Exception) -> bool:
    """Return whether SQLite reported that the file is damaged."""
    text = str(error)
    return any(
        word in text for word in ("disk image is malformed", "file is not a database", "disk I/O error", "blob too big")
    )


def attach_sqlite(
    connection: duckdb.DuckDBPyConnection, path: Path, name: str = "trace", *, use_cache: bool = True
) -> Source | None:
    """Attach a SQLite export to scan it in place. Return None where the extension cannot be loaded.

    Return None also for a column that is not declared as nsys does: the extension reads each cell by its declaration, a
    number of a column without a type as bytes. A copy made cell by cell reads it by its own type (`ingest.copy`).

    `use_cache` is as in `extension.load`.
    """
    import duckdb

    extension_file = extension.find_scanner()
    types = read_sqlite_types(path)
    if extension_file is None or not has_expected_types(types):
        return None
    try:
        extension.load(connection, extension_file, use_cache=use_cache)
    except duckdb.Error:
        return None
    connection.execute(f"ATTACH {literal(str(path.absolute()))} AS {name} (TYPE sqlite, READ_ONLY)")
    columns = {table: set(column_types) for table, column_types in types.items()}
    find_bounds = cache(partial(time_bounds.read_time_bounds, path, columns))
    relations = {table: f"{name}.{identifier(table)}" for table in columns}
    return Source(relations, columns, find_bounds, Export(name, path, frozenset(columns)))


def attach_database(connection: duckdb.DuckDBPyConnection, path: Path, name: str) -> Source:
    """Attach a converted trace: a DuckDB file with raw tables in the schema `raw`."""
    attach_file(connection, path, name)
    columns = list_tables(connection, name, "raw")
    if "StringIds" not in columns:
        raise TraceError(
            f"{path} is a DuckDB file, but not one that nsys-insight convert wrote",
            "nsys-insight convert trace.nsys-rep -o trace.duckdb",
        )
    return Source({table: f"{name}.raw.{identifier(table)}" for table in columns}, columns)


def _attach_cached(  # noqa: PLR0913 - two files, each with its catalog
    connection: duckdb.DuckDBPyConnection,
    cache_file: Path,
    cache_catalog: str,
    export: Path,
    name: str,
    *,
    use_cache: bool,
) -> Source | None:
    """Attach the cache file of an export, and the export itself for the tables that are not copied.

    Return None where the export cannot be scanned.
    """
    connection.execute(f"ATTACH {literal(str(cache_file.absolute()))} AS {cache_catalog} (TYPE duckdb, READ_ONLY)")
    columns = list_tables(connection, cache_catalog, "copy")
    relations = {table: f"{cache_catalog}.copy.{identifier(table)}" for table in columns}
    if "StringIds" in columns:  # a copy made without the extension has all tables
        return Source(relations, columns)
    source = attach_sqlite(connection, export, name, use_cache=use_cache)
    if source is None or not columns:
        return source
    tables_in_export = NOT_COPIED & source.columns.keys()
    return Source(
        relations | {table: source.relations[table] for table in tables_in_export},
        columns | {table: source.columns[table] for table in tables_in_export},
        export=Export(name, export, tables_in_export),
    )


def attach_parquet(connection: duckdb.DuckDBPyConnection, folder: Path) -> Source:
    """Read a folder from ``nsys export --type parquetdir``, ``convert`` or ``fleet``: one Parquet file per table."""
    relations, columns = {}, {}
    manifest = facts_folder.read_manifest(folder)
    facts_folder.check_files(folder, manifest)
    for file in list_parquet_files(folder):
        relations[file.stem] = read_parquet(file)
        column_names = manifest.columns.get(file.stem) if manifest else None
        if column_names is None:
            column_names = [name for name, *_ in connection.execute(f"DESCRIBE FROM {relations[file.stem]}").fetchall()]
        columns[file.stem] = set(column_names)
    return Source(relations, columns, facts=facts_folder.locate_facts(folder, manifest) if manifest else None)
