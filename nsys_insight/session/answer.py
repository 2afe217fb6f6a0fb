"""The answer to one question: a table in DuckDB, with descriptions of its columns."""

from __future__ import annotations

import re
import shlex
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nsys_insight import progress
from nsys_insight.errors import QueryError, UsageError
from nsys_insight.ingest.catalogs import open_cursor
from nsys_insight.ingest.scope import write_flags
from nsys_insight.paths import read_catalog
from nsys_insight.session.sandbox import open_writable_path
from nsys_insight.sql.quoting import identifier, literal
from nsys_insight.sql.rows import insert_rows
from nsys_insight.text.suggestions import did_you_mean
from nsys_insight.text.units import label_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb
    import polars as pl

Columns = list[tuple[str, str]]  # names and DuckDB types
ZONE_SUFFIX = "WITH TIME ZONE"  # in the names of DuckDB's types
_NO_PIDS: Mapping[int, int] = {}
_BATCH_ROWS = 50_000
Batch = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Column:
    """One column of an answer.

    `type` is DuckDB's name of the type. The unit follows from the suffix of the name (`text.units.unit_of`). A terminal
    that is too narrow for a row hides the columns with `is_detail`, then others from the last. Columns with a
    `position` come first, in this order. `share_of` is the denominator of a share whose name does not contain it.
    """

    name: str
    type: str
    description: str = ""
    is_detail: bool = False
    position: int | None = None
    share_of: str = ""


def read_columns(place: str) -> tuple[Column, ...]:
    """Read the columns of an answer that Python computes: a table of a package's file, as in `kernel_code/loops`.

    The file is `queries/internal/PACKAGE/columns.toml`. `detail` after the type sets `is_detail`.
    """
    package, _, table = place.partition("/")
    texts = read_catalog("columns", f"internal/{package}")[table].items()
    columns = []
    for name, text in texts:
        kind, _, description = text.partition(": ")
        columns.append(Column(name, kind.removesuffix(" detail"), description, is_detail=kind.endswith(" detail")))
    return tuple(columns)


def refuse_types(columns: Sequence[Column], *types: str) -> None:
    """Name the column that Polars has no type for. Polars itself panics at it.

    Raises:
        QueryError: A column has one of these types of DuckDB, or contains it.
    """
    for column in columns:
        if any(name in column.type for name in types):
            raise QueryError(
                f"Polars has no type for the column '{column.name}': {column.type}",
                "convert it in the query: an interval with epoch_ns(…), any value with …::VARCHAR",
            )


