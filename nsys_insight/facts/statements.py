"""The statements that fill a kind of facts, run one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.rows import named_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    # Runs a statement by its name, with values for its parameters, and returns its rows.
    Run = Callable[..., list[Any]]


def runner(connection: duckdb.DuckDBPyConnection, folder: str, prepare: Callable[[str], None]) -> Run:
    """Run statements of a folder of `queries/facts`; `prepare` creates the views that a statement names."""

    def run(name: str, **values: Any) -> list[Any]:
        sql = query(f"facts/{folder}/{name}")
        prepare(sql)
        return named_rows(connection, bind(sql, values))

    return run
