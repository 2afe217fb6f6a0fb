"""Answers to our own questions about a big trace are kept in the cache folder, and read when they are asked again."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.errors import TraceError
from nsys_insight.ingest import cache_entries, cache_folder
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from nsys_insight.facts.file import FactsFile
    from nsys_insight.session.ahead import Question
    from nsys_insight.session.answer import Columns

    # The columns of an answer, and the sentences of each note.
    Stored = tuple[Columns, list[list[str]]]

_ANSWER = re.compile(r"\binternal\.answer_\d+\b")
# Answers that took less together are not worth a file; to copy one of more rows may take as long as to work it out.
_WORTH_S, _MOST_ROWS = 1.0, 100_000
# Beyond so many, those of earlier sessions are dropped.
_MOST_ANSWERS = 1000
# Most have few rows, and each column takes a block at least.
_BLOCK = 16384


class _New(NamedTuple):
    table: str
    said: list[list[str]]
    seconds: float


class KeptAnswers:
    """The answers that are kept of a trace, and those that will be when the connection is closed.

    An answer is known by a key: its query and notes, word for word, what the user says about facts, and what lies
    beside the trace.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, facts: FactsFile, beside: Path | None) -> None:
        """Attach the answers that were kept with the same definitions of facts as `facts`, if there are any.

        `beside` is a file of ncu's data that is read with the trace.
        """
        import duckdb

        self._connection, self._facts = connection, facts
        self._beside = cache_folder.key(beside) if beside else ""
        self._entry = facts.entry("answers.duckdb")
        self._keys: dict[str, str] = {}
        self._new: dict[str, _New] = {}
        self._there: set[str] = set()
        if cache_entries.use(self._entry):
            # It may be damaged, or another process has just put another one there.
            with suppress(duckdb.Error):
                connection.execute(f"ATTACH {literal(str(self._entry))} AS kept_answers (READ_ONLY)")
                self._there = {key for (key,) in connection.execute("SELECT key FROM kept_answers.said").fetchall()}

    def take(self, table: str, asked: Question) -> Stored | None:
        """Show as `table` the answer to a question that is kept; return what is known of it, None if there is none."""
        import duckdb

        key = self._key(table, asked)
        if key not in self._there:
            return None
        try:
            return self._taken(key, table)
        except (duckdb.InterruptException, duckdb.OutOfMemoryException):
            raise
        except duckdb.Error:  # the file is damaged
            cache_entries.discard(self._entry)
            self._there.clear()
            return None

    def add(self, table: str, asked: Question, said: list[list[str]], seconds: float) -> None:
        """Note that `table` has the answer to a question, what is said of it, and how long it took to work out."""
        if key := self._key(table, asked):
            self._new[key] = _New(table, said, seconds)

    def _key(self, table: str, asked: Question) -> str:
        """Give the key of the answer that will be `table`; none where it is made of one that has none."""
        try:
            texts = [_ANSWER.sub(lambda other: self._keys[other[0]], text) for text in asked.statements]
        except KeyError:
            return ""
        encoded = (text.encode(errors="surrogatepass") for text in texts)
        key = cache_folder.digest(self._beside, repr(asked.options), *encoded)
        self._keys[table] = key
        return key

    def _taken(self, key: str, table: str) -> Stored:
        self._connection.execute(f"CREATE OR REPLACE TABLE {table} AS FROM kept_answers.answer_{key}")
        described = self._connection.execute(f"DESCRIBE {table}").fetchall()
        ((said,),) = self._connection.execute(f"SELECT texts FROM kept_answers.said WHERE key = '{key}'").fetchall()
        return [(name, kind) for name, kind, *_ in described[1:]], said

    def keep(self) -> None:
        """Leave the answers in the cache folder, when the connection is closed and before its facts are put away."""
        import duckdb

        if self._new and sum(new.seconds for new in self._new.values()) >= _WORTH_S:
            with suppress(OSError, duckdb.Error, TraceError):
                self._write()

    def _write(self) -> None:
        import duckdb

        with (
            cache_entries.making(self._entry, "answers", self._facts.export) as path,
            duckdb.connect() as connection,
        ):
            connection.execute(f"ATTACH {literal(str(path))} AS made (BLOCK_SIZE {_BLOCK}); USE made")
            connection.execute("CREATE TABLE said (key VARCHAR, texts VARCHAR[][])")
            if self._there and len(self._there) + len(self._new) <= _MOST_ANSWERS:
                connection.execute(f"ATTACH {literal(str(self._entry))} AS before (READ_ONLY)")
                connection.execute("INSERT INTO said FROM before.said")
                for key in self._there:
                    connection.execute(f"CREATE TABLE answer_{key} AS FROM before.answer_{key}")
            connection.execute(f"ATTACH {literal(str(self._facts.internal))} AS internal (READ_ONLY)")
            for key, new in self._new.items():
                ((rows,),) = connection.execute(f"SELECT count(*) FROM {new.table}").fetchall()
                if rows <= _MOST_ROWS:
                    connection.execute(f"CREATE TABLE answer_{key} AS FROM {new.table}")
                    connection.execute("INSERT INTO said VALUES (?, ?)", [key, new.said])
