"""Where to divide many rows into parts of about as many each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def cuts(connection: duckdb.DuckDBPyConnection, at: str, rows: str, most: int) -> list[int]:
    """The values of the expression `at` over `rows`, a FROM clause, that divide them into parts of about `most` each.

    They are in rising order. They are estimates, and fewer where many rows have one value.
    """
    ((count,),) = connection.execute(f"SELECT count(*) {rows}").fetchall()
    parts = round(count / most)
    if parts < 2:
        return []
    shares = [number / parts for number in range(1, parts)]
    ((found,),) = connection.execute(f"SELECT approx_quantile({at}, {shares}::FLOAT[]) {rows}").fetchall()
    return sorted(set(found or ()))
