"""The cache file of one export: a copy of its tables, the facts found about it, and answers.

It is a DuckDB file with the schemas `copy` (`ingest.copy`), `facts` and `results`, and the table `about` (name, value),
which says with which definitions of facts these were made. A session reads it and holds a shared lock; who changes it
needs an exclusive one. Where somebody else reads it, nothing is added: it is never needed for correctness.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.ingest import cache_entries, cache_folder, database, private
from nsys_insight.ingest.attach import attach_sqlite
from nsys_insight.ingest.contract import contract
from nsys_insight.ingest.copy import copy_export
from nsys_insight.ingest.database import DEFAULT
from nsys_insight.ingest.waiting import wait_for
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    import duckdb

    from nsys_insight.ingest.limits import Limits

# How many exports are copied at once.
_BUILDERS = 4
_HOLDS = "copy, facts and answers"
# Results have few rows, and each column takes a block at least.
_MOST_RESULTS, _MOST_ROWS = 1000, 100_000


class Result(NamedTuple):
    """A table of a session that has an answer, and the sentences of each of its notes."""

    table: str
    notes: list[list[str]]


def entry(export: Path, *, lasting: bool = True) -> Path:
    """Return where the cache file of an export is or would be: named by the export's identity and what is read from it.

    It is in the cache folder, or without `lasting` in one that goes when the process ends.

    Raises:
        OSError: There is no usable cache folder.
    """
    import duckdb

    key = cache_folder.key(export, repr(contract()), private.WITHOUT, duckdb.__version__)
    return cache_folder.folder(lasting=lasting) / f"{key}.duckdb"


def find(export: Path) -> Path | None:
    """Return the cache file of an export, if there is one, and hold a lock on it (`cache_entries.use`)."""
    with suppress(OSError):
        return file if cache_entries.use(file := entry(export)) else None
    return None


def copied(
    export: Path,
    limits: Limits = DEFAULT,
    *,
    in_place: bool = True,
    lasting: bool = True,
    connections: list[duckdb.DuckDBPyConnection] | None = None,
) -> Path:
    """Make the cache file of an export with a copy of its tables and return it; see `ingest.copy.copy_export`.

    Without `in_place`, rows are copied through ADBC also where DuckDB's extension could read the export.
    Where no cache folder can be written to, or without `lasting`, it is a temporary file, which is removed when the
    process ends. Facts and answers that were there stay. Two processes may do so at once. The connection that copies is
    added to `connections`, so that it can be interrupted.

    Raises:
        As `copy_export`.
    """
    if lasting:
        with suppress(OSError):
            return _copied(export, limits, connections, in_place=in_place, lasting=True)
    return _copied(export, limits, connections, in_place=in_place, lasting=False)


def _copied(
    export: Path, limits: Limits, connections: list[duckdb.DuckDBPyConnection] | None, *, in_place: bool, lasting: bool
) -> Path:
    import duckdb

    target = entry(export, lasting=lasting)
    with cache_entries.making(target, _HOLDS, export) as path:
        connection = database.connect(limits)
        if connections is not None:
            connections.append(connection)
        try:
            connection.execute(f"ATTACH {literal(str(path))} AS built {database.STORAGE}")
            source = attach_sqlite(connection, export, lasting=lasting) if in_place else None
            copy_export(connection, export, source)
            if target.is_file():
                with suppress(duckdb.Error):  # it is damaged
                    connection.execute(f"ATTACH {literal(str(target))} AS before (READ_ONLY)")
                    _carry_over(connection)
            connection.execute("DETACH built")
        except duckdb.Error as error:
            if "No space left" in str(error):
                raise OSError(errno.ENOSPC, "no room for a copy of the trace", str(target.parent)) from None
            raise
        finally:
            connection.close()
    return target


def _carry_over(connection: duckdb.DuckDBPyConnection) -> None:
    """Copy facts and answers from the database `before` to the database `built`."""
    tables = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'before'"
    for schema, table in connection.execute(tables).fetchall():
        if schema in ("facts", "results", "main"):
            name = f"{schema}.{identifier(table)}"
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS built.{schema}")
            connection.execute(f"CREATE TABLE built.{name} AS FROM before.{name}")


def copies(
    exports: Sequence[Path],
    limits: Limits,
    connections: list[duckdb.DuckDBPyConnection],
    *,
    in_place: bool = True,
    lasting: bool = True,
) -> dict[Path, Path]:
    """Copy exports, several at once; see `copied`.

    The connections that do so are added to `connections`, for whoever is to stop them.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_BUILDERS) as pool:
        work = {
            export: pool.submit(copied, export, limits, in_place=in_place, lasting=lasting, connections=connections)
            for export in exports
        }
        wait_for(work.values(), connections)
    return {export: each.result() for export, each in work.items()}


