"""Read many rows: as NumPy columns, and divided into batches of about equal size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    import numpy as np

    Columns = dict[str, np.ndarray[Any, Any]]


def read_columns(connection: duckdb.DuckDBPyConnection, sql: str) -> Columns:
    """Read the result of a query by column.

    It is read as a relation, whose rows all threads gather: that takes half the time of `execute`.
    """
    from nsys_insight.facts import arrays  # noqa: F401 - imports NumPy, which DuckDB would do otherwise

    columns: Columns = connection.sql(sql).fetchnumpy()
    return columns


def find_boundaries(
    connection: duckdb.DuckDBPyConnection, expression: str, from_clause: str, batch_rows: int
) -> list[int]:
    """Return the values of an expression that divide rows into batches of about `batch_rows` each.

    The values are estimates, in ascending order. There are fewer where many rows have the same value.
    """
    ((count,),) = connection.execute(f"SELECT count(*) {from_clause}").fetchall()
    batches = round(count / batch_rows)
    if batches < 2:
        return []
    fractions = [number / batches for number in range(1, batches)]
    quantiles = f"SELECT approx_quantile({expression}, {fractions}::FLOAT[]) {from_clause}"
    ((values,),) = connection.execute(quantiles).fetchall()
    return sorted(set(values or ()))
