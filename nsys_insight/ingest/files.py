"""The files of a session, and their labels where there are several."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

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
