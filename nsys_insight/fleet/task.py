"""The task of a worker: write the raw tables and facts of one trace as Parquet files into a folder."""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_insight.errors import InsightError
from nsys_insight.facts.file import definitions
from nsys_insight.ingest import cache_folder, facts_folder, nsys
from nsys_insight.ingest.contract import contract
from nsys_insight.ingest.facts_folder import About
from nsys_insight.model.producers import tables_of_run, tables_of_trace
from nsys_insight.paths import query
from nsys_insight.session.handed_over import rows_handed_over
from nsys_insight.session.session import Session
from nsys_insight.sql.statements import Statement
from nsys_insight.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

# A folder is a trace if it has this table, with rows or without.
_ALWAYS = "StringIds"
_LAUNCHER = "META_DATA_CAPTURE"
WORK = ".work"


@dataclass(frozen=True)
class Task:
    """One worker's job.

    Attributes:
        file: The trace.
        folder: The folder to write.
        identity: Identity of the file, to see later whether it has changed.
        definitions: Digest of the definitions of facts, which must be the worker's as well.
        memory: Memory limit of queries, as DuckDB reads it; None is DuckDB's default for the machine.
        threads: How many threads a query may use.
    """

    file: Path
    folder: Path
    identity: str
    definitions: str
    memory: str | None = None
    threads: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a file: `state` is written, kept (it was there already), or failed, and `why`."""

    state: str
    size_bytes: int | None = None
    time_ns: int | None = None
    why: str | None = None


def run_task(task: Task) -> Outcome:
    """Write the folder of a trace, whole or not at all, and replace the one that was there.

    An error is part of the outcome, so that the other tasks go on; the old folder is removed then, because it answers
    for the file before it changed.
    """
    began = time.perf_counter_ns()
    try:
        _check_version(task)
        with cache_folder.working(_temporary(task.folder)) as made, cache_folder.tidied():
            made.mkdir()
            _write(task, made)
            size = facts_folder.size(made)
            _move_away(task.folder, made.with_name("before"))
            made.rename(task.folder)
    except nsys.MissingError:
        why = f"nsys, which exports it, is not installed on {platform.node() or 'the worker'}"
    except InsightError as error:
        why = error.message
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this file's
        why = f"{type(error).__name__}: {error}".partition("\n")[0]
    else:
        return Outcome("written", size, time.perf_counter_ns() - began)
    remove_facts(task.folder)
    return Outcome("failed", None, time.perf_counter_ns() - began, why)


def write_run_facts(output: Path, task: Task) -> None:
    """Write the cross-rank facts of all traces in a folder, unless they are there.

    They are optional: if they are missing, they are computed when a query reads them.
    """
    folders = sorted(output.glob(f"*{facts_folder.SUFFIX}"))
    stored = facts_folder.stored_of_run(folders)
    if len(folders) < 2 or (stored and stored.definitions == task.definitions):
        return
    target = output / facts_folder.RUN
    with suppress(InsightError, OSError), cache_folder.working(_temporary(target)) as made, cache_folder.tidied():
        _move_away(target, made.with_name("before"))
        made.mkdir()
        with Session(folders, memory=task.memory, threads=task.threads, use_cache=False) as traces:
            for table in sorted(tables_of_run()):
                _write_table(traces, f"FROM facts.{table}", made / f"{table}.parquet")
        facts_folder.write_about_run(made, folders, task.definitions)
        made.rename(target)


def remove_facts(folder: Path) -> None:
    """Remove the folder of an earlier run."""
    with suppress(OSError), cache_folder.working(_temporary(folder)) as path:
        _move_away(folder, path)


def _temporary(folder: Path) -> Path:
    """Where a folder is written before it is moved: not among the finished ones, which are listed."""
    place = folder.parent / WORK
    place.mkdir(exist_ok=True)
    return place / folder.name


def _move_away(folder: Path, where: Path) -> None:
    if os.path.lexists(folder):
        folder.rename(where)


def _check_version(task: Task) -> None:
    if definitions() != task.definitions:
        raise InsightError(f"the worker runs another version of nsys-insight ({__version__})")


def _write(task: Task, folder: Path) -> None:
    for name in ("raw", "facts"):
        (folder / name).mkdir()
    with Session(task.file, memory=task.memory, threads=task.threads, use_cache=False) as trace:
        # Facts first: they find invalid rows, which are then left out of the tables as well.
        for table in sorted(tables_of_trace()):
            _write_table(trace, f"FROM facts.{table}", folder / "facts" / f"{table}.parquet")
        columns = {}
        for table, kinds in contract().items():
            file = folder / "raw" / f"{table}.parquet"
            if _write_table(trace, _rows(table), file, always=table == _ALWAYS):
                columns[table] = list(kinds)
        about = About(
            task.file.name, task.identity, task.definitions, __version__, columns, trace.about().get("left_out", "")
        )
    about.write(folder)


def _rows(table: str) -> str:
    """SQL for the rows of a raw table; of the environment, which is private, only what names the rank."""
    rows = rows_handed_over(table)
    return f"{rows} UNION ALL {query('internal/fleet/launcher')}" if table == _LAUNCHER else rows


def _write_table(trace: Session, sql: str, file: Path, *, always: bool = False) -> bool:
    """Write the rows of a query to a file, if there are any; tell whether there is one."""
    answer = trace.stream(Statement(sql))
    answer.write_parquet(file, to_keep=True)
    if not answer.row_count and not always:
        file.unlink()
    return file.is_file()
