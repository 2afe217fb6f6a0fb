"""The files of a session, their labels where there are several, and whether they change: answers are of one version."""

from __future__ import annotations

import os
from enum import StrEnum
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.errors import TraceError, file_changed_error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_Status = tuple[int, int, int, int]


class Kind(StrEnum):
    """What a file is: nsys's own report, an export that can be queried, or a trace that ``convert`` wrote."""

    SQLITE = "sqlite"
    REPORT = "report"
    PARQUET = "parquet"
    DATABASE = "duckdb"


class File(NamedTuple):
    """A file to read; `label` is the value of the column `trace` where there are several."""

    path: Path
    kind: Kind
    label: str = ""


def is_within(path: Path, *folders: Path) -> bool:
    """Return whether a path is in one of the folders when its links, and theirs, are followed."""
    real_path = _follow_links(path)
    return any(real_path.is_relative_to(_follow_links(folder)) for folder in folders)


def _follow_links(path: Path) -> Path:
    """Return where a path leads. Of links in a circle, it is one of them; `Path.resolve` raises an error there."""
    return type(path)(os.path.realpath(path))


def list_files(folder: Path, pattern: str) -> list[Path]:
    """List the files in a folder that is a trace, or part of one.

    Raises:
        TraceError: A file is a link that leads out of the folder: a trace from a stranger must not name other files. Or
            a file is a pipe or a folder. Opening a pipe waits for somebody who writes to it.
    """
    files = sorted(folder.glob(pattern))
    for file in files:
        if not is_within(file, folder):
            raise TraceError(
                f"{file} leads out of the folder: it is a link to {_follow_links(file)}",
                f"copy the files into one folder: cp -rL {quote(str(folder))} COPY",
            )
        if not file.is_file():
            raise TraceError(f"{file} is not a regular file", f"remove it: rm -r {quote(str(file))}")
    return files


def list_parquet_files(folder: Path) -> list[Path]:
    """List the Parquet files of a folder. ``convert`` and ``fleet`` put the raw tables into a subfolder.

    Raises:
        TraceError: A file is a link that leads out of the folder.
    """
    folder = folder.absolute()
    return list_files(folder, "raw/*.parquet" if (folder / "raw").is_dir() else "*.parquet")


def find_neighbor(trace: Path, name: str) -> Path | None:
    """Return the file of this name next to a trace; None if it does not exist, or is a link out of the folder."""
    path = trace.parent / name
    return path if path.is_file() and is_within(path, trace.parent, trace.resolve().parent) else None


def list_exports(files: Sequence[File]) -> list[Path]:
    """List the SQLite exports among files, which can have a DuckDB copy."""
    return [file.path for file in files if file.kind is Kind.SQLITE]


def make_labels(paths: Sequence[Path]) -> list[str]:
    """Name traces by their files without the suffix, preceded by as many folders as needed to make the names unique."""
    for depth in range(1, max((len(path.parts) for path in paths), default=0) + 1):
        labels = ["/".join([*path.parts[-depth:-1], path.stem]) for path in paths]
        if len(set(labels)) == len(labels):
            return labels
    return [f"{path.stem}#{number}" for number, path in enumerate(paths)]


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


def _read_statuses(path: Path) -> list[_Status | None]:
    return [_read_status(file) for file in (list_parquet_files(path) if path.is_dir() else [path])] or [None]


def _read_status(path: Path) -> _Status | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
