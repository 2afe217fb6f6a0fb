"""A fleet: a folder of facts for each of many traces, which reports read like the traces."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight import outputs, progress
from nsys_insight.errors import TraceError, UsageError, cannot_write
from nsys_insight.facts.file import definitions
from nsys_insight.fleet import pool
from nsys_insight.fleet.task import WORK, Outcome, Task, remove_facts, write_run_facts
from nsys_insight.ingest import cache_folder, facts_folder
from nsys_insight.ingest.files import labels_of
from nsys_insight.session.answer import Answer, Column, of_rows
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_COLUMNS = (
    Column("file", "VARCHAR", "The trace"),
    Column(
        "state", "VARCHAR", "written; kept: its facts were there, and neither it nor nsys-insight has changed; failed"
    ),
    Column("size_bytes", "BIGINT", "Size of its facts"),
    Column("time_ns", "BIGINT", "Time that it took to compute them"),
    Column("why", "VARCHAR", "Why it failed"),
)


@dataclass(frozen=True)
class Workers:
    """Processes of this machine, or the workers of a Dask scheduler at an address.

    `memory_bytes` is the most memory of a worker.
    """

    count: int = 1
    scheduler: str | None = None
    memory_bytes: int | None = None

    @property
    def for_queries(self) -> str | None:
        """Memory limit of a query, as DuckDB reads it: half of the worker's, which Python and buffers need as well."""
        return f"{self.memory_bytes // 2}B" if self.memory_bytes else None


def fleet(
    paths: Sequence[Path], output: Path, workers: Workers, note: Callable[[str], None] = lambda _: None
) -> Answer:
    """Write the facts of traces, each in a folder of its own below `output`; the answer has a row for each.

    A folder is kept if neither the file nor the definitions of facts have changed.

    Raises:
        UsageError: The folder cannot be written to, or the traces are in it.
        TraceError: None of the traces can be read.
        ToolError: Dask is not installed, or does not answer.
    """
    tasks = _tasks(paths, output, workers)
    outcomes = {number: found for number, task in enumerate(tasks) if (found := _finished(task))}
    left = [number for number in range(len(tasks)) if number not in outcomes]
    with progress.at(_how_far(len(outcomes), tasks, 0)) as at:
        for place, outcome in _run([tasks[number] for number in left], workers, note):
            outcomes[left[place]] = outcome
            at.text = _how_far(len(outcomes), tasks, _failures(outcomes))
            at.percent = 100 * len(outcomes) / len(tasks)
    failed = {
        tasks[number].file.name: found.why for number, found in sorted(outcomes.items()) if found.state == "failed"
    }
    facts_folder.remember_failed(output, failed)
    write_run_facts(output, tasks[0])
    shutil.rmtree(output / WORK, ignore_errors=True)
    if len(failed) == len(tasks):
        first, why = next(iter(failed.items()))
        every = f"none of {len(tasks):,} traces can be read; " if len(tasks) > 1 else ""
        raise TraceError(f"{every}{first} cannot be read: {why}", "nsys-insight info FILE has the details")
    return _answer(tasks, outcomes, output)


def _tasks(paths: Sequence[Path], output: Path, workers: Workers) -> list[Task]:
    if any(path.resolve().parent == output.resolve() for path in paths):
        raise UsageError(f"the traces themselves are in {output}", "name another folder: -o facts")
    for path in paths:
        outputs.check(output, [path])
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(output, error) from None
    names = [label.replace("/", "-") for label in labels_of(paths)]
    again = Counter(names)
    said, queries = definitions(), workers.for_queries
    threads = max(1, (os.cpu_count() or 1) // workers.count) if not workers.scheduler else 1
    return [
        Task(
            path.absolute(),
            output.absolute() / f"{name if again[name] == 1 else f'{name}#{number}'}{facts_folder.SUFFIX}",
            _identity(path), said, queries, threads,
        )
        for number, (path, name) in enumerate(zip(paths, names, strict=True))
    ]  # fmt: skip


def _identity(path: Path) -> str:
    """Identity of a file; empty if it cannot be read, which its task reports."""
    with suppress(OSError):
        return cache_folder.key(path)
    return ""


def _finished(task: Task) -> Outcome | None:
    """The outcome of an earlier run, if neither the file nor the definitions of facts have changed."""
    about = facts_folder.about(task.folder)
    if about is None or not task.identity or (about.identity, about.definitions) != (task.identity, task.definitions):
        return None
    return Outcome("kept", facts_folder.size(task.folder))


def _run(tasks: Sequence[Task], workers: Workers, note: Callable[[str], None]) -> Iterator[tuple[int, Outcome]]:
    if not tasks:
        return
    if workers.scheduler:
        with pool.connected(workers.scheduler, note) as client:
            yield from _remove_stale(pool.on_cluster(client, tasks), tasks)
    elif min(workers.count, len(tasks)) > 1:
        with pool.local(min(workers.count, len(tasks)), workers.memory_bytes or 0) as client:
            yield from _remove_stale(pool.on_cluster(client, tasks), tasks)
    else:
        yield from pool.in_process(tasks)


def _remove_stale(outcomes: Iterator[tuple[int, Outcome]], tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
    """Remove the old folder of a file that no worker finished."""
    for number, outcome in outcomes:
        if outcome.state == "failed":
            remove_facts(tasks[number].folder)
        yield number, outcome


def _failures(outcomes: dict[int, Outcome]) -> int:
    return sum(outcome.state == "failed" for outcome in outcomes.values())


def _how_far(done: int, tasks: Sequence[Task], failed: int) -> str:
    return f"{done:,} of {len(tasks):,} traces done{f', {failed:,} failed' if failed else ''}"


def _answer(tasks: Sequence[Task], outcomes: dict[int, Outcome], output: Path) -> Answer:
    states = Counter(outcome.state for outcome in outcomes.values())
    size = sum(outcome.size_bytes or 0 for outcome in outcomes.values())
    counts = ", ".join(f"{states[state]:,} {state}" for state in ("written", "kept", "failed") if states[state])
    notes = [f"{counts}; {value('size_bytes', size)} in {output}: nsys-insight ranks {output}"]
    others = {path.name for path in output.glob(f"*{facts_folder.SUFFIX}")} - {task.folder.name for task in tasks}
    if others:
        notes.append(
            f"{output} has facts of {len(others):,} other traces, which count as well: {_some(sorted(others))}"
        )
    found = sorted(enumerate(tasks), key=lambda pair: (outcomes[pair[0]].state != "failed", pair[0]))
    rows: list[tuple[Any, ...]] = []
    for number, task in found:
        outcome = outcomes[number]
        rows.append((task.folder.stem, outcome.state, outcome.size_bytes, outcome.time_ns, outcome.why))
    return of_rows(_COLUMNS, rows, report="fleet", title="Facts of each trace", notes=tuple(notes), empty="No traces.")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
