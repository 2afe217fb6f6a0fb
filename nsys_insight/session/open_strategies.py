"""Strategies to open the files of a session. If one fails, the next one can still succeed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from nsys_insight.ingest import cache_entries, store
from nsys_insight.ingest.attach import attach, is_unreadable_cell
from nsys_insight.ingest.database import connect
from nsys_insight.ingest.files import File, list_exports

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import duckdb

    from nsys_insight.ingest.limits import Limits
    from nsys_insight.ingest.source import Source

    OpenFiles = tuple[duckdb.DuckDBPyConnection, list[Source]]


# Copying a smaller file saves no time (docs/evidence/performance.md).
_BIG_BYTES = 32 * 10**6


class OpenStrategies:
    """Tries three ways to read a SQLite export, fastest first; all give the same answers.

    First a DuckDB copy in the cache, then a scan in place with DuckDB's extension, then a copy made cell by cell. Each
    one starts more slowly than the one before, and works where that one fails: with a damaged cache, on a platform
    without the extension, for text that is not UTF-8. `cached` are the DuckDB files that the current strategy reads;
    `limits` apply to the next one.
    """

    def __init__(self, files: Sequence[File], limits: Limits, *, use_cache: bool | None, ncu: Path | None) -> None:
        """See `session.Session` for `use_cache` and `ncu`."""
        self._files, self.limits, self._use_cache, self._ncu = files, limits, use_cache, ncu
        self.cached: list[Path] = []
        self._copies: dict[Path, Path] = {}
        self._used_files: list[Path] = []
        self._is_in_place = False
        self._copying: list[duckdb.DuckDBPyConnection] = []
        self._strategy: Callable[[], OpenFiles | None] = self._open_in_place
        self._remaining = [self._open_from_cache, self._open_in_place, self._open_copied]

    def open(self, *, as_exported: bool) -> OpenFiles:
        """Open the files with the next strategy that is available.

        A copy in the cache has only the columns that the model reads, so `as_exported` skips it.
        """
        while True:
            self._strategy = self._remaining.pop(0)
            self.cached = []
            if as_exported and self._strategy == self._open_from_cache:
                continue
            if open_files := self._strategy():
                return open_files

    def repeat(self) -> None:
        """Let the next `open` use the current strategy again."""
        self._remaining.insert(0, self._strategy)

    def leave_cache(self) -> None:
        """Let the next `open` use the current strategy again, or scan in place if the current one is the cache."""
        if self._strategy != self._open_from_cache:
            self.repeat()
        elif self._open_in_place not in self._remaining:
            self._remaining.insert(0, self._open_in_place)

    def switch_to_copy(self) -> bool:
        """Copy big exports that are scanned in place, and let the next `open` use the copy; return whether it was made.

        With a copy, a dozen reports take four fifths of the time, including the time to copy. The copy stays in the
        cache folder for the next question, unless the cache must not be used.
        """
        import sqlite3

        import duckdb

        files = list_exports(self._files)
        if not self._is_in_place or sum(file.stat().st_size for file in files) < _BIG_BYTES:
            return False
        try:
            self._copies = store.make_copies(
                files, self.limits.for_copy, self._copying, use_cache=self._use_cache is not False
            )
        except (OSError, UnicodeDecodeError, duckdb.Error, sqlite3.Error):
            return False
        self._remaining.insert(0, self._open_from_cache)
        return True

    def interrupt(self) -> None:
        """Stop the copy in progress."""
        for connection in list(self._copying):
            with suppress(Exception):  # it can be closed already
                connection.interrupt()

    @property
    def big_export(self) -> Path | None:
        """Return the export if it is the only file and is big; else None."""
        exports = list_exports(self._files)
        return exports[0] if len(self._files) == len(exports) == 1 and exports[0].stat().st_size >= _BIG_BYTES else None

    def can_fall_back(self, error: Exception) -> bool:
        """Return whether the next strategy can succeed after this error; discard the cache files if they failed."""
        if self.cached and not isinstance(error, UnicodeDecodeError):
            for file in self.cached:
                cache_entries.discard(file)
            return True
        return bool(self._remaining) and is_unreadable_cell(error)

    def _open_from_cache(self) -> OpenFiles | None:
        if self._use_cache is False and not self._copies:
            return None
        files = list_exports(self._files)
        cache_files = {file: self._cache_file(file) for file in files}
        if not self._use_cache and not any(cache_files.values()):
            return None
        open_files = self._attach(cache_files)
        if self._use_cache and open_files and self._is_in_place:
            # If the disk is full, the file is read in place.
            with suppress(OSError):
                self._copies = store.make_copies(files, self.limits.for_copy, self._copying)
                open_files[0].close()
                return self._attach({file: self._cache_file(file) for file in files})
        return open_files

    def _cache_file(self, export: Path) -> Path | None:
        copy = self._copies.get(export)
        cache_file = copy if copy and cache_entries.use(copy) else store.find_entry(export)
        self._used_files += [cache_file] if cache_file else []
        return cache_file

    def release(self) -> None:
        """Release the cache files. Call it when no connection reads them any longer."""
        while self._used_files:
            cache_entries.release(self._used_files.pop())

    def _open_in_place(self) -> OpenFiles | None:
        return self._attach({})

    def _open_copied(self) -> OpenFiles | None:
        files, can_use_cache = list_exports(self._files), self._use_cache is not False
        self._copies = store.make_copies(
            files, self.limits.for_copy, self._copying, in_place=False, use_cache=can_use_cache
        )
        open_files = self._attach({file: self._cache_file(file) for file in files})
        self.cached = []  # there is no fallback
        return open_files

    def _attach(self, cache_files: Mapping[Path, Path | None]) -> OpenFiles | None:
        self.cached = [file for file in cache_files.values() if file]
        connection = connect(self.limits.for_copy if self.cached else self.limits)
        sources = attach(connection, self._files, cache_files, self._ncu, use_cache=self._use_cache is not False)
        if sources is None:
            return None
        self._is_in_place = any(source.export and source.export.tables == source.columns.keys() for source in sources)
        return connection, sources
