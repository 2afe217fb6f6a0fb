"""Rows of a big SQLite export that lie near given times, found by halving instead of reading the whole table.

nsys writes the rows of a table in order of start; whoever looks rows up must know that they are.
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
# So many spans of rows are asked of SQLite in one statement.
_AT_ONCE = 5_000
# So many rows, evenly spread, tell whether all are in order; with them at hand, less is to be halved for each time.
PROBES = 1_000
_NEVER = -(1 << 63)


class Rows:
    """The rows of one table, to be asked where in it a time is."""

    def __init__(self, database: sqlite3.Connection, table: str, column: str = "start") -> None:
        """`column` rises from row to row: a time, or an id that is counted up."""
        self._database, self._name, self._column = database, identifier(table), identifier(column)
        self._probe = f"SELECT {self._column} FROM {self._name} WHERE rowid >= ? ORDER BY rowid LIMIT 1"
        self.numbers = row_numbers(database, table)

    @property
    def are_in_order(self) -> bool:
        """Whether those of the rows that are looked at, evenly spread, are."""
        return self._values == sorted(self._values)

    def place(self, value: int) -> int:
        """The number of the first row with this value or a higher one; one past the last row if there is none."""
        after = bisect_left(self._values, value)
        low = self._some[after - 1] if after else self.numbers.start
        high = self._some[after] if after < len(self._some) else self.numbers.stop
        return bisect_left(range(high), value, lo=low, key=self._at)

    @cached_property
    def _some(self) -> range:
        return self.numbers[:: max(1, len(self.numbers) // PROBES)]

    @cached_property
    def _values(self) -> list[int]:
        return [self._at(number) for number in self._some]

    def _at(self, number: int) -> int:
        row = self._database.execute(self._probe, (number,)).fetchone()
        return row[0] if row is not None and isinstance(row[0], int) else _NEVER


def row_numbers(database: sqlite3.Connection, table: str) -> range:
    """The numbers from a table's first row to its last; of a table without (WITHOUT ROWID), or without rows, none.

    Nor are there any where a row has a number at the edge of 64 bits: nsys counts its rows.
    """
    import sqlite3

    name = identifier(table)
    # One aggregate a query: SQLite looks up a single min or max, but scans the table for two.
    with suppress(sqlite3.OperationalError):
        low, high = (database.execute(f"SELECT {edge}(rowid) FROM {name}").fetchone()[0] for edge in ("min", "max"))
        if isinstance(low, int) and isinstance(high, int) and high - low < sys.maxsize:
            return range(low, high + 1)
    return range(0)


def joined(spans: Iterable[tuple[int, int]]) -> Spans:
    """The union of spans, both ends included, as disjoint ones in order."""
    union: Spans = []
    for first, last in sorted(span for span in spans if span[1] >= span[0]):
        if union and first <= union[-1][1] + 1:
            union[-1] = union[-1][0], max(union[-1][1], last)
        else:
            union.append((first, last))
    return union


def keep(
    connection: duckdb.DuckDBPyConnection, catalog: str, table: str, types: Mapping[str, str], spans: Spans
) -> str:
    """Copy the rows whose numbers are in spans into a scratch table with columns of these types; return its name.

    SQLite finds each span by its row numbers, where DuckDB's extension would read all rows to leave most of them out.
    It hands every cell over as text.
    """
    name = f"internal.{identifier(f'near_{table}')}"
    wanted = ", ".join(f"r.{identifier(column)}" for column in types)
    typed = ", ".join(f"{identifier(column)}::{kind} AS {identifier(column)}" for column, kind in types.items())
    columns = ", ".join(f"{identifier(column)} {kind}" for column, kind in types.items())
    connection.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")
    union = joined(spans)
    for first in range(0, len(union), _AT_ONCE):
        values = ", ".join(map(str, union[first : first + _AT_ONCE]))
        query = f"""WITH span (first, last) AS (VALUES {values})
            SELECT {wanted} FROM span CROSS JOIN {identifier(table)} AS r
            WHERE r.rowid BETWEEN span.first AND span.last"""
        found = f"sqlite_query({literal(catalog)}, {literal(query)})"
        connection.execute(f"INSERT INTO {name} SELECT {typed} FROM {found}")
    return name
