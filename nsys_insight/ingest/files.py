"""The files of a session, and their labels where there are several."""

from __future__ import annotations

import os
from enum import StrEnum
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


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
