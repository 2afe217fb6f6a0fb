"""Prefetch: answer expected questions in advance, two at a time.

DuckDB plans a query in one thread, and planning takes most of the time of a question about a small trace. So two
connections to the same database derive facts and answer questions, each in its own thread
(benchmarks/measure.py --only small).
"""

from __future__ import annotations

from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from threading import local
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from nsys_insight import progress
from nsys_insight.facts.context import DEFAULT_OPTIONS, FactOptions
from nsys_insight.sql.names import Names, parse_names, scan_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import duckdb

    from nsys_insight.packs.notes import Note

_WORKERS = 2

T = TypeVar("T")


class Question(NamedTuple):
    """A query, its notes, and the user's options for facts.

    `for_rows`: return the rows; otherwise the result is stored as a table. `is_built_in`: the query comes with the
    package.
    """

    query: str
    notes: tuple[Note, ...] = ()
    options: FactOptions = DEFAULT_OPTIONS
    for_rows: bool = False
    is_built_in: bool = False

    @property
    def statements(self) -> tuple[str, ...]:
        """Return all queries."""
        return (self.query, *(note.query for note in self.notes))

    @property
    def names(self) -> list[Names]:
        """Return the names in each query: built-in ones are scanned with a pattern, others are parsed."""
        return list(map(scan_names if self.is_built_in else parse_names, self.statements))


class Prefetch(Generic[T]):
    """The prefetched answers. Each one is returned once, and only for the connection that prefetched it."""

    def __init__(self) -> None:
        """Start without answers."""
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
        """Answer questions and skip those that fail; `answer` takes a cursor of the connection and a question."""
        if connection is not self._connection:
            self.close()
            self._connection, self._answers = connection, {}
        self._is_interrupted = False
        thread_state = local()

        def work(question: Question) -> T:
            if self._is_interrupted:
                raise CancelledError
            if not hasattr(thread_state, "cursor"):
                thread_state.cursor = connection.cursor()
                self._cursors.append(thread_state.cursor)
            return answer(thread_state.cursor, question)

        with progress.show_task("answering questions") as task, ThreadPoolExecutor(_WORKERS) as pool:
            futures = {question: pool.submit(work, question) for question in questions if question not in self._answers}
            for count, _ in enumerate(as_completed(futures.values()), 1):
                task.percent = 100 * count / len(futures)
        self._answers |= {
            question: future.result() for question, future in futures.items() if future.exception() is None
        }

    def take(self, question: Question, connection: duckdb.DuckDBPyConnection) -> T | None:
        """Remove and return the answer to a question, if there is one for the connection."""
        answer = self._answers.pop(question, None)
        return answer if connection is self._connection else None

    def close(self) -> None:
        """Close the cursors."""
        for cursor in self._cursors:
            cursor.close()
        self._cursors = []

    def interrupt(self) -> None:
        """Stop running queries, and do not start others."""
        self._is_interrupted = True
        for cursor in self._cursors:
            cursor.interrupt()