def tables_of(connection: duckdb.DuckDBPyConnection, catalog: str, schema: str, definitions: str) -> frozenset[str]:
    """List the tables of `facts` or `results` in an attached cache file; none where they were made otherwise."""
    import duckdb

    with suppress(duckdb.Error):  # it has no facts, or is damaged
        made_with = connection.execute(f"SELECT value FROM {catalog}.main.about WHERE name = 'definitions'").fetchall()
        if made_with == [(definitions,)]:
            return frozenset(database.tables(connection, catalog, schema))
    return frozenset()


def add(export: Path, work: Path, definitions: str, facts: AbstractSet[str], results: Mapping[str, Result]) -> None:
    """Add tables of a session's work file to the cache file of an export, unless another session reads that.

    Args:
        export: The export.
        work: A DuckDB file with the schemas `facts` and `internal`, which no connection has open.
        definitions: What stands for the definitions of facts; tables of others are removed.
        facts: The tables of `facts`.
        results: Answers by key.

    Raises:
        OSError: The cache folder cannot be written to.
        TraceError: The export has changed.
        duckdb.Error: A file is damaged, or the disk is full.
    """
    import duckdb

    with cache_entries.changing(entry(export), _HOLDS, export) as path:
        if path is None:
            return
        with duckdb.connect(config={"memory_limit": "1GB", "threads": 2}) as connection:
            connection.execute(f"ATTACH {literal(str(path))} AS store {database.STORAGE}")
            connection.execute(f"ATTACH {literal(str(work))} AS work (READ_ONLY)")
            connection.execute("BEGIN")
            if not _is_made_with(connection, definitions):
                connection.execute(
                    f"""DROP SCHEMA IF EXISTS store.facts CASCADE;
                        DROP SCHEMA IF EXISTS store.results CASCADE;
                        CREATE OR REPLACE TABLE store.main.about AS
                            SELECT 'definitions' AS name, {literal(definitions)} AS value;
                        CREATE SCHEMA store.facts;
                        CREATE SCHEMA store.results;
                        CREATE TABLE store.results.notes (key VARCHAR, texts VARCHAR[][])"""
                )
            for table in sorted(facts):
                name = f"facts.{identifier(table)}"
                connection.execute(f"CREATE OR REPLACE TABLE store.{name} AS FROM work.{name}")
            _add_results(connection, results)
            connection.execute("COMMIT")


def _is_made_with(connection: duckdb.DuckDBPyConnection, definitions: str) -> bool:
    return bool(tables_of(connection, "store", "results", definitions))


def _add_results(connection: duckdb.DuckDBPyConnection, results: Mapping[str, Result]) -> None:
    ((count,),) = connection.execute("SELECT count(*) FROM store.results.notes").fetchall()
    if count + len(results) > _MOST_RESULTS:
        for (key,) in connection.execute("SELECT key FROM store.results.notes").fetchall():
            connection.execute(f"DROP TABLE store.results.answer_{key}")
        connection.execute("TRUNCATE store.results.notes")
    for key, result in results.items():
        ((rows,),) = connection.execute(f"SELECT count(*) FROM work.{result.table}").fetchall()
        if rows <= _MOST_ROWS:
            connection.execute(f"CREATE OR REPLACE TABLE store.results.answer_{key} AS FROM work.{result.table}")
            connection.execute("INSERT INTO store.results.notes VALUES (?, ?)", [key, result.notes])
