"""Edits that break a trace. Each edit is a list of plain values, so that edits can be stored as text.

    ["set", table, row, column, value]     a cell; a value may be {"blob": "00ff"} or {"text": "length", "of": "x"}
    ["repeat", table, row]                 a row once more
    ["drop", table] ["without", table, column] ["type", table, column, "TEXT"] ["view", table] ["no rowid", table]
    ["twice", table]        a table without a key, each row twice, the texts of the second one changed
    ["extremes", table, column]     extreme numbers in turn
    ["process", process, id]        a process gets another id in all tables, host and container included
    ["twin", process, host]         it gets the process id of the first process, in another container
    ["flip", offset, byte] ["zero", offset, length] ["page", from, to] ["cut", size]      bytes of the file
    ["swap", page, page] ["header", page, byte, value] ["pointer", page, cell, value]     pages of its B-trees

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
OTHER_VALUES = (
    None,
    0.5,
    1e300,
    -1e19,
    "",
    "abc",
    "12",
    "\0",
    "\x1b[31m",
    "<script>",
    {"blob": "00ff80"},
    {"blob": ""},
)
TEXTS = (
    {"text": 100_000, "of": "std::vector<int, "}, {"text": 5_000, "of": "("}, {"text": 50_000, "of": "<"},
    "=1+1", "a\0b", "", "\u202egnp", {"blob": "ff00"},
)  # fmt: skip


PROCESS_IDS = (0, 1, (1 << 24) - 1, 1 << 24, 1 << 31, 1 << 39, (1 << 40) - 1, 1 << 45, -1, -(1 << 39))
# The columns that CUDA limits, and values at and beyond their limits.
SHAPES = (
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory",
    "dynamicSharedMemory", "sharedMemoryExecuted", "localMemoryPerThread", "localMemoryTotal",
)  # fmt: skip
LIMITS = (
    0, -1, 1, 64, 65, 255, 256, 1024, 1025, 65_535, 65_536, 1 << 24, (1 << 24) + 1, (1 << 31) - 1, 1 << 31, 1 << 40,
    BIG - 1, -BIG, 0.5, None, "abc",
)  # fmt: skip

_BYTE_EDITS = ("flip", "zero", "page", "cut", "swap", "header", "pointer")


def apply(path: Path, edits: list[Edit]) -> None:
    """Apply edits to a file: the edits by SQL in order, then those of bytes. Impossible edits are skipped."""
    byte_edits = [edit for edit in edits if edit[0] in _BYTE_EDITS]
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA writable_schema = ON")
        for edit in edits:
            if edit not in byte_edits:
                with suppress(sqlite3.Error):
                    (_edit_process if edit[0] in ("process", "twin") else _apply_sql_edit)(database, *edit)
        database.commit()
    content = bytearray(path.read_bytes())
    for edit in byte_edits:
        content = _edit_bytes(content, *edit)
    path.write_bytes(content)


def draw_edits(path: Path, chance: random.Random) -> list[Edit]:
    """Draw edits for a file: a few of one kind."""
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

    def draw_cell_edit() -> Edit:
        table = chance.choice(events if chance.random() < 0.8 else tables)
        name, kind = chance.choice(columns[table])
        if kind == "TEXT":
            values: tuple[Any, ...] = TEXTS + OTHER_VALUES
        else:
            values = NUMBERS * 2 + OTHER_VALUES
        return ["set", table, chance.randrange(1000), name, chance.choice(values)]

    def draw_schema_edit() -> Edit:
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
                ["twice", table],
                ["extremes", table, name],
            ]
        )

    def draw_byte_edit() -> Edit:
        offset = chance.randrange(size) if chance.random() < 0.7 else chance.randrange(PAGE)
        return chance.choice(
            [
                ["flip", offset, chance.randrange(1, 256)],
                ["flip", offset, chance.randrange(1, 256)],
                ["zero", offset, chance.randrange(1, PAGE)],
                ["page", chance.randrange(size // PAGE), chance.randrange(size // PAGE)],
                ["cut", chance.randrange(size)],
            ]
        )

    def draw_page_edit() -> Edit:
        page, other = chance.randrange(size // PAGE), chance.randrange(size // PAGE)
        return chance.choice(
            [
                ["swap", page, other],
                ["header", page, chance.randrange(12), chance.choice((0, 1, 2, 5, 10, 13, 255))],
                ["pointer", page, chance.randrange(8), chance.choice((0, 8, 100, PAGE - 1, 65535, "first", "next"))],
            ]
        )

    kind = chance.choice(
        [
            draw_page_edit,
            draw_page_edit,
            draw_cell_edit,
            draw_cell_edit,
            draw_cell_edit,
            "row",
            "column",
            draw_schema_edit,
            lambda: _draw_shape_edit(chance),
            lambda: _draw_process_edit(chance),
            draw_byte_edit,
            draw_byte_edit,
            "repeat",
            "one time",
        ]
    )
    count = chance.choice((1, 1, 2, 5, 20))
    if kind == "row":
        table = chance.choice(events)
        row, value = chance.randrange(1000), chance.choice(NUMBERS + OTHER_VALUES)
        return [["set", table, row, name, value] for name, _ in columns[table]]
    if kind == "column":
        table = chance.choice(events)
        name, _ = chance.choice(columns[table])
        value = chance.choice(NUMBERS + OTHER_VALUES)
        return [["set", table, "all", name, value]]
    if kind == "one time":
        value = chance.choice(NUMBERS)
        return [
            ["set", table, "all", name, value]
            for table in events
            for name, _ in columns[table]
            if name in ("start", "end")
        ]
    if kind == "repeat":
        return [["repeat", chance.choice(events), chance.randrange(1000)] for _ in range(count)]
    return [kind() for _ in range(count)]


def _draw_shape_edit(chance: random.Random) -> Edit:
    row = chance.choice(("all", chance.randrange(1000)))
    return ["set", "CUPTI_ACTIVITY_KIND_KERNEL", row, chance.choice(SHAPES), chance.choice(LIMITS)]


def _draw_process_edit(chance: random.Random) -> Edit:
    process = chance.randrange(4)
    if chance.random() < 0.5:
        return ["twin", process, chance.choice((1, 2, 255, 256, 65_535))]
    return ["process", process, chance.choice(PROCESS_IDS)]


def _apply_sql_edit(database: sqlite3.Connection, kind: str, table: str, *arguments: Any) -> None:
    if kind == "set":
        row, column, value = arguments
        rows = [number for (number,) in database.execute(f'SELECT rowid FROM "{table}" ORDER BY rowid')]
        condition = "" if row == "all" else f" WHERE rowid = {rows[row % len(rows)] if rows else 0}"
        database.execute(f'UPDATE "{table}" SET "{column}" = ?{condition}', (_value(value),))
    elif kind == "repeat":
        (count,) = database.execute(f'SELECT count(*) FROM "{table}"').fetchone()
        database.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}" LIMIT 1 OFFSET {arguments[0] % max(count, 1)}')
    elif kind == "drop":
        database.execute(f'DROP TABLE "{table}"')
    elif kind == "without":
        database.execute(f'ALTER TABLE "{table}" DROP COLUMN "{arguments[0]}"')
    elif kind == "twice":
        types = {name: type_ for _, name, type_, *_ in database.execute(f"PRAGMA table_info('{table}')")}
        again = ", ".join(f"\"{name}\" || 'x'" if type_ == "TEXT" else f'"{name}"' for name, type_ in types.items())
        rows = f'SELECT * FROM "{table}" UNION ALL SELECT {again} FROM "{table}"'
        database.execute(f'CREATE TABLE "{table} twice" AS {rows}')
        database.execute(f'DROP TABLE "{table}"')
        database.execute(f'ALTER TABLE "{table} twice" RENAME TO "{table}"')
    elif kind == "extremes":
        values = ", ".join(f"({number}, {value})" for number, value in enumerate(NUMBERS))
        database.execute(
            f'UPDATE "{table}" SET "{arguments[0]}" = (WITH v (n, x) AS (VALUES {values})'
            f" SELECT x FROM v WHERE n = rowid % {len(NUMBERS)})"
        )
    elif kind == "trigger":
        database.execute(f'CREATE TRIGGER "{table} t" AFTER INSERT ON "{table}" BEGIN SELECT 1; END')
    else:
        _recreate_table(database, kind, table, *arguments)


def _edit_process(database: sqlite3.Connection, kind: str, number: int, value: int) -> None:
    """Give a process another id in every column of global ids."""
    columns = [
        (table, name)
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for _, name, *_ in database.execute(f"PRAGMA table_info('{table}')").fetchall()
        if name.lower() in ("globalpid", "globaltid", "globalid", "endglobaltid")
    ]
    ids = " UNION ".join(f'SELECT "{name}" >> 24 FROM "{table}" WHERE "{name}" > 0' for table, name in columns)
    processes = [process for (process,) in database.execute(f"{ids} ORDER BY 1")]
    if not processes:
        return
    new = value if kind == "process" else processes[0] & 0xFFFFFF | value << 24
    # As SQLite shifts, a number beyond 64 bits wraps.
    for table, name in columns:
        database.execute(
            f'UPDATE "{table}" SET "{name}" = (? << 24) | ("{name}" & 16777215) WHERE "{name}" >> 24 = ?',
            (new, processes[number % len(processes)]),
        )


def _recreate_table(database: sqlite3.Connection, kind: str, table: str, *arguments: str) -> None:
    """Create a table again: as a view, without row numbers, or with another type of a column."""
    database.execute(f'ALTER TABLE "{table}" RENAME TO "{table} as it was"')
    if kind == "view":
        database.execute(f'CREATE VIEW "{table}" AS SELECT * FROM "{table} as it was"')
        return
    types = {name: type_ for _, name, type_, *_ in database.execute(f"PRAGMA table_info('{table} as it was')")}
    if kind == "type":
        types[arguments[0]] = arguments[1]
    definitions = ", ".join(f'"{name}" {type_}' for name, type_ in types.items())
    key = f", n INTEGER, PRIMARY KEY ({', '.join(f'{name!r}' for name in types)}, n)" if kind == "no rowid" else ""
    key = key.replace("'", '"')
    database.execute(f'CREATE TABLE "{table}" ({definitions}{key}){" WITHOUT ROWID" if key else ""}')
    number = ", row_number() OVER ()" if key else ""
    # Rows that violate the key are left out.
    database.execute(f'INSERT OR IGNORE INTO "{table}" SELECT *{number} FROM "{table} as it was"')
    database.execute(f'DROP TABLE "{table} as it was"')


def _edit_bytes(content: bytearray, kind: str, offset: int, operand: int = 0, value: int | str = 0) -> bytearray:
    if not content:
        return content
    if kind in ("swap", "header", "pointer"):
        return _edit_page(content, kind, offset, operand, value)
    offset %= len(content)
    if kind == "flip":
        content[offset] ^= operand
    elif kind == "zero":
        content[offset : offset + operand] = bytes(len(content[offset : offset + operand]))
    elif kind == "page":
        pages = max(len(content) // PAGE, 1)
        source, target = offset % pages * PAGE, operand % pages * PAGE
        content[target : target + PAGE] = content[source : source + PAGE]
    else:
        return content[:offset]
    return content


def _edit_page(content: bytearray, kind: str, page: int, operand: int, value: int | str) -> bytearray:
    """Swap two pages, or change the header of a page's B-tree or one of the pointers to its cells."""
    pages = max(len(content) // PAGE, 1)
    start = page % pages * PAGE
    if kind == "swap":
        other = operand % pages * PAGE
        first, second = content[start : start + PAGE], content[other : other + PAGE]
        content[start : start + PAGE], content[other : other + PAGE] = second, first
        return content
    header = start + (100 if start == 0 else 0)  # the header of the file precedes that of the first page
    if header + 16 > len(content):
        return content
    if kind == "header":
        content[header + operand] = int(value) & 255
        return content
    pointers = header + (12 if content[header] in (2, 5) else 8)
    offset = pointers + 2 * operand
    source = {"first": pointers, "next": offset + 2}.get(str(value))
    pointer = bytes(content[source : source + 2]) if source else int(value).to_bytes(2, "big")
    content[offset : offset + 2] = pointer
    return content


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return bytes.fromhex(value["blob"]) if "blob" in value else value["of"] * value["text"]
    return value
