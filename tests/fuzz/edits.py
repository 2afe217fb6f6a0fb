"""Edits that break a trace: each is a list of plain values, so that a file that broke something is kept as text.

    ["set", table, row, column, value]     a cell; a value may be {"blob": "00ff"} or {"text": "length", "of": "x"}
    ["repeat", table, row]                 a row once more
    ["drop", table] ["without", table, column] ["type", table, column, "TEXT"] ["view", table] ["no rowid", table]
    ["flip", offset, byte] ["zero", offset, length] ["page", from, to] ["cut", size]      bytes of the file

Rows are counted from 0, and again from the first after the last; so are offsets.
"""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Edit = list[Any]

PAGE = 4096
BIG = 1 << 63
NUMBERS = (
    0, 1, -1, 255, 1 << 31, (1 << 32) - 1, 1 << 32, -(1 << 31), 1 << 40, 1 << 53, 1 << 60, 1 << 62, BIG - 1, -BIG,
)  # fmt: skip
OTHERS = (None, 0.5, 1e300, -1e19, "", "abc", "12", "\0", "\x1b[31m", "<script>", {"blob": "00ff80"}, {"blob": ""})
TEXTS = (
    {"text": 100_000, "of": "std::vector<int, "}, {"text": 5_000, "of": "("}, {"text": 50_000, "of": "<"},
    "=1+1", "a\0b", "", "\u202egnp", {"blob": "ff00"},
)  # fmt: skip


def apply(path: Path, edits: list[Edit]) -> None:
    """Make the edits to a file: those of SQL in order, then those of bytes. What cannot be done is left out."""
    of_bytes = [edit for edit in edits if edit[0] in ("flip", "zero", "page", "cut")]
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA writable_schema = ON")
        for edit in edits:
            if edit not in of_bytes:
                with suppress(sqlite3.Error):
                    _of_sql(database, *edit)
        database.commit()
    content = bytearray(path.read_bytes())
    for edit in of_bytes:
        content = _of_bytes(content, *edit)
    path.write_bytes(content)


def drawn(path: Path, chance: random.Random) -> list[Edit]:
    """Draw edits for a file: mostly one kind, of which a handful."""
    with closing(sqlite3.connect(path)) as database:
        tables = [
            name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        ]
        columns = {
            table: [(name, kind) for _, name, kind, *_ in database.execute(f"PRAGMA table_info('{table}')")]
            for table in tables
        }
    size = path.stat().st_size
    events = [table for table in tables if {"start", "timestamp"} & {name for name, _ in columns[table]}]

    def cell() -> Edit:
        table = chance.choice(events if chance.random() < 0.8 else tables)
        name, kind = chance.choice(columns[table])
        if kind == "TEXT":
            values: tuple[Any, ...] = TEXTS + OTHERS
        else:
            values = NUMBERS * 2 + OTHERS
        return ["set", table, chance.randrange(1000), name, chance.choice(values)]

    def schema() -> Edit:
        table = chance.choice(tables)
        name, _ = chance.choice(columns[table])
        return chance.choice(
            [
                ["drop", table],
                ["without", table, name],
                ["type", table, name, chance.choice(("TEXT", "REAL", "BLOB", ""))],
                ["view", table],
                ["no rowid", table],
                ["trigger", table],
            ]
        )

    def of_bytes() -> Edit:
        at = chance.randrange(size) if chance.random() < 0.7 else chance.randrange(PAGE)
        return chance.choice(
            [
                ["flip", at, chance.randrange(1, 256)],
                ["flip", at, chance.randrange(1, 256)],
                ["zero", at, chance.randrange(1, PAGE)],
                ["page", chance.randrange(size // PAGE), chance.randrange(size // PAGE)],
                ["cut", chance.randrange(size)],
            ]
        )

    kind = chance.choice([cell, cell, cell, "row", "column", schema, of_bytes, of_bytes, "repeat"])
    many = chance.choice((1, 1, 2, 5, 20))
    if kind == "row":
        table = chance.choice(events)
        row, value = chance.randrange(1000), chance.choice(NUMBERS + OTHERS)
        return [["set", table, row, name, value] for name, _ in columns[table]]
    if kind == "column":
        table = chance.choice(events)
        name, _ = chance.choice(columns[table])
        value = chance.choice(NUMBERS + OTHERS)
        return [["set", table, "all", name, value]]
    if kind == "repeat":
        return [["repeat", chance.choice(events), chance.randrange(1000)] for _ in range(many)]
    return [kind() for _ in range(many)]


def _of_sql(database: sqlite3.Connection, kind: str, table: str, *more: Any) -> None:
    if kind == "set":
        row, column, value = more
        rows = [number for (number,) in database.execute(f'SELECT rowid FROM "{table}" ORDER BY rowid')]
        where = "" if row == "all" else f" WHERE rowid = {rows[row % len(rows)] if rows else 0}"
        database.execute(f'UPDATE "{table}" SET "{column}" = ?{where}', (_value(value),))
    elif kind == "repeat":
        (count,) = database.execute(f'SELECT count(*) FROM "{table}"').fetchone()
        database.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}" LIMIT 1 OFFSET {more[0] % max(count, 1)}')
    elif kind == "drop":
        database.execute(f'DROP TABLE "{table}"')
    elif kind == "without":
        database.execute(f'ALTER TABLE "{table}" DROP COLUMN "{more[0]}"')
    elif kind == "trigger":
        database.execute(f'CREATE TRIGGER "{table} t" AFTER INSERT ON "{table}" BEGIN SELECT 1; END')
    else:
        _made_anew(database, kind, table, *more)


def _made_anew(database: sqlite3.Connection, kind: str, table: str, *more: str) -> None:
    """Make a table once more: as a view, without row numbers, or with another type of a column."""
    database.execute(f'ALTER TABLE "{table}" RENAME TO "{table} as it was"')
    if kind == "view":
        database.execute(f'CREATE VIEW "{table}" AS SELECT * FROM "{table} as it was"')
        return
    types = {name: type_ for _, name, type_, *_ in database.execute(f"PRAGMA table_info('{table} as it was')")}
    if kind == "type":
        types[more[0]] = more[1]
    made = ", ".join(f'"{name}" {type_}' for name, type_ in types.items())
    key = f", n INTEGER, PRIMARY KEY ({', '.join(f'{name!r}' for name in types)}, n)" if kind == "no rowid" else ""
    key = key.replace("'", '"')
    database.execute(f'CREATE TABLE "{table}" ({made}{key}){" WITHOUT ROWID" if key else ""}')
    number = ", row_number() OVER ()" if key else ""
    # What a key may not be is left out.
    database.execute(f'INSERT OR IGNORE INTO "{table}" SELECT *{number} FROM "{table} as it was"')
    database.execute(f'DROP TABLE "{table} as it was"')


def _of_bytes(content: bytearray, kind: str, at: int, more: int = 0) -> bytearray:
    if not content:
        return content
    at %= len(content)
    if kind == "flip":
        content[at] ^= more
    elif kind == "zero":
        content[at : at + more] = bytes(len(content[at : at + more]))
    elif kind == "page":
        pages = max(len(content) // PAGE, 1)
        source, target = at % pages * PAGE, more % pages * PAGE
        content[target : target + PAGE] = content[source : source + PAGE]
    else:
        return content[:at]
    return content


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return bytes.fromhex(value["blob"]) if "blob" in value else value["of"] * value["text"]
    return value
