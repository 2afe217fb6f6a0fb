"""The files of a session, and what they are called where there are several."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Kind(StrEnum):
    """What nsys wrote: its own report, or one of the exports that can be queried; or what ``convert`` made of one."""

    SQLITE = "sqlite"
    REPORT = "report"
    PARQUET = "parquet"
    DATABASE = "duckdb"


class File(NamedTuple):
    """A file to read; `label` is what the column `trace` says of its rows where there are several."""

    path: Path
    kind: Kind
    label: str = ""


def exports(files: Sequence[File]) -> list[Path]:
    """The SQLite exports among files: what a DuckDB copy may be built of."""
    return [file.path for file in files if file.kind is Kind.SQLITE]


def labels_of(paths: Sequence[Path]) -> list[str]:
    """Name traces by their files without the suffix, with as many folders before it as it takes to tell them apart."""
    for depth in range(1, max((len(path.parts) for path in paths), default=0) + 1):
        labels = ["/".join([*path.parts[-depth:-1], path.stem]) for path in paths]
        if len(set(labels)) == len(labels):
            return labels
    return [f"{path.stem}#{number}" for number, path in enumerate(paths)]
