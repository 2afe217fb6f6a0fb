"""The command ``explore``: a trace's model in Harlequin, an SQL editor for the terminal, where that is installed."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import TraceArgument  # noqa: TC001 - Typer reads annotations at run time
from nsys_insight.cli.run import meant_trace, open_trace
from nsys_insight.errors import ToolError, UsageError
from nsys_insight.extras import install
from nsys_insight.ingest import cache_entries, cache_folder

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_insight.trace import Trace


def explore(trace: TraceArgument = None) -> None:
    """Open the views in Harlequin, an SQL editor for the terminal: pip install 'nsys-insight[explore]'.

    It reads a DuckDB file as convert writes it, made once and kept in the cache.
    """
    from importlib.util import find_spec

    from nsys_insight.cli.trace_argument import remember
    from nsys_insight.ingest.files import Kind
    from nsys_insight.ingest.identify import identify

    if find_spec("harlequin") is None:
        raise ToolError(
            "explore needs Harlequin, which is not installed",
            f"{install('explore')}; nsys-insight shell needs nothing more",
        )
    path = meant_trace(trace)
    if identify(path) is Kind.DATABASE:
        raise typer.Exit(_harlequin(path))
    with open_trace(path) as opened:
        database = _database(opened)
    remember(path)
    raise typer.Exit(_under(path.stem, database))


def _database(trace: Trace) -> Path:
    """Return the DuckDB file of a trace's model, with what ncu measured; made if it is not in the cache."""
    import duckdb

    from nsys_insight.convert.convert import write_database
    from nsys_insight.ingest.contract import contract
    from nsys_insight.model import views

    made_of = [
        repr(contract()),
        *(view.create + view.comments for view in views.definitions().values()),
        *views.macro_statements(),
        duckdb.__version__,
    ]
    try:
        of_ncu = cache_folder.key(trace.ncu) if trace.ncu else ""
        target = cache_folder.folder() / f"{cache_folder.key(trace.path, *made_of, of_ncu)}-model.duckdb"
        if cache_entries.use(target):
            return target
        terminal.note("making a DuckDB file of the trace, once")
        with cache_entries.making(target, "model for explore", *filter(None, (trace.path, trace.ncu))) as path:
            write_database(trace, path)
    except OSError as error:
        raise UsageError(
            f"explore has no folder for its DuckDB file: {error.strerror or error}",
            f"name one in ${cache_folder.FOLDER_VARIABLE}",
        ) from None
    return target


def _harlequin(database: Path) -> int:
    """Run it, and return its exit code."""
    import subprocess

    command = [sys.executable, "-m", "harlequin", "--read-only", str(database)]
    return subprocess.run(command, check=False).returncode  # noqa: S603 - our own Python


def _under(name: str, database: Path) -> int:
    """Run it on a file of the cache under a better name: a database is called as its file is."""
    with cache_folder.working(database.with_name(f"{name}.duckdb")) as named:
        with suppress(OSError):  # not every file system has links
            named.hardlink_to(database)
        return _harlequin(named if named.exists() else database)


EXPLORE = Command(
    "explore",
    lambda: explore,
    group="ask",
    place=120,
    help="Open the model in Harlequin, if it is installed",
    examples=("explore trace.nsys-rep", "explore run.sqlite"),
)
