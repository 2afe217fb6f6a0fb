"""The cache file of one export: a copy of its tables, its facts, and stored answers.

It is a DuckDB file with the schemas `copy` (`ingest.copy`), `facts` and `results`, and the table `about` (name, value),
which records the definitions of the facts. A session that reads it holds a shared lock; a change needs an exclusive
one. While another session reads it, nothing is added: correct answers never depend on the file.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight import cache_folder
from nsys_insight.ingest import cache_entries, database, private
from nsys_insight.ingest.attach import attach_sqlite
from nsys_insight.ingest.copy import copy_export
from nsys_insight.ingest.database import DEFAULT_LIMITS
from nsys_insight.ingest.expected_schema import read_expected_schema
from nsys_insight.ingest.waiting import wait_for
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    import duckdb

    from nsys_insight.ingest.limits import Limits

# The number of exports that are copied at a time.
_MAX_COPIES = 4
_HOLDS = "copy, facts and answers"
# Limits of the stored answers. They have few rows, and each column takes at least one block.
_MAX_RESULTS, _MAX_ROWS = 1000, 100_000


class Result(NamedTuple):
    """A table of a session with an answer, and the sentences of each of its notes."""

    table: str
    notes: list[list[str]]


def entry_path(export: Path, *, use_cache: bool = True) -> Path:
    """Return the path of an export's cache file, whether it exists or not.

    Its name depends on the export and on the expected schema. It is in the cache folder, or without `use_cache` in a
    temporary one that is removed when the process ends.

    Raises:
        OSError: There is no usable cache folder.
    """
    import duckdb

    key = cache_folder.key(export, repr(read_expected_schema()), private.CACHE_KEY_PART, duckdb.__version__)
    return cache_folder.folder(use_cache=use_cache) / f"{key}.duckdb"


def find_entry(export: Path) -> Path | None:
    """Return the cache file of an export, locked (`cache_entries.use`), or None if it does not exist."""
    with suppress(OSError):
        return file if cache_entries.use(file := entry_path(export)) else None
    return None


def make_copy(
    export: Path,
    limits: Limits = DEFAULT_LIMITS,
    *,
    in_place: bool = True,
    use_cache: bool = True,
    connections: list[duckdb.DuckDBPyConnection] | None = None,
) -> Path:
    """Write the cache file of an export, with a copy of its tables, and return it; see `ingest.copy.copy_export`.

    Without `in_place`, rows are copied through ADBC even where DuckDB's extension could read the export. Without
    `use_cache`, or where no cache folder can be written to, the file is temporary and removed when the process ends.
    Existing facts and answers are preserved. Two processes may run this at once. The connection that copies is added to
    `connections`, so that it can be interrupted.

    Raises:
        As `copy_export`.
    """
    if use_cache:
        with suppress(OSError):
            return _make_copy(export, limits, connections, in_place=in_place, use_cache=True)
    return _make_copy(export, limits, connections, in_place=in_place, use_cache=False)


def _make_copy(
    export: Path,
    limits: Limits,
    connections: list[duckdb.DuckDBPyConnection] | None,
    *,
    in_place: bool,
    use_cache: bool,
) -> Path:
    import duckdb

    target = entry_path(export, use_cache=use_cache)
    with cache_entries.make_entry(target, _HOLDS, export) as path:
        connection = database.connect(limits)
        if connections is not None:
            connections.append(connection)
        try:
            connection.execute(f"ATTACH {literal(str(path))} AS target {database.STORAGE_OPTION}")
            source = attach_sqlite(connection, export, use_cache=use_cache) if in_place else None
            copy_export(connection, export, source)
            if target.is_file():
                with suppress(duckdb.Error):  # it is damaged
                    connection.execute(f"ATTACH {literal(str(target))} AS before (READ_ONLY)")
                    _copy_old_tables(connection)
            connection.execute("DETACH target")
        except duckdb.Error as error:
            if "No space left" in str(error):
                raise OSError(errno.ENOSPC, "no room for a copy of the trace", str(target.parent)) from None
            raise
        finally:
            connection.close()
    return target


def _copy_old_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Copy facts and answers from the database `before` to the database `target`."""
    tables = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'before'"
    for schema, table in connection.execute(tables).fetchall():
        if schema in ("facts", "results", "main"):
            name = f"{schema}.{identifier(table)}"
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS target.{schema}")
            connection.execute(f"CREATE TABLE target.{name} AS FROM before.{name}")


