"""Stored facts and answers of a big export, for the next question. They do not have to fit into memory."""

from __future__ import annotations

import re
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight import cache_folder
from nsys_insight.errors import TraceError
from nsys_insight.facts.store import digest_definitions
from nsys_insight.ingest import store
from nsys_insight.ingest.attach import CACHE_CATALOG
from nsys_insight.ingest.database import STORAGE_OPTION
from nsys_insight.ingest.store import Result
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    import duckdb

    from nsys_insight.session.prefetch import Question
    from nsys_insight.session.stored_answers import StoredAnswer

_ANSWER = re.compile(r"\binternal\.answer_\d+\b")
# Answers are stored if all of them together took at least this long.
_MIN_SAVED_S = 1.0


class _NewAnswer(NamedTuple):
    result: Result
    seconds: float


class Store:
    """The work file of a session, whose database has the model, and the tables of earlier sessions in the cache file.

    `stored_tables` are the fact tables in the cache file; the schema `facts` shows them as views. The key of an answer
    is a digest of its query and notes, word for word, the options for facts, and the file with ncu's data.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, export: Path, ncu: Path | None, *, is_persistent: bool
    ) -> None:
        """Attach a new work file as `work` and use it. Without `is_persistent`, do not use the cache file.

        Raises:
            OSError: There is no folder for the file, or its disk is full.
        """
        import duckdb

        self._connection, self._export, self._is_persistent = connection, export, is_persistent
        self._ncu = cache_folder.key(ncu) if ncu else ""
        self._files = ExitStack()
        try:
            folder = cache_folder.folder(use_cache=is_persistent)
        except OSError:
            self._is_persistent = False
            folder = cache_folder.folder(use_cache=False)
        self._path = self._files.enter_context(cache_folder.make_work_path(folder / "work.duckdb"))
        try:
            # The file is removed with the session, and `save` can read its log.
            connection.execute(
                f"ATTACH {literal(str(self._path))} AS work {STORAGE_OPTION}; USE work;"
                " PRAGMA disable_checkpoint_on_shutdown"
            )
        except duckdb.IOException as error:
            self._files.close()
            raise OSError(str(error)) from None
        self.stored_tables = frozenset[str]()
        self._results: set[str] = set()
        self._keys: dict[str, str] = {}
        self._new: dict[str, _NewAnswer] = {}

    def show_stored_facts(self) -> None:
        """Let views of the schema `facts` show the tables of the cache file; the model must exist."""
        if not self._is_persistent:
            return
        self.stored_tables = store.list_stored_tables(self._connection, CACHE_CATALOG, "facts", digest_definitions())
        for table in self.stored_tables:
            name = identifier(table)
            self._connection.execute(f"CREATE OR REPLACE VIEW facts.{name} AS FROM {CACHE_CATALOG}.facts.{name}")
        if store.list_stored_tables(self._connection, CACHE_CATALOG, "results", digest_definitions()):
            keys = self._connection.execute(f"SELECT key FROM {CACHE_CATALOG}.results.notes").fetchall()
            self._results = {key for (key,) in keys}

    @property
    def stores_answers(self) -> bool:
        """Return whether answers are stored."""
        return self._is_persistent

    def take(self, table: str, question: Question) -> StoredAnswer | None:
        """Create `table` with the stored answer to a question, and return it with its notes; None if not stored."""
        key = self._key(table, question)
        if key not in self._results:
            return None
        self._connection.execute(f"CREATE OR REPLACE TABLE {table} AS FROM {CACHE_CATALOG}.results.answer_{key}")
        description = self._connection.execute(f"DESCRIBE {table}").fetchall()
        ((notes,),) = self._connection.execute(
            f"SELECT texts FROM {CACHE_CATALOG}.results.notes WHERE key = '{key}'"
        ).fetchall()
        return (table, [(name, kind) for name, kind, *_ in description[1:]]), notes

    def add(self, table: str, question: Question, notes: list[list[str]], seconds: float) -> None:
        """Record an answer: its table, the sentences of its notes, and the time it took."""
        if key := self._key(table, question):
            self._new[key] = _NewAnswer(Result(table, notes), seconds)

    def _key(self, table: str, question: Question) -> str:
        """Return the key of the answer that will be `table`; "" if it reads an answer without a key."""
        try:
            texts = [_ANSWER.sub(lambda other: self._keys[other[0]], text) for text in question.statements]
        except KeyError:
            return ""
        texts += [repr((note.texts, note.items)) for note in question.notes]
        encoded = (text.encode(errors="surrogatepass") for text in texts)
        key = cache_folder.digest(self._ncu, repr(question.options), *encoded)
        self._keys[table] = key
        return key

    def is_about(self, error: Exception) -> bool:
        """Check whether an error is about the work file: its disk can be full, or the file removed."""
        return str(self._path.parent) in str(error)

    def save(self, facts: AbstractSet[str]) -> None:
        """Add fact tables and answers to the cache file.

        The connection must be closed, the cache file released, and the export unchanged.
        """
        import duckdb

        new = facts - self.stored_tables
        is_worth_it = sum(answer.seconds for answer in self._new.values()) >= _MIN_SAVED_S
        results = {key: answer.result for key, answer in self._new.items()} if is_worth_it else {}
        if self._is_persistent and (new or results):
            with suppress(OSError, duckdb.Error, TraceError):
                store.add_tables(self._export, self._path, digest_definitions(), new, results)

    def close(self) -> None:
        """Remove the work file."""
        self._files.close()


def is_cached(export: Path) -> bool:
    """Check whether the cache has a file for an export."""
    with suppress(OSError):
        return store.entry_path(export).is_file()
    return False
