"""The answer of a query that is still running, for results larger than memory."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from nsys_insight import progress
from nsys_insight.session.answer import Batch, Column, Columns
from nsys_insight.session.sandbox import open_writable_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nsys_insight.session.connection import Connection
    from nsys_insight.sql.statements import Statement

# Rows per fetch.
BATCH_ROWS = 50_000
# Consecutive times differ only slightly, and version 2 of the format stores differences.
_COMPACT_OPTIONS = ", COMPRESSION zstd, PARQUET_VERSION v2"


class RunningAnswer:
    """Rows in the order of the query, which can be read once: as `batches`, or into a Parquet file.

    The query starts when `columns` or rows are first read. `row_count` is the number of rows read so far.
    """

    def __init__(self, connection: Connection, statement: Statement) -> None:
        """Prepare the answer; the query does not start yet."""
        self._connection, self._statement = connection, statement
        self.row_count = 0
        self.notes: tuple[str, ...] = ()

    @cached_property
    def _started(self) -> tuple[Columns, Iterator[Batch]]:
        with progress.show_task("running the query"):
            return self._connection.stream(self._statement.sql, BATCH_ROWS, line=self._statement.line)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns of the query.

        Raises:
            QueryError: The query cannot run.
        """
        return tuple(Column(name, kind) for name, kind in self._started[0])

    def batches(self, limit: int | None = None) -> Iterator[list[tuple[Any, ...]]]:
        """Fetch the first `limit` rows, or all of them, in batches.

        Raises:
            QueryError: The query failed while it ran.
        """
        for batch in self._started[1]:
            rows = batch if limit is None else batch[: limit - self.row_count]
            self.row_count += len(rows)
            yield rows
            if self.row_count == limit:
                return

    def write_parquet(self, path: Path, limit: int | None = None, *, is_compact: bool = False) -> None:
        """Write the rows to a Parquet file with DuckDB's own writer, in constant memory.

        `is_compact` reduces the file to a third of its size and takes a little longer. It is for built-in queries only,
        which read only the columns of the expected schema from raw tables.

        Raises:
            OSError: The file cannot be written.
            QueryError: The query failed.
        """
        sql = self._statement.sql if limit is None else f"SELECT * FROM ({self._statement.sql}\n) LIMIT {limit}"
        with progress.show_task(f"writing {path.name}"), open_writable_path(path) as inner_path:
            options = _COMPACT_OPTIONS if is_compact else ""
            self.row_count = self._connection.write_parquet(
                sql, inner_path, line=self._statement.line, options=options, is_built_in=is_compact
            )
