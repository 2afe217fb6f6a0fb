"""A fleet: a folder of facts for each trace of many, which reports take as they take the traces."""

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
from nsys_insight.fleet.work import WORK, Outcome, Task, forget, work_out_run
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
class Means:
    """Who works: so many processes of this machine, or the workers of a Dask scheduler at an address.

    `memory_bytes` is what a worker may take in all.
    """

    workers: int = 1
    scheduler: str | None = None
    memory_bytes: int | None = None

    @property
    def for_queries(self) -> str | None:
        """What a query may hold of a worker's memory, as DuckDB reads it; the rest is of Python and what it reads."""
        return f"{self.memory_bytes // 2}B" if self.memory_bytes else None


def fleet(paths: Sequence[Path], output: Path, means: Means, note: Callable[[str], None] = lambda _: None) -> Answer:
    """Work out the facts of traces, each in a folder of its own below `output`; say what became of each.

    What was finished before is kept, where neither the file nor what says what facts are has changed.

    Raises:
        UsageError: The folder cannot be written to, or the traces are in it.
        TraceError: None of the traces can be read.
        ToolError: Dask is not installed, or does not answer.
    """
    tasks = _tasks(paths, output, means)
    outcomes = {number: found for number, task in enumerate(tasks) if (found := _finished(task))}
    left = [number for number in range(len(tasks)) if number not in outcomes]
    with progress.at(_how_far(len(outcomes), tasks, 0)) as at:
        for place, outcome in _worked_out([tasks[number] for number in left], means, note):
            outcomes[left[place]] = outcome
            at.text = _how_far(len(outcomes), tasks, _failures(outcomes))
            at.percent = 100 * len(outcomes) / len(tasks)
    failed = {
        tasks[number].file.name: found.why for number, found in sorted(outcomes.items()) if found.state == "failed"
    }
    facts_folder.remember_failed(output, failed)
    work_out_run(output, tasks[0])
    shutil.rmtree(output / WORK, ignore_errors=True)
    if len(failed) == len(tasks):
        first, why = next(iter(failed.items()))
        every = f"none of {len(tasks):,} traces can be read; " if len(tasks) > 1 else ""
        raise TraceError(f"{every}{first} cannot be read: {why}", "nsys-insight info FILE has the details")
    return _answer(tasks, outcomes, output)


def _tasks(paths: Sequence[Path], output: Path, means: Means) -> list[Task]:
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
    said, queries = definitions(), means.for_queries
    threads = max(1, (os.cpu_count() or 1) // means.workers) if not means.scheduler else 1
    return [
        Task(
            path.absolute(),
            output.absolute() / f"{name if again[name] == 1 else f'{name}#{number}'}{facts_folder.SUFFIX}",
            _identity(path), said, queries, threads,
        )
        for number, (path, name) in enumerate(zip(paths, names, strict=True))
    ]  # fmt: skip


def _identity(path: Path) -> str:
    """What a file is known by; empty if it cannot be read, as will be said when it is tried."""
    with suppress(OSError):
        return cache_folder.key(path)
    return ""


def _finished(task: Task) -> Outcome | None:
    """Tell whether a file was worked out before, and neither it nor what facts are has changed."""
    about = facts_folder.about(task.folder)
    if about is None or not task.identity or (about.identity, about.definitions) != (task.identity, task.definitions):
        return None
    return Outcome("kept", facts_folder.size(task.folder))


def _worked_out(tasks: Sequence[Task], means: Means, note: Callable[[str], None]) -> Iterator[tuple[int, Outcome]]:
    if not tasks:
        return
    if means.scheduler:
        with pool.connected(means.scheduler, note) as client:
            yield from _checked(pool.by_dask(client, tasks), tasks)
    elif min(means.workers, len(tasks)) > 1:
        with pool.local(min(means.workers, len(tasks)), means.memory_bytes or 0) as client:
            yield from _checked(pool.by_dask(client, tasks), tasks)
    else:
        yield from pool.here(tasks)


def _checked(outcomes: Iterator[tuple[int, Outcome]], tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
    """Of a file that no worker came to an end with, what was worked out before holds no more."""
    for number, outcome in outcomes:
        if outcome.state == "failed":
            forget(tasks[number].folder)
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
