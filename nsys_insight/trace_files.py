"""The files of a session, and attaching them to its connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nsys_insight import load, raw
from nsys_insight.ncu.store import attach as attach_ncu
from nsys_insight.source import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import duckdb


class File(NamedTuple):
    """A file to read; `label` is what the column `trace` says of its rows where there are several."""

    path: Path
    kind: Kind
    label: str = ""


def exports(files: Sequence[File]) -> list[Path]:
    """The SQLite exports among files: what a DuckDB copy may be built of."""
    return [file.path for file in files if file.kind is Kind.SQLITE]


def attach(
    connection: duckdb.DuckDBPyConnection, files: Sequence[File], built: Mapping[Path, Path | None], ncu: Path | None
) -> list[raw.Source] | None:
    """Attach each file, or what was built of it; None where a file needs the extension and there is none.

    `ncu` is a file that `ncu import` wrote, to be read beside a single trace.
    """
    sources = []
    for number, file in enumerate(files):
        name = "trace" if len(files) == 1 else f"trace_{number}"
        database = built.get(file.path)
        if database:
            source: raw.Source | None = load.attach_database(connection, database, name)
        elif file.kind is Kind.PARQUET:
            source = load.attach_parquet(connection, file.path)
        elif file.kind is Kind.DATABASE:
            source = load.attach_database(connection, file.path, name, schema="raw")
        else:
            source = load.attach_sqlite(connection, file.path, name)
        if source is None:
            return None
        sources.append(attach_ncu(connection, ncu, source) if ncu else source)
    return sources


def is_unreadable_cell(error: Exception) -> bool:
    """Tell whether the extension met text that is not UTF-8, or a cell of another type than its column's."""
    text = str(error)
    return isinstance(error, UnicodeDecodeError) or "Mismatch Type Error" in text or "nvalid unicode" in text
