"""Copy a SQLite export that has more than tables: the SQL of a view would be evaluated when it is read.

nsys writes tables. DuckDB evaluates a view of a SQLite file as SQL of its own, so a view could read any other file
(`sqlite_scan` ignores DuckDB's settings). If an export has more than tables, SQLite itself makes a copy. There a view
can
only read the tables of its own file, and its rows are stored as a table.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from nsys_insight.ingest.expected_schema import read_expected_schema
from nsys_insight.ingest.sqlite_file import explain_damage, open_read_only, read_only_uri
from nsys_insight.ingest.waiting import wait_for
from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection
    from pathlib import Path

# SQLite detects a table by the text of its definition, DuckDB by the column `type`.
_HAS_PLAIN_OBJECTS = """
    SELECT count(*) = 0 FROM sqlite_master
    WHERE NOT (
        type = 'table' AND rootpage > 0 AND sql LIKE 'CREATE TABLE%' AND sql NOT LIKE '%WITHOUT%ROWID%'
        OR type = 'index' AND rootpage > 0 AND (sql IS NULL OR sql LIKE 'CREATE INDEX%' OR sql LIKE 'CREATE UNIQUE%')
    )"""
_HAS_NO_GENERATED_COLUMNS = """
    SELECT count(*) = 0 FROM sqlite_master AS m, pragma_table_xinfo(m.name) AS c
    WHERE m.type = 'table' AND c.hidden > 1"""
_OBJECT_NAMES = "SELECT name FROM trace.sqlite_master WHERE type = ? AND (rootpage > 0) = ? ORDER BY name"
# Limits of a view: instructions of SQLite per byte of the file, and the size of the copy compared with the file.
_STEPS_PER_BYTE, _BASE_STEPS, _STEPS_PER_TICK, _EXTRA_PAGES = 100, 50_000_000, 1_000_000, 10_000
_MAX_GROWTH = 4
_MAX_VALUE_BYTES = 100_000_000
_AFFINITIES = {
    "INT": "INTEGER", "CHAR": "TEXT", "CLOB": "TEXT", "TEXT": "TEXT", "REAL": "REAL", "FLOA": "REAL", "DOUB": "REAL"
}  # fmt: skip


def has_only_tables(path: Path) -> bool:
    """Return whether an export has tables only, with their indexes, and no generated columns.

    Raises:
        sqlite3.Error: The file is damaged.
    """
    with open_read_only(path) as database:
        return all(database.execute(test).fetchone()[0] for test in (_HAS_PLAIN_OBJECTS, _HAS_NO_GENERATED_COLUMNS))


def copy_as_tables(source: Path, target: Path) -> list[str]:
    """Copy the tables and views of an export to a file as tables; return the views that cannot be copied.

    Those read something outside the file, or never end.

    Raises:
        TraceError: The file is damaged.
        OSError: The disk is full.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool, closing(_connect(target)) as database:
        work = pool.submit(_copy, database, source)
        wait_for([work], [database])
        return work.result()


def _connect(target: Path) -> sqlite3.Connection:
    import sqlite3

    return sqlite3.connect(target.absolute().as_uri(), uri=True, check_same_thread=False, isolation_level=None)


def _copy(database: sqlite3.Connection, source: Path) -> list[str]:
    import sqlite3

    size = source.stat().st_size
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    (page_bytes,) = database.execute("PRAGMA page_size").fetchone()
    for setting in (
        "synchronous = OFF",
        "trusted_schema = OFF",
        f"max_page_count = {_MAX_GROWTH * size // page_bytes + _EXTRA_PAGES}",
    ):
        database.execute(f"PRAGMA {setting}")
    database.execute("ATTACH ? AS trace", (read_only_uri(source),))
    with explain_damage(source):
        tables, views = (
            [
                name
                for (name,) in database.execute(_OBJECT_NAMES, arguments).fetchall()
                if not name.lower().startswith("sqlite_")
            ]
            for arguments in (("table", True), ("view", False))
        )
        for table in tables:
            _copy_rows(database, table, tables)
        ticks = iter(range((_BASE_STEPS + _STEPS_PER_BYTE * size) // _STEPS_PER_TICK))
        database.set_progress_handler(lambda: next(ticks, None) is None, _STEPS_PER_TICK)
        return [view for view in views if not _copy_view(database, view, [*tables, *views])]


def _copy_view(database: sqlite3.Connection, view: str, readable: Collection[str]) -> bool:
    import sqlite3

    try:
        _copy_rows(database, view, readable)
    except (sqlite3.Error, MemoryError):
        database.execute(f"DROP TABLE IF EXISTS main.{identifier(view)}")
        return False
    return True


def _copy_rows(database: sqlite3.Connection, name: str, readable: Collection[str]) -> None:
    """Copy the rows of a table or a view, which may only read the tables and views in `readable`."""
    import sqlite3

    table = identifier(name)
    columns = database.execute("SELECT name, type FROM pragma_table_info(?, 'trace')", (name,)).fetchall()
    column_definitions = ", ".join(f"{identifier(column)} {find_type(name, column, kind)}" for column, kind in columns)
    database.execute(f"CREATE TABLE main.{table} ({column_definitions})")

    def authorize(
        action: int, object_name: str | None, function_name: str | None, schema: str | None, _: str | None
    ) -> int:
        is_read = action == sqlite3.SQLITE_READ and schema == "trace" and object_name in readable
        is_insert = action == sqlite3.SQLITE_INSERT and schema == "main" and object_name == name
        is_call = action == sqlite3.SQLITE_FUNCTION and function_name != "load_extension"
        return (
            sqlite3.SQLITE_OK
            if is_read or is_insert or is_call or action == sqlite3.SQLITE_SELECT
            else sqlite3.SQLITE_DENY
        )

    database.set_authorizer(authorize)
    try:
        names = ", ".join(identifier(column) for column, _ in columns)
        database.execute(f"INSERT INTO main.{table} SELECT {names} FROM trace.{table}")
    finally:
        database.set_authorizer(None)


def find_type(table: str, column: str, declared: str) -> str:
    """Return the type of a column: the expected one, else SQLite's own type for the declaration."""
    expected_type = read_expected_schema().get(table, {}).get(column)
    if expected_type:
        return expected_type
    types = (kind for word, kind in _AFFINITIES.items() if word in declared.upper())
    return next(types, "")
