"""Prefetch: answers to questions that will be asked, two at a time.

DuckDB plans a query in one thread, which takes most of the time of a question about a small trace. So two connections
to the same database find facts and answer questions, each in a thread of its own (benchmarks/measure.py --only small).
"""

from __future__ import annotations

from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import local
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from nsys_insight.facts.context import NOTHING_SAID, FactOptions
from nsys_insight.sql.names import Names, mentioned, mentioned_by_ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import duckdb

_WORKERS = 2

T = TypeVar("T")


class Question(NamedTuple):
    """A query, the queries for what is noted of its answer, and what the user says about facts.

    The answer to one that is `for_rows` is these, to others a table.
    """

    query: str
    notes: tuple[str, ...] = ()
    options: FactOptions = NOTHING_SAID
    for_rows: bool = False
    is_built_in: bool = False

    @property
    def statements(self) -> tuple[str, ...]:
        """All queries."""
        return (self.query, *self.notes)

    @property
    def names(self) -> list[Names]:
        """What each of them reads: of queries that come with the package a pattern tells, of others the parser."""
        return list(map(mentioned_by_ours if self.is_built_in else mentioned, self.statements))


class Prefetch(Generic[T]):
    """Answers that were prefetched; each is given once, over the connection for which it was."""

    def __init__(self) -> None:
        """There are none yet."""
        self._answers: dict[Question, T] = {}
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._cursors: list[duckdb.DuckDBPyConnection] = []
        self._is_interrupted = False

    def run(
        self,
        connection: duckdb.DuckDBPyConnection,
        questions: Iterable[Question],
        answer: Callable[[duckdb.DuckDBPyConnection, Question], T],
    ) -> None:
        """Answer questions, except those that fail: `answer` is given a cursor of the connection, and a question."""
        if connection is not self._connection:
            self.close()
            self._connection, self._answers = connection, {}
        self._is_interrupted = False
        own = local()

        def work(asked: Question) -> T:
            if self._is_interrupted:
                raise CancelledError
            if not hasattr(own, "cursor"):
                own.cursor = connection.cursor()
                self._cursors.append(own.cursor)
            return answer(own.cursor, asked)

        with ThreadPoolExecutor(_WORKERS) as pool:
            running = {asked: pool.submit(work, asked) for asked in questions if asked not in self._answers}
        self._answers |= {asked: each.result() for asked, each in running.items() if each.exception() is None}

    def take(self, asked: Question, connection: duckdb.DuckDBPyConnection) -> T | None:
        """Return the answer to a question, if there is one for the connection."""
        answer = self._answers.pop(asked, None)
        return answer if connection is self._connection else None

    def close(self) -> None:
        """Close the cursors."""
        for cursor in self._cursors:
            cursor.close()
        self._cursors = []

    def interrupt(self) -> None:
        """Stop what runs, and begin nothing more."""
        self._is_interrupted = True
        for cursor in self._cursors:
            cursor.interrupt()
