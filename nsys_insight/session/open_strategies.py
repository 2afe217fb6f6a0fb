"""The ways to read the files of a session, one after the other, for what stops one need not stop the next."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from nsys_insight.ingest import cache_entries, store
from nsys_insight.ingest.attach import attach, is_unreadable_cell
from nsys_insight.ingest.database import connect
from nsys_insight.ingest.files import exports

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import duckdb

    from nsys_insight.ingest.files import File
    from nsys_insight.ingest.limits import Limits
    from nsys_insight.ingest.source import Source

    Opened = tuple[duckdb.DuckDBPyConnection, list[Source]]


# To copy a smaller file saves nothing.
_BIG = 64 * 10**6


class OpenStrategies:
    """There are three ways to read a SQLite export, all with the same answers.

    A DuckDB file built of it before, DuckDB's extension scanning it in place, and a copy made cell by cell. Each next
    one is slower to start and gets over what stopped the one before: a damaged cache, a platform without the extension,
    text that is not UTF-8. `cached` are the DuckDB files that the way in use reads, `limits` hold for the next one.
    """

    def __init__(self, files: Sequence[File], limits: Limits, *, use_cache: bool | None, ncu: Path | None) -> None:
        """`use_cache` and `ncu` are as in `session.Session`."""
        self._files, self.limits, self._use_cache, self._ncu = files, limits, use_cache, ncu
        self.cached: list[Path] = []
        self._made: dict[Path, Path] = {}
        self._used: list[Path] = []
        self._is_in_place = False
        self._copying: list[duckdb.DuckDBPyConnection] = []
        self._way: Callable[[], Opened | None] = self._in_place
        self._left = [self._from_cache, self._in_place, self._copied]

    def open(self, *, as_exported: bool) -> Opened:
        """Open the files in the next way that is there.

        A copy in the cache holds only what the model reads, so it will not do where files are shown `as_exported`.
        """
        while True:
            self._way = self._left.pop(0)
            self.cached = []
            if as_exported and self._way == self._from_cache:
                continue
            if opened := self._way():
                return opened

    def repeat(self) -> None:
        """Let the way in use be the next one too."""
        self._left.insert(0, self._way)

    def leave_cache(self) -> None:
        """Let the next way be that in use, or in place of a copy in the cache, the files themselves."""
        if self._way != self._from_cache:
            self.repeat()
        elif self._in_place not in self._left:
            self._left.insert(0, self._in_place)

    def copy(self) -> bool:
        """Copy big exports that are scanned in place, and let the copy be the next way; tell whether it is.

        A dozen reports are answered from a copy in four fifths of the time, the copying included. It stays in the cache
        folder for the next question, unless that is not to be used.
        """
        import duckdb

        files = exports(self._files)
        if not self._is_in_place or sum(file.stat().st_size for file in files) < _BIG:
            return False
        try:
            self._made = store.copies(files, self.limits.of_copy, self._copying, lasting=self._use_cache is not False)
        except (OSError, UnicodeDecodeError, duckdb.Error):
            return False
        self._left.insert(0, self._from_cache)
        return True

    def interrupt(self) -> None:
        """Stop a copy that is being made."""
        for connection in list(self._copying):
            with suppress(Exception):  # it may be closed by now
                connection.interrupt()

    @property
    def big_export(self) -> Path | None:
        """The export, if there is one alone and it is big."""
        found = exports(self._files)
        return found[0] if len(self._files) == len(found) == 1 and found[0].stat().st_size >= _BIG else None

    def get_over(self, error: Exception) -> bool:
        """Tell whether the next way may do better; what the cache has is then of no more use."""
        if self.cached and not isinstance(error, UnicodeDecodeError):
            for file in self.cached:
                cache_entries.discard(file)
            return True
        return bool(self._left) and is_unreadable_cell(error)

    def _from_cache(self) -> Opened | None:
        if self._use_cache is False and not self._made:
            return None
        files = exports(self._files)
        built = {file: self._cache_file(file) for file in files}
        if not self._use_cache and not any(built.values()):
            return None
        opened = self._attach(built)
        if self._use_cache and opened and self._is_in_place:
            # Without room for a copy, the file is read in place.
            with suppress(OSError):
                self._made = store.copies(files, self.limits.of_copy, self._copying)
                opened[0].close()
                return self._attach({file: self._cache_file(file) for file in files})
        return opened

    def _cache_file(self, export: Path) -> Path | None:
        made = self._made.get(export)
        found = made if made and cache_entries.use(made) else store.find(export)
        self._used += [found] if found else []
        return found

    def release(self) -> None:
        """Let go of the cache files, when no connection reads them any more."""
        while self._used:
            cache_entries.release(self._used.pop())

    def _in_place(self) -> Opened | None:
        return self._attach({})

    def _copied(self) -> Opened | None:
        files, lasting = exports(self._files), self._use_cache is not False
        self._made = store.copies(files, self.limits.of_copy, self._copying, in_place=False, lasting=lasting)
        opened = self._attach({file: self._cache_file(file) for file in files})
        self.cached = []  # there is no other way to read them
        return opened

    def _attach(self, built: Mapping[Path, Path | None]) -> Opened | None:
        self.cached = [file for file in built.values() if file]
        connection = connect(self.limits.of_copy if self.cached else self.limits)
        sources = attach(connection, self._files, built, self._ncu, lasting=self._use_cache is not False)
        if sources is None:
            return None
        self._is_in_place = any(source.export and source.export.tables == source.columns.keys() for source in sources)
        return connection, sources
