"""NumPy, the types of the arrays of facts, and rows as arrays. It is imported only by modules of facts that are needed.

At the import of NumPy, each thread of OpenBLAS waits in a loop, for 30 ms of CPU time, for work that no fact has. A
variable ends the wait. Only the import reads it, and programs that are started later do not get it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

_VARIABLE = "OPENBLAS_THREAD_TIMEOUT"
_is_unset = _VARIABLE not in os.environ
if _is_unset:
    os.environ[_VARIABLE] = "4"  # the exponent of the number of rounds; less is not allowed

import numpy as np  # noqa: E402 - after the variable

if _is_unset:
    del os.environ[_VARIABLE]

Flags = np.ndarray[Any, np.dtype[np.bool_]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Columns = dict[str, np.ndarray[Any, Any]]

__all__ = ["Columns", "Flags", "Ints", "np", "read_columns"]


def read_columns(connection: duckdb.DuckDBPyConnection, sql: str) -> Columns:
    """Read the result of a query by column.

    It is read as a relation, whose rows all threads gather: that takes half the time of `execute`.
    """
    columns: Columns = connection.sql(sql).fetchnumpy()
    return columns
