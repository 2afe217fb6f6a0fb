"""A fleet: a folder of facts for each of many traces. Reports read these folders like traces."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight import cache_folder, outputs, own_files, progress
from nsys_insight.errors import TraceError, UsageError, cannot_write_error
from nsys_insight.facts.store import digest_definitions
from nsys_insight.fleet import pool
from nsys_insight.fleet.task import Outcome, Task, remove_facts, write_run_facts
from nsys_insight.ingest import facts_folder
from nsys_insight.ingest.files import make_labels
from nsys_insight.session.answer import Answer, build_answer, read_columns
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

COLUMNS = read_columns("fleet/traces")


@dataclass(frozen=True)
class Workers:
    """Processes of this machine, or the workers of a Dask scheduler at an address.

    `memory_bytes` is the memory limit of a worker.
    """

    count: int = 1
    scheduler: str | None = None
    memory_bytes: int | None = None

    @property
    def query_memory(self) -> str | None:
        """Return the memory limit of a query, as DuckDB reads it: half of the worker's. Python needs the rest."""
        return f"{self.memory_bytes // 2}B" if self.memory_bytes else None


def build_fleet(
    paths: Sequence[Path], output: Path, workers: Workers, note: Callable[[str], None] = lambda _: None
) -> Answer:
    """Write the facts of traces, each in a folder of its own below `output`. The answer has a row for each trace.

    An existing folder is reused if neither the file nor the definitions of facts have changed.

    Raises:
        UsageError: The folder cannot be written to, or contains the traces.
        TraceError: None of the traces can be read.
        ToolError: Dask is not installed, or does not answer.
    """
    tasks = _make_tasks(paths, output, workers)
    outcomes = {number: finished for number, task in enumerate(tasks) if (finished := _find_finished(task))}
    pending = [number for number in range(len(tasks)) if number not in outcomes]
    _refuse_foreign_files(output, [tasks[number].folder for number in pending])
    with progress.show_task(_describe_progress(len(outcomes), tasks, 0)) as task_line:
        for index, outcome in _run_tasks([tasks[number] for number in pending], workers, note):
            outcomes[pending[index]] = outcome
            failures = sum(outcome.state == "failed" for outcome in outcomes.values())
            task_line.text = _describe_progress(len(outcomes), tasks, failures)
            task_line.percent = 100 * len(outcomes) / len(tasks)
    reasons = {
        tasks[number].file.name: outcome.reason
        for number, outcome in sorted(outcomes.items())
        if outcome.state == "failed"
    }
    facts_folder.write_failures(output, reasons)
    write_run_facts(output, tasks[0])
    if len(reasons) == len(tasks):
        first_file, reason = next(iter(reasons.items()))
        prefix = f"none of {len(tasks):,} traces can be read; " if len(tasks) > 1 else ""
        raise TraceError(f"{prefix}{first_file} cannot be read: {reason}", "nsys-insight info FILE has the details")
    return _make_answer(tasks, outcomes, output)


def _make_tasks(paths: Sequence[Path], output: Path, workers: Workers) -> list[Task]:
    if any(path.resolve().parent == output.resolve() for path in paths):
        raise UsageError(f"the traces themselves are in {output}", "name another folder: -o facts")
    for path in paths:
        outputs.check_target(output, [path])
    try:
        output.mkdir(parents=True, exist_ok=True)
        own_files.adopt(output)
    except OSError as error:
        raise cannot_write_error(output, error) from None
    names = [label.replace("/", "-") for label in make_labels(paths)]
    name_counts = Counter(names)
    definitions, query_memory = digest_definitions(), workers.query_memory
    threads = max(1, (os.cpu_count() or 1) // workers.count) if not workers.scheduler else 1
    return [
        Task(
            path.absolute(),
            output.absolute() / f"{name if name_counts[name] == 1 else f'{name}#{number}'}{facts_folder.SUFFIX}",
            _read_identity(path), definitions, query_memory, threads,
        )
        for number, (path, name) in enumerate(zip(paths, names, strict=True))
    ]  # fmt: skip


def _refuse_foreign_files(output: Path, folders: Sequence[Path]) -> None:
    """Refuse to replace files that this program cannot prove to be its own, before anything is written."""
    if not folders:
        return
    for path in (*folders, output / facts_folder.RUN_FOLDER, output / facts_folder.FLEET):
        if unlisted := own_files.list_unlisted(path.absolute()):
            raise UsageError(
                f"{path} is not replaced: the list of nsys-insight's own files in {output} does not have "
                f"{unlisted[0].name}",
                "name another folder: -o facts",
            )


def _read_identity(path: Path) -> str:
    """Return the identity of a file. Empty if it cannot be read: its task reports the error."""
    with suppress(OSError):
        return cache_folder.key(path)
    return ""


def _find_finished(task: Task) -> Outcome | None:
    """Return the outcome of an earlier run, if neither the file nor the definitions of facts have changed."""
    manifest = facts_folder.read_manifest(task.folder)
    if (
        manifest is None
        or not task.identity
        or (manifest.identity, manifest.definitions) != (task.identity, task.definitions)
    ):
        return None
    return Outcome("kept", facts_folder.total_bytes(task.folder))


def _run_tasks(tasks: Sequence[Task], workers: Workers, note: Callable[[str], None]) -> Iterator[tuple[int, Outcome]]:
    if not tasks:
        return
    if workers.scheduler:
        with pool.connect_cluster(workers.scheduler, note) as client:
            yield from _remove_stale(pool.run_on_cluster(client, tasks), tasks)
    elif min(workers.count, len(tasks)) > 1:
        with pool.start_local_cluster(min(workers.count, len(tasks)), workers.memory_bytes or 0) as client:
            yield from _remove_stale(pool.run_on_cluster(client, tasks), tasks)
    else:
        yield from pool.run_in_process(tasks)


def _remove_stale(outcomes: Iterator[tuple[int, Outcome]], tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
    """Remove the old folder of each file whose task failed."""
    for number, outcome in outcomes:
        if outcome.state == "failed":
            remove_facts(tasks[number].folder)
        yield number, outcome


def _describe_progress(done_count: int, tasks: Sequence[Task], failed_count: int) -> str:
    return f"{done_count:,} of {len(tasks):,} traces done{f', {failed_count:,} failed' if failed_count else ''}"


def _make_answer(tasks: Sequence[Task], outcomes: dict[int, Outcome], output: Path) -> Answer:
    states = Counter(outcome.state for outcome in outcomes.values())
    size = sum(outcome.size_bytes or 0 for outcome in outcomes.values())
    counts = ", ".join(f"{states[state]:,} {state}" for state in ("written", "kept", "failed") if states[state])
    notes = [f"{counts}; {value('size_bytes', size)} in {output}: nsys-insight ranks {output}"]
    other_folders = {path.name for path in output.glob(f"*{facts_folder.SUFFIX}")} - {
        task.folder.name for task in tasks
    }
    if other_folders:
        names = ", ".join(sorted(other_folders)[:3]) + (" …" if len(other_folders) > 3 else "")
        notes.append(f"{output} has facts of {len(other_folders):,} other traces, which count as well: {names}")
    sorted_tasks = sorted(enumerate(tasks), key=lambda pair: (outcomes[pair[0]].state != "failed", pair[0]))
    rows: list[tuple[Any, ...]] = []
    for number, task in sorted_tasks:
        outcome = outcomes[number]
        rows.append((task.folder.stem, outcome.state, outcome.size_bytes, outcome.time_ns, outcome.reason))
    return build_answer(
        COLUMNS, rows, report="fleet", title="Facts of each trace", notes=tuple(notes), empty="No traces."
    )