def make_copies(
    exports: Sequence[Path],
    limits: Limits,
    connections: list[duckdb.DuckDBPyConnection],
    *,
    in_place: bool = True,
    use_cache: bool = True,
) -> dict[Path, Path]:
    """Copy several exports in parallel; see `make_copy`.

    The connections that copy are added to `connections`, so that the caller can interrupt them.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_MAX_COPIES) as pool:
        work = {
            export: pool.submit(
                make_copy, export, limits, in_place=in_place, use_cache=use_cache, connections=connections
            )
            for export in exports
        }
        wait_for(work.values(), connections)
    return {export: future.result() for export, future in work.items()}


def list_stored_tables(
    connection: duckdb.DuckDBPyConnection, catalog: str, schema: str, definitions: str
) -> frozenset[str]:
    """List the tables of `facts` or `results` in an attached cache file; none where they have other definitions."""
    import duckdb

    with suppress(duckdb.Error):  # it has no facts, or is damaged
        made_with = connection.execute(f"SELECT value FROM {catalog}.main.about WHERE name = 'definitions'").fetchall()
        if made_with == [(definitions,)]:
            return frozenset(database.list_tables(connection, catalog, schema))
    return frozenset()


def add_tables(
    export: Path, work: Path, definitions: str, fact_tables: AbstractSet[str], results: Mapping[str, Result]
) -> None:
    """Add tables of a session's work file to the cache file of an export, unless another session reads it.

    Args:
        export: The export.
        work: A DuckDB file with the schemas `facts` and `internal`, which no connection has open.
        definitions: The digest of the definitions of facts; tables with other definitions are removed.
        fact_tables: The tables of the schema `facts`.
        results: Answers by key.

    Raises:
        OSError: The cache folder cannot be written to.
        TraceError: The export has changed.
        duckdb.Error: A file is damaged, or the disk is full.
    """
    import duckdb

    with cache_entries.change_entry(entry_path(export), _HOLDS, export) as path:
        if path is None:
            return
        with duckdb.connect(config={"memory_limit": "1GB", "threads": 2}) as connection:
            connection.execute(f"ATTACH {literal(str(path))} AS store {database.STORAGE_OPTION}")
            connection.execute(f"ATTACH {literal(str(work))} AS work (READ_ONLY)")
            connection.execute("BEGIN")
            if not list_stored_tables(connection, "store", "results", definitions):
                connection.execute(
                    f"""DROP SCHEMA IF EXISTS store.facts CASCADE;
                        DROP SCHEMA IF EXISTS store.results CASCADE;
                        CREATE OR REPLACE TABLE store.main.about AS
                            SELECT 'definitions' AS name, {literal(definitions)} AS value;
                        CREATE SCHEMA store.facts;
                        CREATE SCHEMA store.results;
                        CREATE TABLE store.results.notes (key VARCHAR, texts VARCHAR[][])"""
                )
            for table in sorted(fact_tables):
                name = f"facts.{identifier(table)}"
                connection.execute(f"CREATE OR REPLACE TABLE store.{name} AS FROM work.{name}")
            _add_results(connection, results)
            connection.execute("COMMIT")


def _add_results(connection: duckdb.DuckDBPyConnection, results: Mapping[str, Result]) -> None:
    ((count,),) = connection.execute("SELECT count(*) FROM store.results.notes").fetchall()
    if count + len(results) > _MAX_RESULTS:
        for (key,) in connection.execute("SELECT key FROM store.results.notes").fetchall():
            connection.execute(f"DROP TABLE store.results.answer_{key}")
        connection.execute("TRUNCATE store.results.notes")
    for key, result in results.items():
        ((rows,),) = connection.execute(f"SELECT count(*) FROM work.{result.table}").fetchall()
        if rows <= _MAX_ROWS:
            connection.execute(f"CREATE OR REPLACE TABLE store.results.answer_{key} AS FROM work.{result.table}")
            connection.execute("INSERT INTO store.results.notes VALUES (?, ?)", [key, result.notes])
