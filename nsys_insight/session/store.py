"""What a session keeps of a big export: facts, which need not fit the memory, and answers, for the next question."""

from __future__ import annotations

import re
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.errors import TraceError
from nsys_insight.facts.file import definitions
from nsys_insight.ingest import cache_folder, store
from nsys_insight.ingest.attach import KEPT
from nsys_insight.ingest.database import STORAGE
from nsys_insight.ingest.store import Result
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    import duckdb

    from nsys_insight.session.prefetch import Question
    from nsys_insight.session.stored_answers import Found

_ANSWER = re.compile(r"\binternal\.answer_\d+\b")
# Answers that took less together are not worth a file.
_WORTH_S = 1.0


class _New(NamedTuple):
    result: Result
    seconds: float


class Store:
    """The work file of a session, in whose database the model is, and what the cache file has from sessions before.

    `kept` are the tables of facts in the cache file; `facts` shows them as views. An answer is known by a key: its
    query and notes, word for word, the options of facts, and the file of ncu's data that is read with the trace.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, export: Path, ncu: Path | None, *, lasting: bool) -> None:
        """Attach a new work file as `work` and use it; without `lasting`, nothing is kept and nothing is looked up.

        Raises:
            OSError: There is no folder for it, or no room in it.
        """
        import duckdb

        self._connection, self._export, self._lasting = connection, export, lasting
        self._ncu = cache_folder.key(ncu) if ncu else ""
        self._files = ExitStack()
        try:
            folder = cache_folder.folder(lasting=lasting)
        except OSError:
            self._lasting = False
            folder = cache_folder.folder(lasting=False)
        self._path = self._files.enter_context(cache_folder.working(folder / "work.duckdb"))
        try:
            connection.execute(f"ATTACH {literal(str(self._path))} AS work {STORAGE}; USE work")
        except duckdb.IOException as error:
            self._files.close()
            raise OSError(str(error)) from None
        self.kept = frozenset[str]()
        self._results: set[str] = set()
        self._keys: dict[str, str] = {}
        self._new: dict[str, _New] = {}

    def show_kept(self) -> None:
        """Let views of the schema `facts` show what the cache file has, once the model is there."""
        if not self._lasting:
            return
        self.kept = store.tables_of(self._connection, KEPT, "facts", definitions())
        for table in self.kept:
            name = identifier(table)
            self._connection.execute(f"CREATE OR REPLACE VIEW facts.{name} AS FROM {KEPT}.facts.{name}")
        if store.tables_of(self._connection, KEPT, "results", definitions()):
            keys = self._connection.execute(f"SELECT key FROM {KEPT}.results.notes").fetchall()
            self._results = {key for (key,) in keys}

    @property
    def keeps_answers(self) -> bool:
        """Whether answers are kept."""
        return self._lasting

    def take(self, table: str, asked: Question) -> Found | None:
        """Create `table` with the answer to a question that is kept; return it with its notes, or None."""
        key = self._key(table, asked)
        if key not in self._results:
            return None
        self._connection.execute(f"CREATE OR REPLACE TABLE {table} AS FROM {KEPT}.results.answer_{key}")
        described = self._connection.execute(f"DESCRIBE {table}").fetchall()
        ((notes,),) = self._connection.execute(f"SELECT texts FROM {KEPT}.results.notes WHERE key = '{key}'").fetchall()
        return (table, [(name, kind) for name, kind, *_ in described[1:]]), notes

    def add(self, table: str, asked: Question, notes: list[list[str]], seconds: float) -> None:
        """Note that `table` has the answer to a question, the sentences of its notes, and how long it took."""
        if key := self._key(table, asked):
            self._new[key] = _New(Result(table, notes), seconds)

    def _key(self, table: str, asked: Question) -> str:
        """Return the key of the answer that will be `table`; "" where it reads one that has none."""
        try:
            texts = [_ANSWER.sub(lambda other: self._keys[other[0]], text) for text in asked.statements]
        except KeyError:
            return ""
        encoded = (text.encode(errors="surrogatepass") for text in texts)
        key = cache_folder.digest(self._ncu, repr(asked.options), *encoded)
        self._keys[table] = key
        return key

    def concerns(self, error: Exception) -> bool:
        """Tell whether an error is about the work file: its disk may be full, or something may have removed it."""
        return str(self._path.parent) in str(error)

    def keep(self, facts: AbstractSet[str]) -> None:
        """Add tables of facts and answers to the cache file, when the connection is closed and the cache file let go.

        The export must not have changed.
        """
        import duckdb

        new = facts - self.kept
        is_worth_it = sum(each.seconds for each in self._new.values()) >= _WORTH_S
        results = {key: each.result for key, each in self._new.items()} if is_worth_it else {}
        if self._lasting and (new or results):
            with suppress(OSError, duckdb.Error, TraceError):
                store.add(self._export, self._path, definitions(), new, results)

    def close(self) -> None:
        """Remove the work file."""
        self._files.close()


def is_kept(export: Path) -> bool:
    """Tell whether the cache has a file of an export."""
    with suppress(OSError):
        return store.entry(export).is_file()
    return False
