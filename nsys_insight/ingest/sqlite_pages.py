"""Whole numbers of a SQLite table, read from the pages of its file with NumPy.

SQLite hands rows over cell by cell, which is half of the cost of copying a big export; the same cells of thousands of
rows at once take a third of the time. The format of the file is documented and does not change
(https://sqlite.org/fileformat.html). Whatever is not plain in a table is left to SQLite.
"""

from __future__ import annotations

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.ingest import sqlite_cells
from nsys_insight.ingest.sqlite_cells import NULL, NotPlainError, Part
from nsys_insight.ingest.sqlite_file import opened
from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from nsys_insight.ingest.sqlite_cells import Bytes, Ints

# So many bytes of pages are looked at together, for they and what is worked out from them fit in a processor's cache;
# and about so many cells make a batch.
_PART, _BATCH = 2 << 20, 20_000_000
_LEAF, _INTERIOR = 13, 5


class Batch(NamedTuple):
    """Rows: columns by name, and those of them in which `NULL` is one."""

    columns: dict[str, Ints]
    nullable: frozenset[str]


def batches(path: Path, table: str, columns: Sequence[str], threads: int) -> Iterator[Batch]:
    """Read columns of a table, in the order of its rows, as `gathered` does.

    Raises:
        NotPlainError: The table is to be read by SQLite; what came before is right, but not all.
        OSError: The file cannot be read.
    """
    reader = Reader(path, table, columns)
    leaves = reader.leaves()
    size = max(1, _PART // reader.page_size)
    parts = [leaves[first : first + size] for first in range(0, len(leaves), size)]
    return gathered(columns, [partial(reader.read, part) for part in parts], threads, _BATCH)


def gathered(columns: Sequence[str], parts: Sequence[Callable[[], Part]], threads: int, cells: int) -> Iterator[Batch]:
    """Put parts of some columns together, about so many cells at a time.

    Each batch holds until the next one is asked for, which takes its place: to be given new memory takes as long as to
    fill it. The next parts are read by `threads` while these are used.

    Raises:
        NotPlainError: A part cannot be read.
        OSError: The file cannot be read.
    """
    import numpy as np

    filled = [np.empty(0, dtype=np.int64)] * len(columns)
    at_once, left = 1, iter(parts)
    with ThreadPoolExecutor(threads) as pool:

        def begin() -> list[Future[Part]]:
            return [pool.submit(part) for part in islice(left, at_once)]

        under_way = begin()
        while under_way:
            found = [part.result() for part in under_way]
            rows = sum(len(part.columns[0]) for part in found)
            at_once = max(1, cells * len(found) // max(1, rows * len(columns)))
            under_way = begin()
            if len(filled[0]) < rows:
                filled = [np.empty(rows + rows // 8, dtype=np.int64) for _ in columns]
            for at, column in enumerate(filled):
                np.concatenate([part.columns[at] for part in found], out=column[:rows])
            nulls = [sum(part.nulls[at] for part in found) for at in range(len(columns))]
            yield _batch(columns, [column[:rows] for column in filled], nulls)


def _batch(columns: Sequence[str], filled: Sequence[Ints], nulls: Sequence[int]) -> Batch:
    import numpy as np

    for column, count in zip(filled, nulls, strict=True):
        if count and np.count_nonzero(column == NULL) != count:
            raise NotPlainError("a number is that which stands for NULL")
    nullable = frozenset(name for name, count in zip(columns, nulls, strict=True) if count)
    return Batch(dict(zip(columns, filled, strict=True)), nullable)


class Reader:
    """The pages of one table."""

    def __init__(self, path: Path, table: str, columns: Sequence[str]) -> None:
        """Find the table in the file.

        Raises:
            NotPlainError: It is to be read by SQLite.
        """
        for suffix in ("-wal", "-journal"):
            beside = path.with_name(path.name + suffix)
            if beside.exists() and beside.stat().st_size:
                raise NotPlainError("SQLite has not finished writing the file")
        self._path = path
        with path.open("rb") as file:
            head = file.read(100)
        self.page_size = int.from_bytes(head[16:18], "big")
        self.page_size = 65536 if self.page_size == 1 else self.page_size
        self._usable = self.page_size - head[20]
        if not head.startswith(b"SQLite format 3\0") or self.page_size < 512:
            raise NotPlainError("it is not a SQLite file")
        self._pages = path.stat().st_size // self.page_size
        try:
            with opened(path) as database:
                find = "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?"
                root = database.execute(find, [table]).fetchone()
                described = database.execute(f"PRAGMA table_xinfo({identifier(table)})").fetchall()
        except sqlite3.Error as error:
            raise NotPlainError(str(error)) from None
        # A key that is the row's number is not among its cells, nor is a column that an expression gives.
        stored = {name: place for place, name, _, _, _, is_key, hidden in described if not is_key and not hidden}
        if root is None or root[0] < 2 or any(hidden for *_, hidden in described) or not stored.keys() >= set(columns):
            raise NotPlainError("its cells are not all there")
        self._root, self._places = root[0], [stored[name] for name in columns]

    def leaves(self) -> Ints:
        """The numbers of the pages with rows, in the order of these."""
        import numpy as np

        level = [self._root]
        with self._path.open("rb", buffering=0) as file:
            for _ in range(20):
                first = self._page(file, level[0])
                if first[0] == _LEAF:
                    return np.asarray(level, dtype=np.int64)
                level = [child for page in level for child in self._children(self._page(file, page))]
                if len(level) > self._pages or not all(1 < page <= self._pages for page in level):
                    break
        raise NotPlainError("its pages are not those of a table")

    def _page(self, file: Any, number: int) -> bytes:
        file.seek((number - 1) * self.page_size)
        page: bytes = file.read(self.page_size)
        if len(page) < self.page_size:
            raise NotPlainError("the file ends too early")
        return page

    @staticmethod
    def _children(page: bytes) -> list[int]:
        import numpy as np

        count = int.from_bytes(page[3:5], "big")
        if page[0] != _INTERIOR or 12 + 2 * count > len(page):
            raise NotPlainError("its pages are not those of a table")
        at = np.append(np.frombuffer(page, ">u2", count, 12).astype(np.int64), 8)
        if at.max() + 4 > len(page):
            raise NotPlainError("its pages are not those of a table")
        children: list[int] = np.ndarray(len(page) - 3, ">u4", page, strides=(1,))[at].tolist()
        return children

    def read(self, pages: Ints) -> Part:
        """Read the rows of some leaves."""
        import numpy as np

        data = self.data_of(pages)
        base = np.arange(len(pages), dtype=np.int64) * self.page_size
        count = self.counts(data, base)
        number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        return self.cells(data, np.repeat(base, count), number)

    def data_of(self, pages: Ints) -> Bytes:
        """The bytes of pages, one after the other, and some more, so that rows can be read along with what follows."""
        import numpy as np

        data = np.zeros(len(pages) * self.page_size + sqlite_cells.SLACK, dtype=np.uint8)
        into = memoryview(data.data)
        starts = [0, *(np.flatnonzero(np.diff(pages) != 1) + 1).tolist(), len(pages)]
        runs = [
            ((int(pages[first]) - 1) * self.page_size, into[first * self.page_size : last * self.page_size])
            for first, last in pairwise(starts)
        ]
        with self._path.open("rb", buffering=0) as file:
            if len(runs) > 1 and hasattr(os, "posix_fadvise"):
                # All are asked for first: of a file that is not in memory, this takes a quarter of the time.
                for place, run in runs:
                    os.posix_fadvise(file.fileno(), place, len(run), os.POSIX_FADV_WILLNEED)
            for place, run in runs:
                file.seek(place)
                if file.readinto(run) != len(run):
                    raise NotPlainError("the file ends too early")
        return data

    def counts(self, data: Bytes, base: Ints) -> Ints:
        """How many rows there are in the leaves that begin at some bytes."""
        count = _pairs(data, base + 3)
        if (data[base] != _LEAF).any():
            raise NotPlainError("its pages are not those of a table")
        # A row takes two bytes for its place in the leaf, and three and its cells' types before its cells.
        if (8 + count * (2 + 3 + max(self._places) + 1) > self.page_size).any():
            raise NotPlainError("its leaves have no room for their rows, which share their bytes")
        return count

    def cells(self, data: Bytes, base: Ints, number: Ints) -> Part:
        """Read rows, each by where its leaf begins and its number there."""
        try:
            row = base + _pairs(data, base + 8 + 2 * number)
        except IndexError:
            raise NotPlainError("a row lies outside of its page") from None
        return sqlite_cells.read(data, base, row, self._places, self._usable)


def _pairs(data: Bytes, at: Ints) -> Ints:
    """Read two bytes at each place as a number."""
    return data[at].astype("int64") << 8 | data[at + 1]
