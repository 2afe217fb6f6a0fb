"""The command ``convert``: a trace for notebooks and other engines, or for the timeline of ui.perfetto.dev."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight import terminal
from nsys_insight.command import open_traces
from nsys_insight.errors import UsageError
from nsys_insight.flags import with_flags

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TEXT = """Hand a trace over: -o trace.duckdb (a DuckDB file with the views in it), -o FOLDER (each view a Parquet
file), or -o trace.pftrace (a timeline that ui.perfetto.dev and trace_processor open; a scope makes it smaller).

The first two are traces like any other: nsys-insight top trace.duckdb."""


def convert_command() -> Callable[..., None]:
    """Make the command ``convert``."""

    def run(trace: Path | None, **given: Any) -> None:
        from nsys_insight.convert import convert, kind_of

        output = given["output"]
        if output is None:
            raise UsageError("convert needs a file to write to", "nsys-insight convert trace.nsys-rep -o trace.duckdb")
        kind = kind_of(output, given["to"])
        with open_traces([trace] if trace else [], given) as opened:
            convert(opened, output, kind, force=given["force"])
        terminal.note(f"{output} written")

    return with_flags(
        run,
        _TEXT,
        _option("to", str | None, default=None, text="duckdb, parquet or perfetto; by default as -o is named."),
        _option("force", bool, default=False, text="Overwrite what is there."),
    )


def _option(name: str, kind: Any, default: object, text: str) -> inspect.Parameter:
    option = typer.Option(f"--{name}", help=text, show_default=False)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
