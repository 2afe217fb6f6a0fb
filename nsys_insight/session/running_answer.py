"""The answer to a query that is still running, for results larger than memory."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from nsys_insight import progress
from nsys_insight.session.answer import Column
from nsys_insight.session.sandbox import handover

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nsys_insight.session.answer import Batch, Columns
    from nsys_insight.session.connection import Connection
    from nsys_insight.sql.statements import Statement

# Rows fetched at a time.
PIECE = 50_000
# Times that follow each other differ by little, and the second version of the format writes differences.
_SMALL = ", COMPRESSION zstd, PARQUET_VERSION v2"


class RunningAnswer:
    """Rows in the query's own order, to be read once: as `batches`, or into a Parquet file.

    The query runs when `columns` or rows are first asked for. `row_count` is how many rows were read so far.
    """

    def __init__(self, connection: Connection, statement: Statement) -> None:
        """Nothing runs yet."""
        self._connection, self._statement = connection, statement
        self.row_count = 0
        self.notes: tuple[str, ...] = ()

    @cached_property
    def _started(self) -> tuple[Columns, Iterator[Batch]]:
        with progress.at("running the query"):
            return self._connection.stream(self._statement.sql, PIECE, line=self._statement.line)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What the query returns.

        Raises:
            QueryError: It cannot run.
        """
        return tuple(Column(name, kind) for name, kind in self._started[0])

    def batches(self, limit: int | None = None) -> Iterator[list[tuple[Any, ...]]]:
        """Fetch the first `limit` rows, or all of them, in pieces.

        Raises:
            QueryError: The query failed on the way.
        """
        for batch in self._started[1]:
            piece = batch if limit is None else batch[: limit - self.row_count]
            self.row_count += len(piece)
            yield piece
            if self.row_count == limit:
                return

    def write_parquet(self, path: Path, limit: int | None = None, *, to_keep: bool = False) -> None:
        """Write the rows to a Parquet file with DuckDB's own writer, in constant memory.

        With `to_keep` it is written in a third of the room, which takes a little longer; the query is then one of ours,
        which reads of the raw tables no more than reports do.

        Raises:
            OSError: The file cannot be written.
            QueryError: The query failed.
        """
        sql = self._statement.sql if limit is None else f"SELECT * FROM ({self._statement.sql}\n) LIMIT {limit}"
        with progress.at(f"writing {path.name}"), handover(path) as inner:
            options = _SMALL if to_keep else ""
            self.row_count = self._connection.write_parquet(
                sql, inner, line=self._statement.line, options=options, ours=to_keep
            )
