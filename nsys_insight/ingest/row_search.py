"""Find the rows of a big SQLite export near given times, by binary search instead of a scan.

nsys writes the rows of a table in order of start. The caller must check that they are.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

    import duckdb

Spans = list[tuple[int, int]]
# The number of spans in one query of SQLite.
_SPANS_PER_QUERY = 5_000
# The number of evenly spread rows that are read first. They show whether the table is ordered, and shorten each search.
PROBE_COUNT = 1_000
_BEFORE_ALL = -(1 << 63)


class Rows:
    """The rows of one table, for searches by value."""

    def __init__(self, database: sqlite3.Connection, table: str, column: str = "start") -> None:
        """Read the row numbers. `column` increases from row to row: a time, or an id that is counted up."""
        self._database, self._name, self._column = database, identifier(table), identifier(column)
        self._probe = f"SELECT {self._column} FROM {self._name} WHERE rowid >= ? ORDER BY rowid LIMIT 1"
        self.numbers = read_row_numbers(database, table)

    @property
    def are_in_order(self) -> bool:
        """Whether the evenly spread rows are in order."""
        return self._probe_values == sorted(self._probe_values)

    def find_row(self, value: int) -> int:
        """Return the number of the first row with this value or a higher one, or one past the last row."""
        after = bisect_left(self._probe_values, value)
        low = self._probe_rows[after - 1] if after else self.numbers.start
        high = self._probe_rows[after] if after < len(self._probe_rows) else self.numbers.stop
        return bisect_left(range(high), value, lo=low, key=self._read_value)

    @cached_property
    def _probe_rows(self) -> range:
        return self.numbers[:: max(1, len(self.numbers) // PROBE_COUNT)]

    @cached_property
    def _probe_values(self) -> list[int]:
        return [self._read_value(number) for number in self._probe_rows]

    def _read_value(self, number: int) -> int:
        row = self._database.execute(self._probe, (number,)).fetchone()
        return row[0] if row is not None and isinstance(row[0], int) else _BEFORE_ALL


def read_row_numbers(database: sqlite3.Connection, table: str) -> range:
    """Return the row numbers from a table's first row to its last one.

    The range is empty for an empty table and for one WITHOUT ROWID. It is also empty if a number is at the limit of 64
    bits: nsys counts its rows.
    """
    import sqlite3

    name = identifier(table)
    # One aggregate per query: SQLite looks up a single min or max, but scans the table for two.
    with suppress(sqlite3.OperationalError):
        low, high = (database.execute(f"SELECT {edge}(rowid) FROM {name}").fetchone()[0] for edge in ("min", "max"))
        if isinstance(low, int) and isinstance(high, int) and high - low < sys.maxsize:
            return range(low, high + 1)
    return range(0)


def merge_spans(spans: Iterable[tuple[int, int]]) -> Spans:
    """Return the union of spans, both ends included, as disjoint spans in order."""
    union: Spans = []
    for first, last in sorted(span for span in spans if span[1] >= span[0]):
        if union and first <= union[-1][1] + 1:
            union[-1] = union[-1][0], max(union[-1][1], last)
        else:
            union.append((first, last))
    return union


def copy_rows(
    connection: duckdb.DuckDBPyConnection, catalog: str, table: str, types: Mapping[str, str], spans: Spans
) -> str:
    """Copy the rows in spans to a scratch table with columns of these types; return its name.

    SQLite finds each span by its row numbers. DuckDB's extension would read all rows and discard most of them. SQLite
    returns every cell as text.
    """
    name = f"internal.{identifier(f'near_{table}')}"
    selected_columns = ", ".join(f"r.{identifier(column)}" for column in types)
    cast_columns = ", ".join(f"{identifier(column)}::{kind} AS {identifier(column)}" for column, kind in types.items())
    column_definitions = ", ".join(f"{identifier(column)} {kind}" for column, kind in types.items())
    connection.execute(f"CREATE OR REPLACE TABLE {name} ({column_definitions})")
    union = merge_spans(spans)
    for first in range(0, len(union), _SPANS_PER_QUERY):
        values = ", ".join(map(str, union[first : first + _SPANS_PER_QUERY]))
        query = f"""WITH span (first, last) AS (VALUES {values})
            SELECT {selected_columns} FROM span CROSS JOIN {identifier(table)} AS r
            WHERE r.rowid BETWEEN span.first AND span.last"""
        sqlite_rows = f"sqlite_query({literal(catalog)}, {literal(query)})"
        connection.execute(f"INSERT INTO {name} SELECT {cast_columns} FROM {sqlite_rows}")
    return name
