"""A SQLite export in which there are tables and nothing else: no view, whose text would be evaluated when it is read.

nsys writes tables. DuckDB takes a view of a SQLite file for SQL of its own, so that a view could read any other file
(`sqlite_scan` heeds no setting of DuckDB's). Where an export has more than tables, a copy is made by SQLite, which lets
a view reach the tables of its own file and no more, and holds what views give as tables.
"""

from __future__ import annotations

import errno
import os
from contextlib import closing
from typing import TYPE_CHECKING

from nsys_insight.errors import TraceError
from nsys_insight.ingest.contract import contract
from nsys_insight.ingest.sqlite_file import opened, uri
from nsys_insight.ingest.waiting import wait_for
from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection
    from pathlib import Path

# What SQLite takes to be a table is told by the text of its definition; DuckDB goes by the column `type`.
_PLAIN = """
    SELECT count(*) = 0 FROM sqlite_master
    WHERE NOT (
        type = 'table' AND rootpage > 0 AND sql LIKE 'CREATE TABLE%' AND sql NOT LIKE '%WITHOUT%ROWID%'
        OR type = 'index' AND rootpage > 0 AND (sql IS NULL OR sql LIKE 'CREATE INDEX%' OR sql LIKE 'CREATE UNIQUE%')
    )"""
_GENERATED = """
    SELECT count(*) = 0 FROM sqlite_master AS m, pragma_table_xinfo(m.name) AS c
    WHERE m.type = 'table' AND c.hidden > 1"""
_NAMED = "SELECT name FROM trace.sqlite_master WHERE type = ? AND (rootpage > 0) = ? ORDER BY name"
# What a view may cost: instructions of SQLite for each byte of the file, and what the copy may hold more than the file.
_STEPS_PER_BYTE, _STEPS, _TICK, _PAGES = 100, 50_000_000, 1_000_000, 10_000
_TIMES = 4
_LONGEST_BYTES = 100_000_000
_AFFINITIES = {
    "INT": "INTEGER", "CHAR": "TEXT", "CLOB": "TEXT", "TEXT": "TEXT", "REAL": "REAL", "FLOA": "REAL", "DOUB": "REAL"
}  # fmt: skip


def is_so(path: Path) -> bool:
    """Tell whether an export has tables only, with their indexes, and only columns that are stored.

    Raises:
        sqlite3.Error: The file is damaged.
    """
    with opened(path) as database:
        return all(database.execute(test).fetchone()[0] for test in (_PLAIN, _GENERATED))


def copy(source: Path, target: Path) -> list[str]:
    """Copy what an export has as tables and as views into a file that has tables; return the views that cannot be.

    Those are views over what is not in the file, and views without end.

    Raises:
        TraceError: The file is damaged.
        OSError: The disk is full.
        KeyboardInterrupt: Ctrl-C was typed.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool, closing(_connect(target)) as made:
        work = pool.submit(_copy, made, source)
        wait_for([work], [made])
        return work.result()


def _connect(target: Path) -> sqlite3.Connection:
    import sqlite3

    return sqlite3.connect(target.absolute().as_uri(), uri=True, check_same_thread=False, isolation_level=None)


def _copy(made: sqlite3.Connection, source: Path) -> list[str]:
    import sqlite3

    size = source.stat().st_size
    made.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_BYTES)
    (page,) = made.execute("PRAGMA page_size").fetchone()
    for setting in ("synchronous = OFF", "trusted_schema = OFF", f"max_page_count = {_TIMES * size // page + _PAGES}"):
        made.execute(f"PRAGMA {setting}")
    made.execute("ATTACH ? AS trace", (uri(source),))
    try:
        tables, views = (
            [name for (name,) in made.execute(_NAMED, which).fetchall() if not name.lower().startswith("sqlite_")]
            for which in (("table", True), ("view", False))
        )
        for table in tables:
            _copy_rows(made, table, tables)
        ticks = iter(range((_STEPS + _STEPS_PER_BYTE * size) // _TICK))
        made.set_progress_handler(lambda: next(ticks, None) is None, _TICK)
        return [view for view in views if not _copy_view(made, view, [*tables, *views])]
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
        raise TraceError(
            f"{source} is a damaged SQLite file: {error}", "export the report again: nsys export --type sqlite"
        ) from None


def _copy_view(made: sqlite3.Connection, view: str, readable: Collection[str]) -> bool:
    import sqlite3

    try:
        _copy_rows(made, view, readable)
    except (sqlite3.Error, MemoryError):
        made.execute(f"DROP TABLE IF EXISTS main.{identifier(view)}")
        return False
    return True


def _copy_rows(made: sqlite3.Connection, name: str, readable: Collection[str]) -> None:
    """Copy the rows of a table or a view, which may read nothing but what is `readable`."""
    import sqlite3

    table = identifier(name)
    columns = made.execute("SELECT name, type FROM pragma_table_info(?, 'trace')", (name,)).fetchall()
    typed = ", ".join(f"{identifier(column)} {_kind(name, column, kind)}" for column, kind in columns)
    made.execute(f"CREATE TABLE main.{table} ({typed})")

    def authorize(action: int, what: str | None, other: str | None, schema: str | None, _: str | None) -> int:
        reads = action == sqlite3.SQLITE_READ and schema == "trace" and what in readable
        inserts = action == sqlite3.SQLITE_INSERT and schema == "main" and what == name
        calls = action == sqlite3.SQLITE_FUNCTION and other != "load_extension"
        return (
            sqlite3.SQLITE_OK if reads or inserts or calls or action == sqlite3.SQLITE_SELECT else sqlite3.SQLITE_DENY
        )

    made.set_authorizer(authorize)
    try:
        names = ", ".join(identifier(column) for column, _ in columns)
        made.execute(f"INSERT INTO main.{table} SELECT {names} FROM trace.{table}")
    finally:
        made.set_authorizer(None)


def _kind(table: str, column: str, declared: str) -> str:
    """The type of a column: as the model reads it, else as SQLite itself understands what the file calls it."""
    wanted = contract().get(table, {}).get(column)
    if wanted:
        return wanted
    found = (kind for mark, kind in _AFFINITIES.items() if mark in declared.upper())
    return next(found, "")
