"""What nsys records of a machine and its user beside the program: no copy of a trace that we make has it."""

from __future__ import annotations

import errno
import os
from contextlib import closing
from typing import TYPE_CHECKING

from nsys_insight.errors import TraceError
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping
    from pathlib import Path

# The tables of settings, and parts of the names of those settings that tell the environment, the host and the user.
SETTINGS = ("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE")
# Says of entries in the cache that they were made without it.
WITHOUT = "without what is private"
_SETTING = ("ENVIRONMENT", "HOST", "USER", "DEVICE_DISPLAY_NAME")
# The same of the table TARGET_INFO_SYSTEM_ENV.
_SYSTEM = ("Environment", "Hostname", "UserName")
# The columns that hold ids of strings.
_STRINGS = {"demangledName", "shortName", "mangledName", "nameId", "textId", "symbol", "module"}
# The payload of a backtrace that Python gives of a CUDA call (facts/python_frames.py) has ids of strings, too: of each
# frame's function and file, in four bytes.
_FRAMES = """
    SELECT ('0x' || substr(bytes, place + 6, 2) || substr(bytes, place + 4, 2) || substr(bytes, place + 2, 2)
        || substr(bytes, place, 2))::BIGINT
    FROM (
        SELECT bytes, unnest(range(97, least(length(bytes), 48097), 16)) AS place
        FROM (
            SELECT DISTINCT hex(binaryData) AS bytes FROM {schema}.NVTX_EVENTS
            WHERE eventType = 34 AND binaryData IS NOT NULL AND domainId IN (
                SELECT domainId FROM {schema}.NVTX_EVENTS WHERE eventType = 75 AND text = 'Python Backtrace on CUDA'
            )
        )
    )
    WHERE (place - 97) % 48 < 32"""
# An environment is also a string, to which no event refers: NAME=value, NAME=value, with zeros between.
_BLOCK = "instr(CAST(value AS BLOB), x'3d') > 0 AND instr(CAST(value AS BLOB), x'00') > 0"


def is_private(setting: str) -> bool:
    """Tell whether a setting tells the environment, the host or the user."""
    return any(word in setting for word in (*_SETTING, *_SYSTEM))


def handed_over(table: str, schema: str, tables: Mapping[str, Iterable[str]]) -> str:
    """SQL for which rows of a raw table a copy has, as a WHERE; nothing if it has all.

    Of the strings, a copy has those to which events refer. `tables` of the `schema` have the events,
    in these columns.
    """
    if table in SETTINGS:
        return " WHERE " + " AND ".join(f"name NOT LIKE {literal(f'%{word}%')}" for word in _SETTING)
    if table != "StringIds":
        return ""
    return f" WHERE id IN ({strings_used(schema, tables)})"


def strings_used(schema: str, tables: Mapping[str, Iterable[str]]) -> str:
    """SQL for the ids of the strings to which events refer."""
    uses = [
        f"SELECT {identifier(column)} FROM {schema}.{identifier(table)}"
        for table, columns in tables.items()
        for column in columns
        if column in _STRINGS
    ]
    if {"binaryData", "domainId", "eventType", "text"} <= set(tables.get("NVTX_EVENTS", ())):
        uses.append(_FRAMES.format(schema=schema))
    return " UNION ALL ".join(uses) or "SELECT NULL"


def forget(copy: Path) -> None:
    """Take the environment, the host and the user out of a SQLite file of our own, and out of its free pages.

    Raises:
        TraceError: The file is damaged.
        OSError: It cannot be written.
    """
    import sqlite3

    try:
        with closing(sqlite3.connect(copy)) as database, database:
            database.execute("PRAGMA journal_mode = MEMORY")
            database.execute("PRAGMA secure_delete = ON")
            for table, words in (*dict.fromkeys(SETTINGS, _SETTING).items(), ("TARGET_INFO_SYSTEM_ENV", _SYSTEM)):
                if _has(database, table, "name"):
                    told = " OR ".join(f"name LIKE {literal(f'%{word}%')}" for word in words)
                    database.execute(f"DELETE FROM {table} WHERE {told}")
            if _has(database, "StringIds", "value"):
                database.execute(f"UPDATE StringIds SET value = '' WHERE {_BLOCK}")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
        raise TraceError(
            f"{copy} is a damaged SQLite file: {error}", "export the report again: nsys export --type sqlite"
        ) from None


def _has(database: sqlite3.Connection, table: str, column: str) -> bool:
    return (column,) in database.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
