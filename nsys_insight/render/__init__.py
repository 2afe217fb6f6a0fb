"""Answers written out: for people as a table or Markdown, for machines as CSV, JSON, JSON lines or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from nsys_insight import outputs
from nsys_insight.errors import UsageError, cannot_write

if TYPE_CHECKING:
    from nsys_insight.session.answer import Answer

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


def write(  # noqa: PLR0913 - the one entry to all formats; what follows the star is named by the caller
    answer: Answer,
    to: TextIO | Path,
    fmt: str,
    *,
    limit: int | None = None,
    width: int | None = None,
    color: bool = False,
    full_names: bool = False,
    wide: bool = False,
    csv_safe: bool = False,
) -> None:
    """Write an answer to a text stream or a file.

    Args:
        answer: What to write.
        to: Where to; Parquet goes to the binary buffer below a stream.
        fmt: One of `FORMATS`.
        limit: Write only the first rows; the footer of a table or Markdown says how many there are.
        width: Cells in a line of a table; None means as many as it takes, and then nothing is shortened.
        color: Whether a table may contain ANSI escapes.
        full_names: Show names in a table or Markdown exactly as the trace has them, however long.
        wide: Hide no column of a table; a row that does not fit takes several lines.
        csv_safe: Put an apostrophe before what a spreadsheet would take for a formula in CSV.

    Raises:
        UsageError: if the file cannot be written, or Parquet would go to a terminal.
    """
    try:
        if isinstance(to, Path):
            with outputs.whole(to) as made:
                if fmt == "parquet":
                    answer.write_parquet(made, limit)
                    return
                # Line ends are the formats' own affair, not the platform's.
                with made.open("w", encoding="utf-8", newline="") as stream:
                    write(
                        answer, stream, fmt,
                        limit=limit, width=width, color=color, full_names=full_names, wide=wide, csv_safe=csv_safe,
                    )  # fmt: skip
        elif fmt == "parquet":
            _write_parquet(answer, to, limit)
        elif fmt == "table":
            from nsys_insight.render import table

            table.write(table.lines(answer, limit, width, full_names=full_names, wide=wide), to, color=color)
        elif fmt == "markdown":
            from nsys_insight.render import markdown

            markdown.write(answer, to, limit, full_names=full_names)
        elif fmt == "csv":
            from nsys_insight.render import csv_

            csv_.write(answer, to, limit, safe=csv_safe)
        else:
            from nsys_insight.render import json_

            {"json": json_.write, "jsonl": json_.write_lines}[fmt](answer, to, limit)
    except OSError as error:
        if not isinstance(to, Path):
            raise
        raise cannot_write(to, error) from None


def _write_parquet(answer: Answer, to: TextIO, limit: int | None) -> None:
    """Write the bytes of a Parquet file, which DuckDB makes in constant memory, to a stream that is no terminal.

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
