"""DuckDB's own parser, on a connection that reaches nothing: what is parsed may be anybody's SQL."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    import duckdb


@cache
def parser() -> duckdb.DuckDBPyConnection:
    """A connection of its own, locked: parsing alone opens the files and addresses that some statements name."""
    import duckdb

    connection = duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False, "threads": 1}
    )
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection


def tree(query: str) -> list[dict[str, Any]] | None:
    """The statements of a text as DuckDB's parser sees them, without what is left out or NULL; None if it has others.

    Only queries can be written as JSON (`json_serialize_sql`), and only what has no error.
    """
    options = "skip_null := true, skip_empty := true, skip_default := true"
    text = parser().cursor().execute(f"SELECT json_serialize_sql({literal(query)}, {options})").fetchall()[0][0]
    parsed = json.loads(text)
    return None if parsed.get("error") else parsed["statements"]
