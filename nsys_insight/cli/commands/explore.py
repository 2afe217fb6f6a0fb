"""The command ``explore``: open a trace's model in Harlequin, an SQL editor for the terminal, if it is installed."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from nsys_insight import cache_folder
from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import TraceArgument  # noqa: TC001 - Typer reads annotations at run time
from nsys_insight.cli.run import open_trace, resolve_trace
from nsys_insight.errors import ToolError, UsageError
from nsys_insight.extras import write_install_command
from nsys_insight.ingest import cache_entries

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_insight.trace import Trace


def explore(trace: TraceArgument = None) -> None:
    """Open the views in Harlequin, an SQL editor for the terminal: pip install '.[explore]' in the checkout.

    It reads a DuckDB file like that of convert, made once and stored in the cache.
    """
    from importlib.util import find_spec

    from nsys_insight.cli.trace_argument import remember_trace
    from nsys_insight.ingest.files import Kind
    from nsys_insight.ingest.identify import identify

    if find_spec("harlequin") is None:
        raise ToolError(
            "explore needs Harlequin, which is not installed",
            f"{write_install_command('explore')}; nsys-insight shell needs nothing more",
        )
    path = resolve_trace(trace)
    if identify(path) is Kind.DATABASE:
        raise typer.Exit(_run_harlequin(path))
    with open_trace(path) as opened_trace:
        database = _make_database(opened_trace)
    remember_trace(path)
    raise typer.Exit(_run_under_name(path.stem, database))


def _make_database(trace: Trace) -> Path:
    """Return the DuckDB file of a trace's model, with its ncu data. The file is made if it is not in the cache."""
    import duckdb

    from nsys_insight.convert.convert import write_database
    from nsys_insight.facts.definitions import digest_definitions

    try:
        key_parts = [digest_definitions(), duckdb.__version__, cache_folder.key(trace.ncu) if trace.ncu else ""]
        target = cache_folder.folder() / f"{cache_folder.key(trace.path, *key_parts)}-model.duckdb"
        if cache_entries.use(target):
            return target
        terminal.note("making a DuckDB file of the trace, once")
        with cache_entries.make_entry(target, "model for explore", *filter(None, (trace.path, trace.ncu))) as path:
            write_database(trace, path)
    except OSError as error:
        raise UsageError(
            f"explore has no folder for its DuckDB file: {error.strerror or error}",
            f"name one in ${cache_folder.FOLDER_VARIABLE}",
        ) from None
    return target


def _run_harlequin(database: Path) -> int:
    """Run Harlequin, and return its exit code."""
    import subprocess

    command = [sys.executable, "-m", "harlequin", "--read-only", str(database)]
    return subprocess.run(command, check=False).returncode  # noqa: S603 - our own Python


def _run_under_name(name: str, database: Path) -> int:
    """Run Harlequin on a cache file through a link with the trace's name: DuckDB names a database after its file."""
    with cache_folder.make_work_path(database.with_name(f"{name}.duckdb")) as link:
        with suppress(OSError):  # not every file system has links
            link.hardlink_to(database)
        return _run_harlequin(link if link.exists() else database)


EXPLORE = Command(
    "explore",
    lambda: explore,
    group="ask",
    place=120,
    help="Browse the trace in Harlequin",
    examples=("explore trace.nsys-rep", "explore run.sqlite"),
)
