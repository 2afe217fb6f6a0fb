"""Where to divide many rows into parts of about as many each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def cuts(connection: duckdb.DuckDBPyConnection, at: str, rows: str, parts: int) -> list[int]:
    """The values of the expression `at` over `rows`, a FROM clause, that divide them into parts, in rising order.

    They are estimates, and fewer where many rows have one value.
    """
    if parts < 2:
        return []
    shares = [number / parts for number in range(1, parts)]
    ((found,),) = connection.execute(f"SELECT approx_quantile({at}, {shares}::FLOAT[]) {rows}").fetchall()
    return sorted(set(found or ()))
