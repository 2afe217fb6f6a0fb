"""Private data that nsys records about a machine and its user: no copy of a trace that we write contains it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from nsys_insight.ingest.expected_schema import read_expected_schema
from nsys_insight.ingest.sqlite_file import explain_damage
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping
    from pathlib import Path

# The tables with settings.
SETTINGS_TABLES = ("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE")
# The part of a cache key of copies that have no private data.
CACHE_KEY_PART = "without what is private"
# Substrings of the names of settings about the environment, the host and the user.
_PRIVATE_SETTINGS = ("ENVIRONMENT", "HOST", "USER", "DEVICE_DISPLAY_NAME")
_PRIVATE_SYSTEM_SETTINGS = ("Environment", "Hostname", "UserName")
# The same by table.
_PRIVATE_WORDS = {
    **dict.fromkeys(SETTINGS_TABLES, _PRIVATE_SETTINGS),
    "TARGET_INFO_SYSTEM_ENV": _PRIVATE_SYSTEM_SETTINGS,
}
# The columns with string ids.
_STRING_ID_COLUMNS = {"demangledName", "shortName", "mangledName", "nameId", "textId", "symbol", "module"}
# The payload of a Python backtrace of a CUDA call (facts/python_frames/) has string ids, too: four bytes each for the
# function and the file of every frame. `hex_index` is the index of an id in the payload's hex digits.
_PYTHON_FRAME_IDS = """
    SELECT ('0x' || substr(bytes, hex_index + 6, 2) || substr(bytes, hex_index + 4, 2)
        || substr(bytes, hex_index + 2, 2) || substr(bytes, hex_index, 2))::BIGINT
    FROM (
        SELECT bytes, unnest(range(97, least(length(bytes), 48097), 16)) AS hex_index
        FROM (
            SELECT DISTINCT hex(binaryData) AS bytes FROM {schema}.NVTX_EVENTS
            WHERE eventType = 34 AND binaryData IS NOT NULL AND domainId IN (
                SELECT domainId FROM {schema}.NVTX_EVENTS WHERE eventType = 75 AND text = 'Python Backtrace on CUDA'
            )
        )
    )
    WHERE (hex_index - 97) % 48 < 32"""
# The environment is also stored as a string that no event refers to: NAME=value, NAME=value, separated by zero bytes.
_IS_ENVIRONMENT_BLOCK = "instr(CAST(value AS BLOB), x'3d') > 0 AND instr(CAST(value AS BLOB), x'00') > 0"


def is_private(setting: str) -> bool:
    """Return whether a setting is about the environment, the host or the user."""
    return any(word in setting for word in (*_PRIVATE_SETTINGS, *_PRIVATE_SYSTEM_SETTINGS))


def write_row_filter(table: str, schema: str, tables: Mapping[str, Iterable[str]]) -> str:
    """Write the WHERE clause that selects the rows of a raw table for a copy; empty if it gets all rows.

    A copy gets only the strings that events refer to. The events are in these `tables` of the `schema`, with these
    columns.
    """
    if words := _PRIVATE_WORDS.get(table):
        return " WHERE " + " AND ".join(f"name NOT LIKE {literal(f'%{word}%')}" for word in words)
    if table != "StringIds":
        return ""
    return f" WHERE id IN ({select_used_strings(schema, tables)})"


def select_used_strings(schema: str, tables: Mapping[str, Iterable[str]]) -> str:
    """Write the SQL for the ids of the strings that events refer to."""
    selects = [
        f"SELECT {identifier(column)} FROM {schema}.{identifier(table)}"
        for table, columns in tables.items()
        for column in columns
        if column in _STRING_ID_COLUMNS
    ]
    if {"binaryData", "domainId", "eventType", "text"} <= set(tables.get("NVTX_EVENTS", ())):
        selects.append(_PYTHON_FRAME_IDS.format(schema=schema))
    return " UNION ALL ".join(selects) or "SELECT NULL"


def select_exported_rows(table: str) -> str:
    """Write SQL for the rows of a raw table that conversions contain: without private data and unused strings."""
    if table in SETTINGS_TABLES:
        return f"SELECT name, value FROM facts.captured WHERE origin = {literal(table)}"
    return f"SELECT * FROM raw.{identifier(table)}{write_row_filter(table, 'raw', read_expected_schema())}"


def remove_private(copy: Path) -> None:
    """Remove the environment, the host and the user from a SQLite copy that we wrote, and from its free pages.

    Raises:
        TraceError: The file is damaged.
        OSError: It cannot be written.
    """
    import sqlite3

    with explain_damage(copy), closing(sqlite3.connect(copy)) as database, database:
        database.execute("PRAGMA journal_mode = MEMORY")
        database.execute("PRAGMA secure_delete = ON")
        for table, words in _PRIVATE_WORDS.items():
            if _has_column(database, table, "name"):
                condition = " OR ".join(f"name LIKE {literal(f'%{word}%')}" for word in words)
                database.execute(f"DELETE FROM {table} WHERE {condition}")
        if _has_column(database, "StringIds", "value"):
            database.execute(f"UPDATE StringIds SET value = '' WHERE {_IS_ENVIRONMENT_BLOCK}")


def _has_column(database: sqlite3.Connection, table: str, column: str) -> bool:
    return (column,) in database.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
