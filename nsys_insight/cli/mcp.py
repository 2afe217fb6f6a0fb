"""The command ``mcp``: a server of the Model Context Protocol on stdin and stdout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nsys_insight.errors import UsageError
from nsys_insight.extras import install
from nsys_insight.text.units import parse_duration

TRACES = "Traces that may be queried, and folders: all traces below them."


def mcp(
    traces: Annotated[list[Path] | None, typer.Argument(metavar="TRACE|FOLDER...", help=TRACES)] = None,
    timeout: Annotated[str, typer.Option("--timeout", help="Stop a query that takes longer.")] = "60s",
) -> None:
    """Answer a coding agent over the Model Context Protocol, on stdin and stdout, until stdin ends.

    Four tools: diagnose, report, sql and diff. They answer with the same JSON as --format json, read only the traces
    named here or below the folders named here, and write no files. Needs the extra: pip install 'nsys-insight[mcp]'.
    """
    if not traces:
        raise UsageError("name a trace or a folder that may be queried", "nsys-insight mcp FOLDER")
    timeout_s = parse_duration(f"{timeout}s" if timeout.isdecimal() else timeout, flag="--timeout") / 1e9
    try:
        from nsys_insight.cli.mcp_server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "pydantic"):
            raise
        raise UsageError("the Model Context Protocol needs the package mcp", install("mcp")) from None
    serve(traces, timeout_s)
