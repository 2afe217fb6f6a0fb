"""Answers written out: for people as a table or Markdown, for machines as CSV, JSON, JSON lines, Parquet or Arrow."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from nsys_insight import cache_folder, outputs
from nsys_insight.errors import UsageError, cannot_write_error

if TYPE_CHECKING:
    from nsys_insight.session.answer import Answer

HUMAN_FORMATS = ("table", "markdown")
BINARY_FORMATS = ("parquet", "arrow")
FORMATS = (*HUMAN_FORMATS, "csv", "json", "jsonl", *BINARY_FORMATS)

_FORMAT_OF_SUFFIX = {
    ".txt": "table",
    ".md": "markdown",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}


def choose_format(path: Path) -> str:
    """Return the format of a file's suffix.

    Raises:
        UsageError: No format has this suffix.
    """
    try:
        return _FORMAT_OF_SUFFIX[path.suffix.lower()]
    except KeyError:
        raise UsageError(
            f"the suffix of '{path}' is not that of a format",
            f"end the file's name in one of {' '.join(_FORMAT_OF_SUFFIX)}, or add --format {'|'.join(FORMATS)}",
        ) from None


def write(  # noqa: PLR0913 - the entry point of all formats, with keyword-only options
    answer: Answer,
    target: TextIO | Path,
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
        answer: The answer to write.
        target: The stream or file. Binary formats are written to the buffer of a stream.
        fmt: One of `FORMATS`.
        limit: Write only the first rows. The footer of a table or Markdown has the total.
        width: Cells in a line of a table. None means no limit, and then nothing is shortened.
        color: Whether a table may contain ANSI escapes.
        full_names: Show names in a table or Markdown exactly as the trace has them, at any length.
        wide: Hide no column of a table. A row that does not fit takes several lines.
        csv_safe: In CSV, put an apostrophe before texts that a spreadsheet would read as a formula.

    Raises:
        UsageError: The file cannot be written, or a binary format would go to a terminal.
    """
    try:
        if isinstance(target, Path):
            with outputs.open_output(target) as temporary_file:
                if fmt in BINARY_FORMATS:
                    _write_binary_file(answer, temporary_file, fmt, limit)
                    return
                # The formats write their own line ends, on every platform.
                with temporary_file.open("w", encoding="utf-8", newline="") as stream:
                    write(
                        answer, stream, fmt,
                        limit=limit, width=width, color=color, full_names=full_names, wide=wide, csv_safe=csv_safe,
                    )  # fmt: skip
        elif fmt in BINARY_FORMATS:
            _write_binary(answer, target, fmt, limit)
        elif fmt == "table":
            from nsys_insight.render import table

            table.write(table.build_lines(answer, limit, width, full_names=full_names, wide=wide), target, color=color)
        elif fmt == "markdown":
            from nsys_insight.render import markdown

            markdown.write(answer, target, limit, full_names=full_names)
        elif fmt == "csv":
            from nsys_insight.render import csv_

            csv_.write(answer, target, limit, is_safe=csv_safe)
        else:
            from nsys_insight.render import json_

            {"json": json_.write, "jsonl": json_.write_lines}[fmt](answer, target, limit)
    except OSError as error:
        if not isinstance(target, Path):
            raise
        raise cannot_write_error(target, error) from None


def _write_binary(answer: Answer, target: TextIO, fmt: str, limit: int | None) -> None:
    """Write a binary format to a stream, by way of a temporary file."""
    if target.isatty():
        raise UsageError(f"{fmt.capitalize()} is binary and cannot be shown in a terminal", f"add -o answer.{fmt}")
    with cache_folder.use_temporary_folder() as folder:
        path = folder.claim(f"answer.{fmt}")
        _write_binary_file(answer, path, fmt, limit)
        with path.open("rb") as file:
            shutil.copyfileobj(file, target.buffer)


def _write_binary_file(answer: Answer, path: Path, fmt: str, limit: int | None) -> None:
    """Write a Parquet file with DuckDB, or an Arrow IPC file (Feather version 2), which Polars makes of the former."""
    if fmt == "parquet":
        answer.write_parquet(path, limit)
        return
    import polars as pl

    from nsys_insight.session.answer import refuse_types

    refuse_types(answer.columns, "INTERVAL")
    with cache_folder.use_temporary_folder() as folder:
        parquet_file = folder.claim("answer.parquet")
        answer.write_parquet(parquet_file, limit)
        pl.scan_parquet(parquet_file, glob=False).sink_ipc(path)
