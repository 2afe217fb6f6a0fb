"""Rows of a SQLite table in spans of a key that rises from row to row, found and read in the pages of its file.

To find 77,000 spans among 177 million rows, and their 7.7 million rows, takes 4 s of one thread; through SQLite 13 s.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nsys_insight.ingest.sqlite_cells import NULL, NotPlainError, Part
from nsys_insight.ingest.sqlite_pages import Reader, gathered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from nsys_insight.ingest.sqlite_cells import Bytes, Ints
    from nsys_insight.ingest.sqlite_pages import Batch

    Spans = Sequence[tuple[int, int]]

# The key of one leaf in so many is read first; rows of so many spans together; and so many cells make a batch.
_EVERY, _AT_ONCE, _BATCH = 64, 500, 4_000_000
_NOT_IN_ORDER = "its rows are not in order"


class Search:
    """A table whose rows rise by a column, the key; no two spans that are asked for share a key."""

    def __init__(self, path: Path, table: str, columns: Sequence[str], key: str) -> None:
        """Read where the leaves are, and the keys of a few.

        Raises:
            NotPlainError: The table is to be read by SQLite.
            OSError: The file cannot be read.
        """
        import numpy as np

        self._columns, self._rows, self._keys = columns, Reader(path, table, columns), Reader(path, table, [key])
        self._leaves = self._keys.leaves()
        leaves = np.append(np.arange(0, len(self._leaves), _EVERY), len(self._leaves) - 1)
        parts = [partial(self._edge, leaves[at : at + _AT_ONCE]) for at in range(0, len(leaves), _AT_ONCE)]
        keys = np.concatenate([batch.columns[key].copy() for batch in gathered([key], parts, threads=1, cells=_BATCH)])
        self.edges = int(keys[0]), int(self._edge(leaves[-1:], last=True).columns[0][0])
        first, last = self.edges
        if (np.diff(keys) < 0).any() or not NULL < first <= keys[-1] <= last < -NULL - 1:
            raise NotPlainError(_NOT_IN_ORDER)
        # With one before the first leaf and one behind the last one.
        self._some, self._some_keys = np.array([-1, *leaves, len(self._leaves)]), np.array([first - 1, *keys, last + 1])

    def batches(self, spans: Spans) -> Iterator[Batch]:
        """Read the rows whose key is in one of the spans, which rise, from a first key to a last one each.

        Raises:
            NotPlainError: The table is to be read by SQLite, or is not in order; what came before may not be all.
            OSError: The file cannot be read.
        """
        parts = [partial(self._read, spans[first : first + _AT_ONCE]) for first in range(0, len(spans), _AT_ONCE)]
        return gathered(self._columns, parts, threads=1, cells=_BATCH)

    def _edge(self, leaves: Ints, *, last: bool = False) -> Part:
        """The keys of the first rows of leaves, or of their last ones."""
        import numpy as np

        data = self._keys.data_of(self._leaves[leaves])
        base = np.arange(len(leaves)) * self._keys.page_size
        count = self._keys.counts(data, base)
        if not count.all():
            raise NotPlainError("a leaf has no rows")
        return self._keys.cells(data, base, count - 1 if last else count * 0)

    def _read(self, spans: Spans) -> Part:
        import numpy as np

        first, last = np.array(spans, dtype=np.int64).T
        begins = self._leaf_before(first)
        ends = self._leaf_of_last(begins, last)
        # One by one: of each span each of its leaves.
        count = ends - begins + 1
        span = np.repeat(np.arange(len(spans)), count)
        leaf = np.arange(len(span)) - np.repeat(np.cumsum(count) - count - begins, count)
        leaves, which = np.unique(leaf, return_inverse=True)
        data = self._rows.data_of(self._leaves[leaves])
        base = which * self._rows.page_size
        rows = self._rows.counts(data, base)
        since = np.where(leaf == begins[span], self._rows_below(data, base, rows, first[span]), 0)
        until = np.where(leaf == ends[span], self._rows_below(data, base, rows, last[span] + 1), rows)
        # Of two spans that touch, one may end with no row of a leaf, and the other begin with none of the leaf before.
        some = np.flatnonzero(since != until)
        before, after = some[:-1], some[1:]
        is_twice = (leaf[after] < leaf[before]) | ((leaf[after] == leaf[before]) & (since[after] < until[before]))
        if (since > until).any() or is_twice.any():
            raise NotPlainError(_NOT_IN_ORDER)
        count = until - since
        number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count - since, count)
        return self._rows.cells(data, np.repeat(base, count), number)

    def _leaf_before(self, keys: Ints) -> Ints:
        """The last leaf whose first key is below each of some keys, or the first leaf.

        It is between the leaf `low`, whose first key is below, and the leaf `high`, whose first key is not. Keys that
        rise by one have about the same number of rows each, so it is estimated from those of the two.
        """
        import numpy as np

        after = np.clip(np.searchsorted(self._some_keys, keys), 1, len(self._some) - 1)
        low, high = self._some[after - 1], self._some[after]
        low_key, high_key = self._some_keys[after - 1], self._some_keys[after]
        turn = 0
        while len(wide := np.flatnonzero(high - low > 1)):
            leaves = high[wide] - low[wide]
            share = (keys[wide] - low_key[wide]) / np.maximum(high_key[wide] - low_key[wide], 1)
            about, margin = low[wide] + (share * leaves).astype(np.int64), (np.sqrt(leaves) / 4).astype(np.int64)
            # On either side of where it should be; then, lest that take long, in the middle.
            guess = (about - margin, about + margin + 1, low[wide] + leaves // 2)[turn % 3]
            at = np.clip(guess, low[wide] + 1, high[wide] - 1)
            seen = self._edge(at).columns[0]
            if ((seen < low_key[wide]) | (seen > high_key[wide])).any():
                raise NotPlainError(_NOT_IN_ORDER)
            below = seen < keys[wide]
            low[wide[below]], low_key[wide[below]] = at[below], seen[below]
            high[wide[~below]], high_key[wide[~below]] = at[~below], seen[~below]
            turn += 1
        found: Ints = np.maximum(low, 0)
        return found

    def _leaf_of_last(self, begins: Ints, keys: Ints) -> Ints:
        """The first leaf, from where a span begins, whose last key is above that of the span; or the last leaf."""
        import numpy as np

        leaf = begins.copy()
        going_on = np.arange(len(leaf))
        while len(going_on := going_on[leaf[going_on] + 1 < len(self._leaves)]):
            going_on = going_on[self._edge(leaf[going_on], last=True).columns[0] <= keys[going_on]]
            leaf[going_on] += 1
        return leaf

    def _rows_below(self, data: Bytes, base: Ints, rows: Ints, keys: Ints) -> Ints:
        """How many of the rows of leaves have a lower key, found by halving."""
        import numpy as np

        low, high = np.zeros_like(rows), rows.copy()
        while len(wide := np.flatnonzero(low < high)):
            middle = (low[wide] + high[wide]) // 2
            below = self._keys.cells(data, base[wide], middle).columns[0] < keys[wide]
            low[wide[below]] = middle[below] + 1
            high[wide[~below]] = middle[~below]
        return low
