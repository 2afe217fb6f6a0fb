"""Answers written out: for people as a table or Markdown, for machines as CSV, JSON, JSON lines or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from nsys_insight.answer import Answer

HUMAN_FORMATS = ("table", "markdown")
FORMATS = (*HUMAN_FORMATS, "csv", "json", "jsonl", "parquet")

_BY_SUFFIX = {
    ".txt": "table",
    ".md": "markdown",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}


def format_for(path: Path) -> str:
    """Return the format that a file's suffix stands for.

    Raises:
        UsageError: if it stands for none.
    """
    try:
        return _BY_SUFFIX[path.suffix.lower()]
    except KeyError:
        raise UsageError(
            f"the suffix of '{path}' is not that of a format",
            f"end the file's name in one of {' '.join(_BY_SUFFIX)}, or add --format {'|'.join(FORMATS)}",
        ) from None


def write(
    answer: Answer,
    to: TextIO | Path,
    fmt: str,
    *,
    limit: int | None = None,
    width: int | None = None,
    color: bool = False,
    full_names: bool = False,
) -> None:
    """Write an answer to a file or a stream.

    Args:
        answer: What to write.
        to: A path, or a text stream. Parquet goes to the stream's binary buffer.
        fmt: One of `FORMATS`.
        limit: Write no more than these first rows. The footer of a table says so; machine formats do not.
        width: Cells in a line of a table; None means as many as it takes, and then nothing is shortened.
        color: Whether a table may contain ANSI escapes.
        full_names: Show kernel names in a table or Markdown exactly as the trace has them, however long.

    Raises:
        UsageError: if the file cannot be written, or Parquet would go to a terminal.
    """
    if fmt == "parquet":
        from nsys_insight.render.parquet import write_parquet

        _to_file(to, lambda: write_parquet(answer, to, limit))
        return
    if isinstance(to, Path):
        _to_file(to, lambda: _write_file(answer, to, fmt, limit=limit, width=width, color=color, full_names=full_names))
        return
    _write_text(answer, to, fmt, limit=limit, width=width, color=color, full_names=full_names)
