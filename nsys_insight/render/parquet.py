"""Parquet: written by DuckDB itself, with its types, in constant memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from nsys_insight.session.answer import Answer


def write(answer: Answer, to: TextIO, limit: int | None) -> None:
    """Write the bytes of a Parquet file to a stream that is no terminal.

    Raises:
        UsageError: if the stream is a terminal.
    """
    if to.isatty():
        raise UsageError("Parquet is binary and cannot be shown in a terminal", "add -o answer.parquet")
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.parquet"
        answer.write_parquet(path, limit)
        with path.open("rb") as file:
            shutil.copyfileobj(file, to.buffer)
