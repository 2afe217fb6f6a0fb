"""The command ``convert``: a trace for notebooks and other engines, or for the timeline of ui.perfetto.dev."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.cli import terminal
from nsys_insight.cli.flags import Flags, flag, with_flags
from nsys_insight.cli.run import open_traces
from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TEXT = """Convert a trace: -o trace.duckdb (a DuckDB file with the views in it), -o FOLDER (each view a Parquet
file), or -o trace.pftrace (a timeline that ui.perfetto.dev and trace_processor open; a scope makes it smaller).

The first two are traces like any other: nsys-insight top trace.duckdb."""


def convert_command() -> Callable[..., None]:
    """Make the command ``convert``."""

    def run(trace: Path | None, flags: Flags, *, kind: str | None, force: bool) -> None:
        from nsys_insight.convert.convert import convert, output_kind

        output = flags.output
        if output is None:
            raise UsageError("convert needs a file to write to", "nsys-insight convert trace.nsys-rep -o trace.duckdb")
        made = output_kind(output, kind)
        with open_traces([trace] if trace else [], flags) as opened:
            convert(opened, output, made, force=force)
        terminal.note(f"{output} written")

    return with_flags(
        run,
        _TEXT,
        flag("kind", str | None, "--as", help="duckdb, parquet or perfetto; by default as -o is named."),
        flag("force", bool, "--force", help="Overwrite existing files."),
        without=("csv_safe",),
    )
