"""The answer to one question: a table in DuckDB, with what its columns mean."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nsys_insight import progress
from nsys_insight.errors import UsageError
from nsys_insight.ingest.scope import words
from nsys_insight.session.sandbox import handover
from nsys_insight.sql.quoting import identifier, literal
from nsys_insight.sql.rows import insert
from nsys_insight.text.near import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import duckdb
    import polars as pl

Columns = list[tuple[str, str]]  # names and DuckDB types
HAS_ZONE = "WITH TIME ZONE"  # in the names of DuckDB's types
Batch = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Column:
    """One column of an answer.

    `type` is DuckDB's name of the type; the unit follows from the name's suffix (`text.units.unit_of`). A terminal that
    is too narrow for a row hides the columns that are a `detail`, then others from the last; those with a `place` come
    first, in its order. Of a share that its name says nothing of, `of` is the whole.
    """

    name: str
    type: str
    description: str = ""
    detail: bool = False
    place: int | None = None
    of: str = ""


@dataclass(frozen=True)
class Answer:
    """A finished table, stored in its own DuckDB table in the order it is to be shown.

    `report` is the command's name, `title` its heading, `params` what it was asked with, `notes` what the reader must
    know beside the numbers (`note_names`: under which names a pack has them), `trace` a few facts about the trace,
    `summary` what an answer says as a whole. Rows are fetched when somebody reads them, so that an answer of millions
    of rows can be written to a file in pieces.
    """

    connection: duckdb.DuckDBPyConnection = field(repr=False)
    table: str
    columns: tuple[Column, ...]
    report: str
    title: str
    params: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    note_names: tuple[str, ...] = ()
    empty: str = ""
    trace: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def row_count(self) -> int:
        """How many rows there are, however many are shown."""
        return int(self.connection.execute(f"SELECT count(*) FROM {self.table}").fetchall()[0][0])

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is said of rows of the trace that cannot be true, if there are such: it holds for every answer."""
        return tuple(filter(None, [self.trace.get("left_out")]))

    @property
    def heading(self) -> str:
        """The title, and which part of the trace the answer is of, if it is not the whole."""
        scope = f"scope: {' '.join(words(self.trace['scope']))}" if self.trace.get("scope") else ""
        return f"{self.title} ({scope})" if self.title and scope else self.title or scope.capitalize()

    def notes_of(self, name: str) -> tuple[str, ...]:
        """The notes that a pack's header has under a name."""
        return tuple(text for of, text in zip(self.note_names, self.notes, strict=False) if of == name)

    def of_columns(self, names: Sequence[str]) -> Answer:
        """Return the answer with these columns alone, in this order.

        Raises:
            UsageError: It has no such column.
        """
        known = {column.name: column for column in self.columns}
        for name in names:
            if name not in known:
                hint = did_you_mean(name, known) or f"there are: {', '.join(known)}"
                raise UsageError(f"the answer of {self.report or 'this query'} has no column {name!r}", hint)
        columns = (replace(known[name], detail=False, place=at) for at, name in enumerate(names))
        return replace(self, columns=tuple(columns))

    def rows(self, limit: int | None = None) -> list[tuple[Any, ...]]:
        """Fetch the first `limit` rows, or all of them."""
        return self.connection.execute(self._select(limit)).fetchall()

    def dicts(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Fetch the first `limit` rows, or all of them, each as its cells by column."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows(limit)]

    def batches(self, size: int = 50_000, limit: int | None = None) -> Iterator[list[tuple[Any, ...]]]:
        """Fetch the rows in pieces of `size`."""
        cursor = self.connection.cursor()
        cursor.execute(self._select(limit))
        while batch := cursor.fetchmany(size):
            yield batch

    def frame(self) -> pl.DataFrame:
        """Return the whole answer as a polars frame, with raw values: ns, bytes, NULL for unknown."""
        import polars as pl

        return pl.DataFrame(self.connection.sql(self._select(None)))

    def write_parquet(self, path: Path, limit: int | None = None) -> None:
        """Write the answer as a Parquet file with DuckDB's own writer, in constant memory."""
        with progress.at(f"writing {path.name}"), handover(path) as inner:
            self.connection.execute(f"COPY ({self._select(limit)}) TO {literal(str(inner))} (FORMAT parquet)")

    def _select(self, limit: int | None) -> str:
        names = ", ".join(identifier(column.name) for column in self.columns)
        cut = "" if limit is None else f" LIMIT {limit}"
        return f"SELECT {names} FROM {self.table} ORDER BY row_{cut}"


def store(connection: duckdb.DuckDBPyConnection, table: str, select: str) -> Columns:
    """Run `select` and keep its result, in its order, as the in-memory table `table`.

    Returns the names and DuckDB types of its columns. Row numbers are kept in a column `row_` of their own, because
    the connection does not preserve insertion order (that is what lets a SQLite file be scanned in parallel).
    """
    connection.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT row_number() OVER () AS row_, * FROM (\n{select}\n)")
    described = connection.execute(f"DESCRIBE {table}").fetchall()
    for name, kind, *_ in described:
        if HAS_ZONE in kind:
            connection.execute(f"ALTER TABLE {table} ALTER COLUMN {identifier(name)} TYPE VARCHAR")
    return [(name, without_zone(kind)) for name, kind, *_ in described[1:]]


def all_readable(columns: Columns) -> str:
    """SQL for all columns of a query, whose types these are, as `without_zone` has them."""
    zoned = [identifier(name) for name, kind in columns if HAS_ZONE in kind]
    return f"* REPLACE ({', '.join(f'{name}::VARCHAR AS {name}' for name in zoned)})" if zoned else "*"


def without_zone(kind: str) -> str:
    """The type as which a column is read: DuckDB gives times with a zone to Python only where pytz is installed."""
    return "VARCHAR" if HAS_ZONE in kind else kind


def of_rows(columns: Sequence[Column], rows: Sequence[Sequence[object]], **facts: Any) -> Answer:
    """Make an answer of rows that were worked out in Python; `facts` are the other fields of `Answer`."""
    import duckdb

    connection = duckdb.connect()
    types = ", ".join(f"{identifier(column.name)} {column.type}" for column in columns)
    connection.execute(f"CREATE TABLE answer (row_ BIGINT, {types})")
    names = [column.name for column in columns]
    insert(
        connection,
        "answer",
        ({"row_": number, **dict(zip(names, row, strict=True))} for number, row in enumerate(rows)),
    )
    return Answer(connection, "answer", tuple(columns), **facts)
