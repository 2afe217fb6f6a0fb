"""Rows are added to facts in another thread, while the next ones are worked out: two thirds of the time of both."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Future

    import duckdb

    from nsys_insight.facts.reading import Columns

# Rows are added so many at a time, where there are as many: each time DuckDB begins a new part of a table. So many
# batches may wait, for each takes memory.
_ROWS, _WAITING = 500_000, 3


class Inserts:
    """Adds rows to tables of the schema `facts`, batch by batch; at the end of a block with it all are there."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """The tables are those that the connection sees; of its macros none can be used."""
        self._cursor = connection.cursor()
        ((catalog,),) = connection.execute("SELECT current_database()").fetchall()
        self._cursor.execute(f"USE {identifier(catalog)}")
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()
        self._gathered: dict[tuple[str, str], list[Columns]] = {}

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Wait for what is under way, and raise what it raised."""
        try:
            if error is None:
                for what in list(self._gathered):
                    self._begin(*what)
        finally:
            self._pool.shutdown(cancel_futures=error is not None)
            self._cursor.close()
        while self._waiting and error is None:
            self._waiting.popleft().result()

    def add(self, fact: str, select: str, found: Columns) -> None:
        """Add what a query gives over columns, which it calls `found`, and which are not to be changed any more."""
        gathered = self._gathered.setdefault((fact, select), [])
        gathered.append(found)
        if sum(len(next(iter(columns.values()))) for columns in gathered) >= _ROWS:
            self._begin(fact, select)

    def _begin(self, fact: str, select: str) -> None:
        while len(self._waiting) >= _WAITING:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(self._insert, fact, select, self._gathered.pop((fact, select))))

    def _insert(self, fact: str, select: str, found: Sequence[Columns]) -> None:
        import numpy as np

        columns = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
        self._cursor.register("found", columns)
        self._cursor.execute(f"INSERT INTO facts.{fact} BY NAME {select}")
        self._cursor.unregister("found")


def words(connection: duckdb.DuckDBPyConnection, fact: str, column: str, texts: Iterable[str]) -> dict[str, str]:
    """SQL for some of the words of a column, each cast once: to write words takes several times as long."""
    find = f"SELECT column_type FROM (DESCRIBE facts.{fact}) WHERE column_name = '{column}'"
    ((kind,),) = connection.execute(find).fetchall()
    return {text: f"'{text}'::{kind}" for text in texts}
