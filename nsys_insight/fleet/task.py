"""The task of a worker: write the raw tables and facts of one trace as Parquet files into a folder."""

from __future__ import annotations

import platform
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_insight import cache_folder, own_files
from nsys_insight.errors import InsightError
from nsys_insight.facts.store import digest_definitions
from nsys_insight.ingest import facts_folder, nsys
from nsys_insight.ingest.expected_schema import read_expected_schema
from nsys_insight.ingest.facts_folder import Manifest
from nsys_insight.ingest.private import select_exported_rows
from nsys_insight.model.producers import fact_tables
from nsys_insight.paths import read_query
from nsys_insight.session.session import Session
from nsys_insight.sql.statements import Statement
from nsys_insight.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

# A folder is a trace only if it has this table, so it is written even without rows.
_REQUIRED_TABLE = "StringIds"
_LAUNCHER_TABLE = "META_DATA_CAPTURE"


@dataclass(frozen=True)
class Task:
    """One worker's job.

    Attributes:
        file: The trace.
        folder: The folder to write.
        identity: Identity of the file, to see later whether it has changed.
        definitions: Digest of the definitions of facts. The worker's must be the same.
        memory: Memory limit of queries, as DuckDB reads it. None means DuckDB's default for the machine.
        threads: Maximum number of threads of a query.
    """

    file: Path
    folder: Path
    identity: str
    definitions: str
    memory: str | None = None
    threads: int | None = None


@dataclass(frozen=True)
class Outcome:
    """The result of a task. `state` is the column of the answer. `reason` says why a task failed."""

    state: str
    size_bytes: int | None = None
    time_ns: int | None = None
    reason: str | None = None


def run_task(task: Task) -> Outcome:
    """Write the folder of a trace, and replace the old one.

    An error becomes part of the outcome, so that the other tasks continue. The old folder is then removed: it describes
    an earlier version of the file. A folder that holds files of others stays, and is an error.
    """
    start_ns = time.perf_counter_ns()
    try:
        _check_version(task)
        with cache_folder.make_work_path(task.folder) as new_folder, cache_folder.remove_leftovers():
            own_files.make_subfolder(new_folder)
            _write_folder(task, new_folder)
            size = facts_folder.total_bytes(new_folder)
            own_files.replace_folder(new_folder, task.folder)
    except nsys.MissingError:
        reason = f"nsys, which exports it, is not installed on {platform.node() or 'the worker'}"
    except InsightError as error:
        reason = error.message
    except Exception as error:  # noqa: BLE001 - any error is about this file only
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
    else:
        return Outcome("written", size, time.perf_counter_ns() - start_ns)
    remove_facts(task.folder)
    return Outcome("failed", None, time.perf_counter_ns() - start_ns, reason)


def write_run_facts(output: Path, task: Task) -> None:
    """Write the cross-rank facts of all traces in a folder, unless they are there.

    They are optional: if they are missing, they are computed when a query reads them.
    """
    folders = sorted(output.glob(f"*{facts_folder.SUFFIX}"))
    existing_facts = facts_folder.locate_run_facts(folders)
    if len(folders) < 2 or (existing_facts and existing_facts.definitions == task.definitions):
        return
    target = output / facts_folder.RUN_FOLDER
    with (
        suppress(InsightError, OSError),
        cache_folder.make_work_path(target) as new_folder,
        cache_folder.remove_leftovers(),
    ):
        own_files.remove(target)
        own_files.make_subfolder(new_folder)
        with Session(folders, memory=task.memory, threads=task.threads, use_cache=False) as traces:
            for table in sorted(name for name, producer in fact_tables().items() if producer.is_cross_rank):
                _write_table(traces, f"FROM facts.{table}", new_folder / f"{table}.parquet")
        own_files.claim(new_folder / facts_folder.MANIFEST)
        facts_folder.write_run_manifest(new_folder, folders, task.definitions)
        own_files.replace_folder(new_folder, target)


def remove_facts(folder: Path) -> None:
    """Remove the folder of an earlier run, unless it holds files of others."""
    with suppress(OSError):
        own_files.remove(folder)


def _check_version(task: Task) -> None:
    if digest_definitions() != task.definitions:
        raise InsightError(f"the worker runs another version of nsys-insight ({__version__})")


def _write_folder(task: Task, folder: Path) -> None:
    for name in ("raw", "facts"):
        own_files.make_subfolder(folder / name)
    with Session(task.file, memory=task.memory, threads=task.threads, use_cache=False) as trace:
        # Facts first: they detect invalid rows, which are then left out of the raw tables too.
        for table in sorted(name for name, producer in fact_tables().items() if not producer.is_cross_rank):
            _write_table(trace, f"FROM facts.{table}", folder / "facts" / f"{table}.parquet")
        columns = {}
        for table, column_types in read_expected_schema().items():
            file = folder / "raw" / f"{table}.parquet"
            if _write_table(trace, _select_rows(table), file, is_required=table == _REQUIRED_TABLE):
                columns[table] = list(column_types)
        manifest = Manifest(
            task.file.name,
            task.identity,
            task.definitions,
            __version__,
            columns,
            trace.describe_trace().get("left_out", ""),
            facts_folder.hash_files(folder),
        )
    own_files.claim(folder / facts_folder.MANIFEST)
    manifest.write(folder)


def _select_rows(table: str) -> str:
    """Return the SQL for the rows of a raw table. The environment is private: only variables with the rank are read."""
    rows = select_exported_rows(table)
    return f"{rows} UNION ALL {read_query('internal/fleet/launcher')}" if table == _LAUNCHER_TABLE else rows


def _write_table(trace: Session, sql: str, file: Path, *, is_required: bool = False) -> bool:
    """Write the rows of a query to a file, if there are any. Return whether the file exists."""
    answer = trace.stream(Statement(sql))
    own_files.claim(file)
    answer.write_parquet(file, is_compact=True)
    if not answer.row_count and not is_required:
        own_files.remove(file)
    return file.is_file()
