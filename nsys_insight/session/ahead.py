"""Answers that are worked out before they are asked for, several at a time.

DuckDB plans a query in one thread, which takes most of the time of a question about a small trace. So several
connections to the same database find facts and answer questions, each in a thread of its own.
"""

from __future__ import annotations

from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Semaphore
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from nsys_insight.facts.context import NOTHING_SAID, FactOptions
from nsys_insight.sql.names import Names, mentioned, mentioned_by_ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import duckdb

# So many are at work, and so many more wait for facts that those find.
_AT_WORK = 2
_WAITING = 3

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


class Ahead(Generic[T]):
    """Answers that were worked out; each is given once, over the connection on which it was."""

    def __init__(self) -> None:
        """There are none yet."""
        self._found: dict[Question, T] = {}
        self._over: duckdb.DuckDBPyConnection | None = None
        self._hands: list[duckdb.DuckDBPyConnection] = []
        self._is_stopped = False
        self._places = Semaphore(_AT_WORK)

    def work(
        self,
        connection: duckdb.DuckDBPyConnection,
        questions: Iterable[Question],
        answer: Callable[[duckdb.DuckDBPyConnection, Question], T],
    ) -> None:
        """Answer questions, but for those that fail.

        `answer` answers one, over another connection to the database of `connection`.
        """
        if connection is not self._over:
            self.close()
            self._over = connection
            self._found = {}
        self._is_stopped = False
        free = list(self._hands)

        def work(asked: Question) -> T:
            with self._places:
                if self._is_stopped:
                    raise CancelledError
                try:
                    hand = free.pop()
                except IndexError:
                    hand = self._new_hand(connection)
                try:
                    return answer(hand, asked)
                finally:
                    free.append(hand)

        with ThreadPoolExecutor(_AT_WORK + _WAITING) as pool:
            under_way = {asked: pool.submit(work, asked) for asked in questions if asked not in self._found}
        self._found |= {asked: one.result() for asked, one in under_way.items() if one.exception() is None}

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let another one work while this one waits, within the block."""
        self._places.release()
        try:
            yield
        finally:
            self._places.acquire()

    def _new_hand(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        hand = connection.cursor()
        self._hands.append(hand)
        return hand

    def take(self, asked: Question, connection: duckdb.DuckDBPyConnection) -> T | None:
        """Give the answer to a question, if there is one in the database of the connection."""
        found = self._found.pop(asked, None)
        return found if connection is self._over else None

    def close(self) -> None:
        """Close the connections."""
        for hand in self._hands:
            hand.close()
        self._hands = []

    def interrupt(self) -> None:
        """Stop what is under way, and begin nothing more."""
        self._is_stopped = True
        for hand in self._hands:
            hand.interrupt()
