"""Insert rows into facts in another thread, while the next rows are calculated: two thirds of the sequential time."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from nsys_insight.facts.arrays import Columns, np
from nsys_insight.ingest.catalogs import open_cursor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Future

    import duckdb


# Rows per INSERT: DuckDB begins a new segment of the table each time.
_ROWS_PER_INSERT = 500_000
# Batches that may wait to be inserted: each one takes memory.
_MAX_WAITING = 3


class Inserts:
    """A block that inserts rows into tables of the schema `facts`, batch by batch. At its end all rows are there."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Insert into the tables that the connection sees. The connection's macros are not available."""
        self._cursor = open_cursor(connection)
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()
        self._batches: dict[tuple[str, str], list[Columns]] = {}

    def __enter__(self) -> Self:
        """Begin the block."""
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Wait for the inserts in progress, and raise what they raised."""
        try:
            if error is None:
                for fact, select in list(self._batches):
                    self._submit(fact, select)
        finally:
            self._pool.shutdown(cancel_futures=error is not None)
            self._cursor.close()
        while self._waiting and error is None:
            self._waiting.popleft().result()

    def add(self, fact: str, select: str, rows: Columns) -> None:
        """Insert the result of a query into a fact. The query reads `rows` as the table `rows_to_insert`.

        The caller must not change `rows` afterwards.
        """
        batch = self._batches.setdefault((fact, select), [])
        batch.append(rows)
        if sum(len(next(iter(columns.values()))) for columns in batch) >= _ROWS_PER_INSERT:
            self._submit(fact, select)

    def _submit(self, fact: str, select: str) -> None:
        while len(self._waiting) >= _MAX_WAITING:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(self._insert, fact, select, self._batches.pop((fact, select))))

    def _insert(self, fact: str, select: str, batch: Sequence[Columns]) -> None:
        columns = {name: np.concatenate([rows[name] for rows in batch]) for name in batch[0]}
        self._cursor.register("rows_to_insert", columns)
        self._cursor.execute(f"INSERT INTO facts.{fact} BY NAME {select}")
        self._cursor.unregister("rows_to_insert")


def cast_words(connection: duckdb.DuckDBPyConnection, fact: str, column: str, words: Iterable[str]) -> dict[str, str]:
    """Return the SQL for some words of an enum column, each cast once.

    Without the cast, inserting the words takes several times as long.
    """
    find = f"SELECT column_type FROM (DESCRIBE facts.{fact}) WHERE column_name = '{column}'"
    ((enum_type,),) = connection.execute(find).fetchall()
    return {word: f"'{word}'::{enum_type}" for word in words}
