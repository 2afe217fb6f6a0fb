"""Answers that are worked out before they are asked for, several at a time.

DuckDB plans a query in one thread, which takes most of the time of a question about a small trace. So several
connections to the same database find facts and answer questions, each in a thread of its own.
"""

from __future__ import annotations

from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from nsys_insight.facts.store import NOTHING_SAID, FactOptions
from nsys_insight.model import views

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import duckdb

# So many answer. More find nothing to do while facts are found that others are made of.
_HANDS = 2

T = TypeVar("T")


class Question(NamedTuple):
    """A query, the queries for what is noted of its answer, and what the user says about facts."""

    query: str
    notes: tuple[str, ...] = ()
    options: FactOptions = NOTHING_SAID

    @property
    def statements(self) -> tuple[str, ...]:
        """All queries."""
        return (self.query, *self.notes)


class Ahead(Generic[T]):
    """Answers that were worked out; each is given once, over the connection on which it was."""

    def __init__(self) -> None:
        """There are none yet."""
        self._found: dict[Question, T] = {}
        self._over: duckdb.DuckDBPyConnection | None = None
        self._hands: list[duckdb.DuckDBPyConnection] = []
        self._is_stopped = False

    def work(
        self,
        connection: duckdb.DuckDBPyConnection,
        questions: Iterable[Question],
        answer: Callable[[duckdb.DuckDBPyConnection, Question], T],
    ) -> None:
        """Answer questions in place of those before, but for those that fail.

        `answer` answers one, over another connection to the database of `connection`.
        """
        self._over, self._found, self._is_stopped = connection, {}, False
        self._hands = [connection.cursor() for _ in range(_HANDS)]
        free = list(self._hands)

        def work(asked: Question) -> T:
            if self._is_stopped:
                raise CancelledError
            hand = free.pop()
            try:
                return answer(hand, asked)
            finally:
                free.append(hand)

        for hand in self._hands:
            views.create_macros(hand)
        with ThreadPoolExecutor(_HANDS) as pool:
            under_way = {asked: pool.submit(work, asked) for asked in questions}
        for hand in self._hands:
            hand.close()
        self._hands = []
        self._found = {asked: one.result() for asked, one in under_way.items() if one.exception() is None}

    def take(self, asked: Question, connection: duckdb.DuckDBPyConnection) -> T | None:
        """Give the answer to a question, if there is one in the database of the connection."""
        found = self._found.pop(asked, None)
        return found if connection is self._over else None

    def interrupt(self) -> None:
        """Stop what is under way, and begin nothing more."""
        self._is_stopped = True
        for hand in self._hands:
            hand.interrupt()
