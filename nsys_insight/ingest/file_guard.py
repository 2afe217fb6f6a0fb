"""Detect changes of a session's files: every answer must come from one version of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.errors import file_changed_error
from nsys_insight.ingest.attach import list_parquet_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_insight.errors import TraceError
    from nsys_insight.ingest.files import File

Status = tuple[int, int, int, int]


class FileGuard:
    """The state of a session's files when it was opened."""

    def __init__(self, files: Sequence[File]) -> None:
        """Record the state of the files, before anything is read from them."""
        self._statuses_before = [(file.path, _read_statuses(file.path)) for file in files]

    def find_change(self) -> TraceError | None:
        """Return the error to show if a file was replaced, changed or removed since; else None."""
        for path, before in self._statuses_before:
            now = _read_statuses(path)
            if now != before:
                return file_changed_error(path, "removed") if None in now else file_changed_error(path)
        return None


def _read_statuses(path: Path) -> list[Status | None]:
    return [_read_status(file) for file in (list_parquet_files(path) if path.is_dir() else [path])] or [None]


def _read_status(path: Path) -> Status | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
