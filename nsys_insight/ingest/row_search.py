"""Rows of a big SQLite export that lie near given times, found by halving instead of reading the whole table.

nsys writes the rows of a table in order of start; whoever looks rows up must know that they are.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from contextlib import suppress
from copy import copy
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence

    import duckdb
    import numpy as np

Spans = list[tuple[int, int]]
# So many spans of rows are asked of SQLite in one statement; so many places are looked for together: the pages that are
# read for them stay in its cache of 2 MB.
_AT_ONCE, _TOGETHER = 5_000, 500
# So many rows are counted one by one, where that is left of a search.
_FEW = 48
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

    def over(self, database: sqlite3.Connection) -> Rows:
        """The same rows over another connection to the file, for another thread."""
        rows = copy(self)
        rows._database = database  # noqa: SLF001 - of its own class
        return rows

    @property
    def are_in_order(self) -> bool:
        """Whether those of the rows that are looked at, evenly spread, are."""
        return self._values == sorted(self._values)

    @property
    def edges(self) -> tuple[int, int]:
        """The first value and the last one, of a table that has rows."""
        return self._at(self.numbers[0]), self._at(self.numbers[-1])

    def place(self, value: int) -> int:
        """The number of the first row with this value or a higher one; one past the last row if there is none."""
        after = bisect_left(self._values, value)
        low = self._some[after - 1] if after else self.numbers.start
        high = self._some[after] if after < len(self._some) else self.numbers.stop
        return bisect_left(range(high), value, lo=low, key=self._at)

    def places(self, values: Sequence[int]) -> list[int] | None:
        """The same for thousands of values at once; None where rows are not in order, or are missing.

        Ids that rise by one have about the same number of rows each, so a place is estimated from known ones.

        Args:
            values: In rising order; none is below zero, nor is any of the table's.
        """
        found: list[int] = []
        for first in range(0, len(values), _TOGETHER):
            some = self._places(values[first : first + _TOGETHER])
            if some is None:
                return None
            found += some
        return found

    def behind(self, ends: Iterable[tuple[int, int]]) -> list[int]:
        """Of rows, each with a value, the first row after it with a higher one: one past the last row if there is none.

        All rows between are read: there should be few.
        """
        found: list[int] = []
        left = iter(ends)
        while some := list(islice(left, _TOGETHER)):
            rows = self._database.execute(
                f"""WITH ends (number, value) AS (VALUES {", ".join(map(str, some))})
                    SELECT coalesce((
                        SELECT r.rowid FROM {self._name} AS r
                        WHERE r.rowid >= number AND r.{self._column} > value ORDER BY r.rowid LIMIT 1
                    ), {self.numbers.stop}) FROM ends"""
            )
            found += [number for (number,) in rows]
        return found

    def _places(self, values: Sequence[int]) -> list[int] | None:
        """Narrow what a place can be, from the row `low`, which has a lower value, to the row `high`, which has not."""
        import numpy as np

        last = self.edges[1]
        numbers = np.array([self.numbers.start - 1, *self._some, self.numbers[-1], self.numbers.stop], dtype=np.int64)
        ids = np.array([-1, *self._values, last, max(last, values[-1] - 1) + 1], dtype=np.int64)
        if (np.diff(ids) < 0).any():
            return None
        wanted = np.array(values, dtype=np.int64)
        after = np.searchsorted(ids, wanted)
        low, high, low_id, high_id = numbers[after - 1], numbers[after], ids[after - 1], ids[after]
        turn = 0
        while len(wide := np.flatnonzero(high - low > _FEW)):
            first, span = low[wide], high[wide] - low[wide]
            share = (wanted[wide] - low_id[wide]) / (high_id[wide] - low_id[wide])
            about, margin = first + (share * span).astype(np.int64), (2 * np.sqrt(span)).astype(np.int64)
            # On either side of where it should be; then, lest that take long, in the middle.
            guess = (about - margin, about + margin, first + span // 2)[turn % 3]
            at = np.clip(guess, first + 1, high[wide] - 1)
            seen = self._read(at.tolist())
            if len(seen) < len(at) or not ((low_id[wide] <= seen) & (seen <= high_id[wide])).all():
                return None
            below = seen < wanted[wide]
            low[wide[below]], low_id[wide[below]] = at[below], seen[below]
            high[wide[~below]], high_id[wide[~below]] = at[~below], seen[~below]
            turn += 1
        return self._first_of(zip(low.tolist(), high.tolist(), values, strict=True))

    def _read(self, numbers: Iterable[int]) -> np.ndarray:
        """The values of rows; fewer where a row is missing, or its value is no number."""
        import numpy as np

        probes = ", ".join(f"({number})" for number in numbers)
        rows = self._database.execute(
            f"""WITH probe (number) AS (VALUES {probes})
                SELECT r.{self._column} FROM probe CROSS JOIN {self._name} AS r WHERE r.rowid = probe.number"""
        )
        return np.array([value for (value,) in rows if isinstance(value, int)], dtype=np.int64)

    def _first_of(self, brackets: Iterable[tuple[int, int, int]]) -> list[int]:
        """The places of values, each between a row and one behind it."""
        probes = ", ".join(map(str, brackets))
        rows = self._database.execute(
            f"""WITH bracket (low, high, value) AS (VALUES {probes})
                SELECT 1 + coalesce((
                    SELECT r.rowid FROM {self._name} AS r
                    WHERE r.rowid > low AND r.rowid < high AND r.{self._column} < value ORDER BY r.rowid DESC LIMIT 1
                ), low) FROM bracket"""
        )
        return [place for (place,) in rows]

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
    connection: duckdb.DuckDBPyConnection, catalog: str, table: str, types: Mapping[str, str], parts: Iterable[Spans]
) -> str:
    """Copy the rows whose numbers are in spans into a scratch table with columns of these types; return its name.

    The spans may come in parts, of which no two share a row: one is copied while the next ones are looked for.

    SQLite finds each span by its row numbers, where DuckDB's extension would read all rows to leave most of them out.
    It hands every cell over as text.
    """
    name = f"internal.{identifier(f'near_{table}')}"
    wanted = ", ".join(f"r.{identifier(column)}" for column in types)
    typed = ", ".join(f"{identifier(column)}::{kind} AS {identifier(column)}" for column, kind in types.items())
    columns = ", ".join(f"{identifier(column)} {kind}" for column, kind in types.items())
    connection.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")
    for spans in parts:
        union = joined(spans)
        for first in range(0, len(union), _AT_ONCE):
            values = ", ".join(map(str, union[first : first + _AT_ONCE]))
            query = f"""WITH span (first, last) AS (VALUES {values})
                SELECT {wanted} FROM span CROSS JOIN {identifier(table)} AS r
                WHERE r.rowid BETWEEN span.first AND span.last"""
            found = f"sqlite_query({literal(catalog)}, {literal(query)})"
            connection.execute(f"INSERT INTO {name} SELECT {typed} FROM {found}")
    return name