@dataclass(frozen=True)
class Answer:
    """A finished answer, stored in its own DuckDB table in display order.

    `report` is the name of the command, `title` its heading, and `params` its parameters. `notes` are sentences that
    the reader needs to understand the numbers; `note_names` are their names in the pack. `trace` has a few facts about
    the trace, `summary` the overall statements of the answer. `shared_pids` are the pids that are shown instead of
    the numbers of `ingest.processes`. `condition` and `order` select and sort the rows, in SQL. Rows are fetched when
    they are read, so an answer of millions of rows can be written to a file in batches.
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
    shared_pids: Mapping[int, int] = field(default_factory=dict, repr=False)
    condition: str = "true"
    order: str = "row_"

    @cached_property
    def row_count(self) -> int:
        """Return the number of all rows, also those that are not shown."""
        return int(
            self.connection.execute(f"SELECT count(*) FROM {self.table} WHERE {self.condition}").fetchall()[0][0]
        )

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the sentence about impossible rows of the trace, if there are any. It applies to every answer."""
        return tuple(filter(None, [self.trace.get("left_out")]))

    @property
    def file_checks(self) -> tuple[str, ...]:
        """Return whether the traces hold what their files hold (`self_check.FileCheck`): each sentence once."""
        traces_by_text: dict[str, list[str]] = {}
        for check in self.summary.get("file_checks", ()):
            traces_by_text.setdefault(check["text"], []).append(check["trace"])
        return tuple(
            text if len(traces_by_text) == 1 else f"{', '.join(traces)}: {text}"
            for text, traces in traces_by_text.items()
        )

    @property
    def heading(self) -> str:
        """Return the title, with the scope of the answer if it has one."""
        scope = f"scope: {shlex.join(write_flags(self.trace['scope']))}" if self.trace.get("scope") else ""
        return f"{self.title} ({scope})" if self.title and scope else self.title or scope.capitalize()

    def notes_named(self, name: str) -> tuple[str, ...]:
        """Return the notes with this name in the header of the pack."""
        return tuple(text for note, text in zip(self.note_names, self.notes, strict=False) if note == name)

    def select_columns(self, names: Sequence[str]) -> Answer:
        """Return the answer with only these columns, in this order.

        Raises:
            UsageError: The answer has no such column.
        """
        columns_by_name = {column.name: column for column in self.columns}
        for name in names:
            if name not in columns_by_name:
                hint = did_you_mean(name, columns_by_name) or f"there are: {', '.join(columns_by_name)}"
                raise UsageError(f"the answer of {self.report or 'this query'} has no column {name!r}", hint)
        columns = (replace(columns_by_name[name], is_detail=False, position=index) for index, name in enumerate(names))
        return replace(self, columns=tuple(columns))

    def select_main_columns(self) -> Answer:
        """Return the answer with its main columns, in their order; if it has none, without details."""
        main_columns = [column for column in self.columns if column.position is not None]
        main_columns.sort(key=lambda column: column.position or 0)
        columns = main_columns or [column for column in self.columns if not column.is_detail]
        return self.select_columns([column.name for column in columns])

    def select_names(self, pattern: str) -> Answer:
        """Return the answer with only the rows in which a name fits a pattern, in which `*` and `?` are wildcards.

        Without wildcards, the name contains it. The case does not matter. Names are the columns `name` and `…_name`.
        Where none of them fits, other columns with text are searched, such as `family`.

        Raises:
            UsageError: The answer has no column with text.
        """
        texts = [column.name for column in self.columns if column.type == "VARCHAR"]
        if not texts:
            raise UsageError(f"the answer of {self.report} has no names", "leave --name out")
        glob = pattern.lower() if set(pattern) & {"*", "?"} else f"*{pattern.lower()}*"
        # GLOB would read brackets as a set of characters, and names of kernels have them.
        glob = re.sub(r"[\[\]]", lambda bracket: f"[{bracket[0]}]", glob)
        names = [name for name in texts if name == "name" or name.endswith("_name")] or texts
        answer = self._select_fitting(names, glob)
        if not answer.row_count:
            other_columns = [name for name in texts if self._select_fitting([name], glob).row_count]
            names, answer = other_columns or names, self._select_fitting(other_columns or names, glob)
        note = f"{answer.row_count:,} of {self.row_count:,} rows have {pattern!r} in {' or '.join(names)}"
        empty = f"No {' or '.join(names)} fits {pattern!r}" if self.row_count else self.empty
        return replace(answer, notes=(*self.notes, note), empty=empty)

    def _select_fitting(self, columns: Sequence[str], glob: str) -> Answer:
        """Return the answer with only the rows in which one of these columns fits."""
        tests = (f"coalesce(lower({identifier(column)}) GLOB {literal(glob)}, false)" for column in columns)
        return replace(self, condition=f"({' OR '.join(tests)})")

    def sort(self, text: str) -> Answer:
        """Return the answer sorted by a column: numbers from the largest, text from A. `:asc` and `:desc` override it.

        The unit at the end of the column's name may be left out. Unknown values come last.

        Raises:
            UsageError: The answer has no such column, or the order is neither asc nor desc.
        """
        typed_name, _, order = text.partition(":")
        if order not in ("", "asc", "desc"):
            raise UsageError(f"--sort takes COLUMN, COLUMN:asc or COLUMN:desc, not {text!r}", f"--sort {typed_name}")
        columns_by_name = {column.name: column for column in self.columns}
        key = "_".join(typed_name.lower().split())
        similar = [name for name in columns_by_name if "_".join(label_of(name).lower().split()) == key]
        column = columns_by_name.get(key) or (columns_by_name[similar[0]] if similar else None)
        if column is None:
            hint = did_you_mean(key, columns_by_name) or f"there are: {', '.join(columns_by_name)}"
            raise UsageError(f"the answer of {self.report} has no column {typed_name!r}", hint)
        is_text = column.type == "VARCHAR"
        value = f"lower({identifier(column.name)})" if is_text else identifier(column.name)
        return replace(self, order=f"{value} {order or ('asc' if is_text else 'desc')} NULLS LAST, row_")

    def rows(self, limit: int | None = None) -> list[tuple[Any, ...]]:
        """Fetch the first `limit` rows, or all of them."""
        with _explain_closed():
            return self.connection.execute(self._select(limit)).fetchall()

    def dicts(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Fetch the first `limit` rows, or all of them, as dictionaries of cells by column."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows(limit)]

    def batches(self, limit: int | None = None) -> Iterator[list[tuple[Any, ...]]]:
        """Fetch the first `limit` rows, or all of them, in batches."""
        with _explain_closed():
            cursor = open_cursor(self.connection)
            cursor.execute(self._select(limit))
        while batch := cursor.fetchmany(_BATCH_ROWS):
            yield batch

    def frame(self) -> pl.DataFrame:
        """Return all rows as a polars frame, with raw values: ns, bytes, NULL for unknown."""
        import polars as pl

        refuse_types(self.columns, "INTERVAL", "UNION(")
        with _explain_closed():
            return pl.DataFrame(open_cursor(self.connection).sql(self._select(None)))

    def write_parquet(self, path: Path, limit: int | None = None) -> None:
        """Write the answer as a Parquet file with DuckDB's own writer, in constant memory."""
        with progress.show_task(f"writing {path.name}"), open_writable_path(path) as inner:
            self.connection.execute(f"COPY ({self._select(limit)}) TO {literal(str(inner))} (FORMAT parquet)")

    def _select(self, limit: int | None) -> str:
        names = ", ".join(
            f"{show_pid(column.name, self.shared_pids)} AS {identifier(column.name)}" for column in self.columns
        )
        limit_clause = "" if limit is None else f" LIMIT {limit}"
        return f"SELECT {names} FROM {self.table} WHERE {self.condition} ORDER BY {self.order}{limit_clause}"


@contextmanager
def _explain_closed() -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.ConnectionException:
        raise UsageError("the trace of this answer is closed", "read answers before trace.close()") from None


def store_result(connection: duckdb.DuckDBPyConnection, table: str, select: str) -> Columns:
    """Run `select`, store its result as the in-memory table `table`, and return the names and types of its columns.

    The column `row_` numbers the rows in their order. The connection does not preserve insertion order, so that it can
    scan a SQLite file in parallel.
    """
    connection.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT row_number() OVER () AS row_, * FROM (\n{select}\n)")
    description = connection.execute(f"DESCRIBE {table}").fetchall()
    for name, kind, *_ in description:
        if ZONE_SUFFIX in kind:
            connection.execute(f"ALTER TABLE {table} ALTER COLUMN {identifier(name)} TYPE VARCHAR")
    return [(name, readable_type(kind)) for name, kind, *_ in description[1:]]


def select_readable(columns: Columns, shared_pids: Mapping[int, int] = _NO_PIDS) -> str:
    """Write the select list for all of these columns, with the types of `readable_type`, and pids (`show_pid`)."""
    replaced = [
        f"{identifier(name)}::VARCHAR AS {identifier(name)}"
        if ZONE_SUFFIX in kind
        else f"{show_pid(name, shared_pids)} AS {identifier(name)}"
        for name, kind in columns
        if ZONE_SUFFIX in kind or (shared_pids and name == "process_id")
    ]
    return f"* REPLACE ({', '.join(replaced)})" if replaced else "*"


def show_pid(column: str, shared_pids: Mapping[int, int]) -> str:
    """Write the SQL for a column of an answer: the pid instead of the numbers of `ingest.processes`."""
    name = identifier(column)
    if column != "process_id" or not shared_pids:
        return name
    cases = " ".join(f"WHEN {process_id} THEN {pid}" for process_id, pid in shared_pids.items())
    return f"(CASE {name} {cases} ELSE {name} END)"


def readable_type(kind: str) -> str:
    """Return the type as which Python reads a column: times with a zone become text, as DuckDB needs pytz for them."""
    return "VARCHAR" if ZONE_SUFFIX in kind else kind


def build_answer(columns: Sequence[Column], rows: Sequence[Sequence[object]], **facts: Any) -> Answer:
    """Build an answer from rows that Python computed; `facts` are the other fields of `Answer`."""
    import duckdb

    connection = duckdb.connect()
    types = ", ".join(f"{identifier(column.name)} {column.type}" for column in columns)
    connection.execute(f"CREATE TABLE answer (row_ BIGINT, {types})")
    names = [column.name for column in columns]
    insert_rows(
        connection,
        "answer",
        ({"row_": number, **dict(zip(names, row, strict=True))} for number, row in enumerate(rows)),
    )
    return Answer(connection, "answer", tuple(columns), **facts)
