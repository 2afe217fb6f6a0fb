"""The command ``fleet``: compute the facts of hundreds of traces once, with many workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.cli.flags import Flags, FormatOption, check_format
from nsys_insight.cli.run import show
from nsys_insight.errors import UsageError
from nsys_insight.extras import write_install_command
from nsys_insight.text.units import parse_bytes

# Maximum memory of a worker in bytes: no report needs more (docs/evidence/performance.md). On a small machine, all
# workers together share nine tenths of the memory.
_MAX_WORKER_BYTES, _MEMORY_SHARE = 4 * 10**9, 0.9
_MIN_WORKER_BYTES = 500 * 10**6


def fleet(  # noqa: PLR0913 - flags
    traces: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER|TRACE...", help="A folder with traces, or traces, or a pattern: 'run/*/rank*.nsys-rep'."
        ),
    ],
    *,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The folder to write the facts to.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            help="Processes on this machine; by default one per core. 1 does not need Dask.",
            min=1,
            max=1024,
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            help=(
                "Use the workers of this Dask scheduler instead: tcp://HOST:8786. They must see the same "
                "folders as this machine, and have the same nsys-insight."
            ),
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            help=(
                "Memory of a worker in total, such as 2GB: queries spill beyond half of it. By default "
                "4GB, or what the machine has for each."
            ),
        ),
    ] = None,
    fmt: FormatOption = "table",
) -> None:
    """Compute the facts of many traces once, where the files are: fleet run/ -o facts/.

    Then query facts/ like the traces: ranks facts/, collectives facts/, diagnose facts/, top facts/,
    sql facts/ "...", report facts/rank3.facts. The answers are the same.

    Each trace gets a folder of Parquet files: the tables that reports read, without environment, host and user, and
    the facts found in them. The traces themselves are no longer needed.

    Workers are processes of this machine, or those of a Dask cluster (--scheduler). A worker that dies is replaced,
    and its file is started again; a file that cannot be read is listed, and the others are used. Started again, the
    command continues with what is not finished: a folder is written completely or not at all, and reused while neither
    the file nor nsys-insight changes.
    """
    from nsys_insight.cli.trace_argument import resolve_trace_paths
    from nsys_insight.fleet import pool
    from nsys_insight.fleet.fleet import Workers, build_fleet

    check_format(fmt)
    if output is None:
        raise UsageError("fleet needs a folder to write to", "nsys-insight fleet run/ -o facts/")
    if scheduler and workers:
        raise UsageError("--scheduler has its own workers", "leave out --workers")
    paths = resolve_trace_paths(traces, is_name_enough=True)
    if workers is None and not scheduler:
        workers = min(os.cpu_count() or 1, len(paths))
        if workers > 1 and not pool.has_dask():
            workers = 1
            terminal.note(f"one trace after another: several workers need Dask: {write_install_command('fleet')}")
    answer = build_fleet(
        paths,
        output,
        Workers(workers or 1, scheduler, _choose_worker_memory(memory, workers, scheduler)),
        terminal.note,
    )
    show(answer, fmt, Flags())


def _choose_worker_memory(text: str | None, workers: int | None, scheduler: str | None) -> int | None:
    """Choose the memory of a worker in bytes. None means no limit here: a scheduler's workers, or a single process."""
    from nsys_insight.ingest.limits import read_total_memory

    if text is not None:
        size = parse_bytes(text, flag="--memory")
        if size < _MIN_WORKER_BYTES:
            raise UsageError(f"--memory {text} is too little for a worker", "give it 500MB or more")
        return size
    return (
        min(_MAX_WORKER_BYTES, int(_MEMORY_SHARE * read_total_memory() / workers))
        if workers and workers > 1 and not scheduler
        else None
    )


FLEET = Command(
    "fleet",
    lambda: fleet,
    group="ranks",
    place=220,
    help="Preprocess many traces in parallel",
    examples=("fleet traces/ -o facts/", "fleet 'run/*/rank*.nsys-rep' -o facts/ --workers 4"),
)
