"""DuckDB's own parser, for a user's SQL."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import ToolError
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    import duckdb

# Settings that a connection needs from the start; the others can be set later.
CONFIG: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    # `ingest.extension` checks the signature of the SQLite extension once, not at each start. `session.sandbox.lock`
    # forbids other unsigned extensions before a user's SQL runs.
    "allow_unsigned_extensions": True,
}
# The newest version that has an extension.
_NEWEST = "1.5.5"
_IDLE: list[duckdb.DuckDBPyConnection] = []
_LENT: list[duckdb.DuckDBPyConnection] = []


def take_connection() -> duckdb.DuckDBPyConnection:
    """Return an unused in-memory DuckDB connection.

    A connection takes as long to make as a dozen views take to parse. The views of a pack are parsed before its trace
    is opened, so the trace takes over the connection that parsed them.
    """
    connection = _IDLE.pop() if _IDLE else _connect()
    _LENT[:] = [connection]
    return connection


def parse_tree(query: str) -> list[dict[str, Any]] | None:
    """Parse the queries of a text into DuckDB's syntax trees, without empty, NULL and default fields.

    Return None for a text with other statements or errors: DuckDB writes only valid queries as JSON
    (`json_serialize_sql`). The parser looks up no names, so any connection works.
    """
    if "\0" in query:  # DuckDB would end the text there
        return None
    options = "skip_null := true, skip_empty := true, skip_default := true"
    text = _open_cursor().execute(f"SELECT json_serialize_sql({literal(query)}, {options})").fetchall()[0][0]
    parsed = json.loads(text)
    return None if parsed.get("error") else parsed["statements"]


def tokenize(sql: str) -> list[tuple[int, duckdb.token_type]]:
    """Split SQL with DuckDB's own tokenizer: the byte at which each word begins, and its kind.

    Comments are left out. DuckDB 1.5 does not return them, 2.0 does.
    """
    import duckdb

    return [(start, kind) for start, kind in duckdb.tokenize(sql) if kind != duckdb.token_type.comment]


@cache
def get_locked_connection() -> duckdb.DuckDBPyConnection:
    """Return a connection without external access, for parsing: DuckDB opens files to parse IMPORT DATABASE."""
    connection = _connect()
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection


def _open_cursor() -> duckdb.DuckDBPyConnection:
    import duckdb

    for connection in (*_IDLE, *_LENT):
        try:
            return connection.cursor()
        except duckdb.ConnectionException:
            continue  # its trace was closed
    _IDLE[:] = [_connect()]
    return _IDLE[0].cursor()


def _connect() -> duckdb.DuckDBPyConnection:
    import duckdb

    if (reason := explain_unsupported(duckdb.__version__)) is not None:
        raise ToolError(
            f"DuckDB {duckdb.__version__} is installed: {reason}",
            f"python3 -m pip install 'duckdb=={_NEWEST}' 'duckdb-extension-sqlite-scanner=={_NEWEST}', preferably"
            " in its own environment (uv tool install nsys-insight, pipx install nsys-insight)",
        )
    return duckdb.connect(config=CONFIG)


def explain_unsupported(version: str) -> str | None:
    """Explain why a DuckDB version is not supported; None for 1.5.2 to the last 1.5, and for 2.0.1 to the last 2.0.

    All reports were compared on 1.5.0, 1.5.2, 1.5.4, 1.5.5, 1.5.6 and 2.0.1: those of 1.5.0 are wrong, the others are
    equal. The SQLite extension has no build for 2.0, so exports are copied there (`ingest.copy`).
    """
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if numbers < (1, 5, 2):
        return "it gives wrong numbers, or cannot run these queries"
    is_tested = numbers < (1, 6) or (2, 0, 1) <= numbers < (2, 1)
    return None if is_tested else "nsys-insight was not tested with it"
