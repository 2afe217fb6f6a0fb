"""Whether the files of a session are still those that were opened: an answer is of one file, not of two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.errors import file_changed
from nsys_insight.ingest.attach import parquet_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_insight.errors import TraceError
    from nsys_insight.ingest.files import File

Status = tuple[int, int, int, int]


class Watch:
    """Knows what files were like when it was made."""

    def __init__(self, files: Sequence[File]) -> None:
        """To be made before anything of the files is read."""
        self._before = [(file.path, _statuses(file.path)) for file in files]

    def changed(self) -> TraceError | None:
        """What to say if a file was replaced or written to since, or is gone; else None."""
        for path, before in self._before:
            now = _statuses(path)
            if now != before:
                return file_changed(path, "removed") if None in now else file_changed(path)
        return None


def _statuses(path: Path) -> list[Status | None]:
    return [_status(file) for file in (parquet_files(path) if path.is_dir() else [path])] or [None]


def _status(path: Path) -> Status | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
