"""DuckDB's own parser, for anybody's SQL."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import ToolError
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    import duckdb

# What a connection must be made with; the rest can be set later.
CONFIG: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    # The signature of the extension that reads SQLite is checked once and not at each start (`ingest.extension`);
    # `session.sandbox.lock` forbids others before anybody's SQL runs.
    "allow_unsigned_extensions": True,
}
_FREE: list[duckdb.DuckDBPyConnection] = []
_TAKEN: list[duckdb.DuckDBPyConnection] = []


def take_connection() -> duckdb.DuckDBPyConnection:
    """Give a new in-memory DuckDB.

    To make one takes as long as to parse a dozen views, and those of a pack are parsed before its trace is opened: the
    connection that they were parsed on becomes the trace's.
    """
    connection = _FREE.pop() if _FREE else _new()
    _TAKEN[:] = [connection]
    return connection


def tree(query: str) -> list[dict[str, Any]] | None:
    """The statements of a text as DuckDB's parser sees them, without what is left out or NULL; None if it has others.

    Only queries can be written as JSON (`json_serialize_sql`), and only what has no error. Nothing that a query names
    is looked for, so any connection will do.
    """
    if "\0" in query:  # where DuckDB takes the text to end
        return None
    options = "skip_null := true, skip_empty := true, skip_default := true"
    text = _cursor().execute(f"SELECT json_serialize_sql({literal(query)}, {options})").fetchall()[0][0]
    parsed = json.loads(text)
    return None if parsed.get("error") else parsed["statements"]


@cache
def locked() -> duckdb.DuckDBPyConnection:
    """A connection that reaches nothing, to take texts apart: to parse IMPORT DATABASE, DuckDB opens what it names."""
    connection = _new()
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection


def _cursor() -> duckdb.DuckDBPyConnection:
    import duckdb

    for connection in (*_FREE, *_TAKEN):
        try:
            return connection.cursor()
        except duckdb.ConnectionException:
            continue  # its trace was closed
    _FREE[:] = [_new()]
    return _FREE[0].cursor()


def _new() -> duckdb.DuckDBPyConnection:
    import duckdb

    if (reason := unfit(duckdb.__version__)) is not None:
        raise ToolError(
            f"DuckDB {duckdb.__version__} is installed: {reason}",
            "python3 -m pip install --force-reinstall nsys-insight, preferably in its own environment (uv tool, pipx)",
        )
    return duckdb.connect(config=CONFIG)


def unfit(version: str) -> str | None:
    """Tell why the answers of a DuckDB are not trusted: None for 1.5.2 to the last 1.5.

    All reports were compared on 1.5.0, 1.5.2, 1.5.4, 1.5.5 and 1.5.6: those of 1.5.0 are wrong, the others are equal.
    """
    parts = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if parts < (1, 5, 2):
        return "it gives wrong numbers, or cannot run these queries"
    return "nsys-insight was not tested with it" if parts >= (1, 6) else None
