"""The operations of GPUs in order, and what was reached before each: in two halves at once where there are millions.

What is in order is looked at by one thread, which also writes it down: that takes longer than to put it in order.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from nsys_insight.facts.statements import runner
from nsys_insight.model.views import create_macros
from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

# Fewer operations take less time than the other connection.
_MANY = 1_000_000


def fill(connection: duckdb.DuckDBPyConnection, prepare: Callable[[str], None]) -> None:
    """Fill `facts.gpu_reach`.

    Args:
        connection: Where the model is.
        prepare: Creates the views that a statement names.
    """
    run = runner(connection, "gpu_reach", prepare)
    (middle,) = run("middle")
    if middle.operations < _MANY:
        run("find", from_place=None, to_place=None, reached=None, call=None)
        return
    (before,) = run("before", place=middle.place)
    first = partial(run, "find", from_place=None, to_place=middle.place, reached=None, call=None)
    second = {"from_place": middle.place, "to_place": None, "reached": before.reached, "call": before.call}
    _both(connection, first, bind(query("facts/gpu_reach/find"), second))


def _both(connection: duckdb.DuckDBPyConnection, here: Callable[[], object], there: str) -> None:
    """Run something on a connection and a statement on another one to the same database."""
    ((catalog,),) = connection.execute("SELECT current_database()").fetchall()
    with connection.cursor() as other, ThreadPoolExecutor(1) as pool:
        other.execute(f"USE {identifier(catalog)}")
        create_macros(other)
        under_way = pool.submit(other.execute, there)
        try:
            here()
        except BaseException:
            other.interrupt()
            raise
        under_way.result()
