"""Connections that stay open for the next test of a trace.

Opening a trace and finding its facts take most of a test's time, and hundreds of tests ask about the same few traces.
So a process keeps a connection over each small trace that is older than the test, in each scope, with the answers that
it gave to queries of the package. The first test that asks a question computes the answer, as without this. A trace
that a test wrote itself, an option for opening, a copy in the cache folder, or a definition of the user gets a
connection of its own. With `--all`, every session has its own.
"""

from __future__ import annotations

import atexit
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from nsys_insight.ingest.limits import are_small_files
from nsys_insight.model import template
from nsys_insight.packs.step_options import AUTO
from nsys_insight.session import session
from nsys_insight.session.connection import Connection
from nsys_insight.session.database import Database
from nsys_insight.session.store import is_cached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nsys_insight.facts.context import FactOptions
    from nsys_insight.ingest.files import File
    from nsys_insight.session.prefetch import Question
    from nsys_insight.session.stored_answers import Rows, StoredAnswer

# By files, scope and limits. The most recently used connection is at the end.
_connections: dict[Any, KeptConnection] = {}
_MOST_UNUSED = 24
# Older files belong to fixtures of a module, or to the repository. With 0, each session opens its own connection.
_test = SimpleNamespace(start_ns=0)


def begin_test() -> None:
    """Begin a test: the files that it writes itself are read again each time."""
    _test.start_ns = time.time_ns()


@cache
def final_folder() -> Path:
    """Return a folder of this process. No test changes the files in it once they are written."""
    folder = TemporaryDirectory(prefix="final-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def is_in_final_folder(path: Path | str) -> bool:
    """Return whether a file is in the final folder."""
    return final_folder() in Path(path).parents


@contextmanager
def keep_connections(*, are_final: bool = False) -> Iterator[None]:
    """Share the connections that sessions open in the block over unchanged files.

    With `are_final`, nothing changes the files, although the test itself wrote them.
    """

    def connect(database: Database, timeout_s: float | None) -> Connection:
        before_ns = time.time_ns() if are_final and _test.start_ns else _test.start_ns
        return _connect(database, timeout_s, before_ns)

    with patch.object(session, "Database", _make_database), patch.object(session, "Connection", connect):
        yield


def _make_database(files: Sequence[File], *arguments: Any, **options: Any) -> Database:
    # The current folder may be another one at the next use.
    return Database([file._replace(path=file.path.absolute()) for file in files], *arguments, **options)


def _connect(database: Database, timeout_s: float | None, before_ns: int) -> Connection:
    files = database.files
    is_usual = timeout_s is None and _has_defaults(database)
    if not (is_usual and _are_old_exports([file.path for file in files], before_ns)):
        return Connection(database, timeout_s)
    statuses = [(status.st_dev, status.st_ino, status.st_mtime_ns) for status in (file.path.stat() for file in files)]
    key = (*files, *statuses, database.scope, database._strategies.limits, *database._part_scopes)
    connection = _connections.pop(key, None)
    if connection and connection.is_unchanged:
        connection.reuse(database._note)
    else:
        connection = KeptConnection(database)
    _connections[key] = connection
    unused = [other for other in _connections if not _connections[other].user_count]
    for other in unused[:-_MOST_UNUSED]:
        Connection.close(_connections.pop(other))
    return connection


def _has_defaults(database: Database) -> bool:
    has_others = database._use_cache or database._ncu
    return not has_others and database._steps == AUTO and not template._list_user_catalogs()


def _are_old_exports(paths: Sequence[Path], before_ns: int) -> bool:
    """Return whether these are small exports from before this time, without files in the cache folder."""
    return (
        all(path.is_file() and path.suffix == ".sqlite" for path in paths)
        and all(path.stat().st_ctime_ns < before_ns or (before_ns and is_in_final_folder(path)) for path in paths)
        and are_small_files(paths)
        and not any(map(is_cached, paths))
    )


class KeptConnection(Connection):
    """A connection that stays open, and that answers a query of the package once."""

    def __init__(self, database: Database) -> None:
        self.opening_notes: list[str] = []
        self._answers: dict[Question, StoredAnswer] = {}
        self._rows: dict[tuple[str, FactOptions], Rows] = {}
        note = database._note
        self.user_count = 1

        def note_and_record(text: str) -> None:
            self.opening_notes.append(text)
            note(text)

        database._note = note_and_record
        super().__init__(database)
        self._first_duckdb = self.duckdb

    @property
    def is_unchanged(self) -> bool:
        """Return whether the files are open in the first way, without definitions of a user."""
        return self.duckdb is self._first_duckdb and not self.files.definitions

    def reuse(self, note: Callable[[str], None]) -> None:
        """Answer to another session, which gets the notes about the files too."""
        self.user_count += 1
        self.files._note = note
        for text in self.opening_notes:
            note(text)

    def prefetch(self, questions: Iterable[Question]) -> None:
        """Prefetch what is not answered yet."""
        super().prefetch(
            question
            for question in questions
            if not self.is_unchanged
            or (question not in self._answers and (question.query, question.options) not in self._rows)
        )

    def rows(self, query: str, options: FactOptions, *, is_built_in: bool) -> Rows:
        """Return the rows of a query of the package."""
        if not (is_built_in and self.is_unchanged):
            return super().rows(query, options, is_built_in=is_built_in)
        if (query, options) not in self._rows:
            self._rows[query, options] = super().rows(query, options, is_built_in=True)
        names, rows = self._rows[query, options]
        return list(names), list(rows)

    def _store_answer(self, question: Question, line: int, *, is_built_in: bool) -> StoredAnswer:
        if not (is_built_in and self.is_unchanged):
            return super()._store_answer(question, line, is_built_in=is_built_in)
        if question not in self._answers:
            self._answers[question] = super()._store_answer(question, line, is_built_in=True)
        (table, columns), sentences = self._answers[question]
        return (table, list(columns)), [list(texts) for texts in sentences]

    def close(self) -> None:
        """Stay open for the next session."""
        self.user_count -= 1
