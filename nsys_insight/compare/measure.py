"""Measure the runs of a comparison: open traces, saved runs, and what benchmarks wrote."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeAlias

from nsys_insight.compare.benchmark_formats import make_run_from_json, read_run_from_text
from nsys_insight.compare.comparison import explain_different_work
from nsys_insight.compare.processes import are_ranks, find_process, list_members, measure_ranks, measure_run
from nsys_insight.compare.runs import Run, from_json, is_run, measure_full_scope
from nsys_insight.errors import UsageError, read_text
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.records import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nsys_insight.session.session import Session

    Source: TypeAlias = Run | Session

# Suffixes of files with the output of a benchmark.
_BENCHMARK_OUTPUT_SUFFIXES = {".txt", ".log", ".out", ".jsonl"}


def read_run(path: Path) -> Run | None:
    """Read a saved run, or what a benchmark wrote; return None if the file has another suffix, such as a trace.

    Raises:
        UsageError: The file cannot be read, or its contents are neither.
    """
    suffix = path.suffix.lower()
    if suffix in _BENCHMARK_OUTPUT_SUFFIXES:
        return read_run_from_text(path)
    if suffix != ".json":
        return None
    hint = "give a trace, or the JSON file of a benchmark"
    try:
        content = parse_json(read_text(path, hint))
    except ValueError as error:
        raise UsageError(f"{path} cannot be read: it is not JSON: {error}", hint) from None
    return from_json(content, path) if is_run(content) else make_run_from_json(content, path)


def measure_runs(
    sides: Sequence[Sequence[Source]],
    steps: StepOptions = AUTO,
    *,
    process: int | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> list[list[Run]]:
    """Measure all runs per step. If a run has no steps, or the steps do different work, measure each full scope.

    The traces of a side that are the ranks of one run are one run.

    Args:
        sides: The traces of each side, in the scope of the comparison, and runs that are measured already.
        steps: How to detect steps.
        process: Measure only the process with this id, and in the other traces the process that is paired with it. None
            measures all processes.
        note: Called with sentences for the user: which process is paired, and how the steps of the sides differ.

    Raises:
        TraceError: A trace has no CUDA events.
        UsageError: The steps are defined by an NVTX range that a trace does not have, or there is no such process.
    """
    with ExitStack() as stack:
        if process is not None:
            sides = _select_process(sides, process, stack, note)
        ranks_by_side = [_open_ranks(side, stack) for side in sides]

        def measure_sides(*, is_full_scope: bool) -> list[list[Run | None]]:
            return [
                _measure_side(*side, steps, is_full_scope=is_full_scope)
                for side in zip(sides, ranks_by_side, strict=True)
            ]

        runs = measure_sides(is_full_scope=False)
        step_runs = [[run for run in side if run and run.unit != "trace"] for side in runs]
        if step_runs == runs:
            difference = explain_different_work(*step_runs) if len(step_runs) == 2 else None
            if not difference or any(isinstance(source, Run) for side in sides for source in side):
                return step_runs
            note(f"the steps of the two do different work: {difference}")
        return [[run for run in side if run] for side in measure_sides(is_full_scope=True)]


def _measure_side(
    sources: Sequence[Source], ranks: Session | None, steps: StepOptions, *, is_full_scope: bool
) -> list[Run | None]:
    """Measure each source of a side, or all together as the ranks of one run."""
    if ranks is not None:
        traces = [source for source in sources if not isinstance(source, Run)]
        return [measure_ranks(ranks, traces, steps, is_full_scope=is_full_scope)]
    return [
        source
        if isinstance(source, Run)
        else measure_full_scope(source)
        if is_full_scope
        else measure_run(source, steps)
        for source in sources
    ]


def _open_ranks(sources: Sequence[Source], stack: ExitStack) -> Session | None:
    """Open the traces of a side together if they are the ranks of one run."""
    traces = [source for source in sources if not isinstance(source, Run)]
    if len({trace.path for trace in traces}) < max(len(sources), 2):
        return None
    ranks = stack.enter_context(traces[0].open_with(traces[1:]))
    return ranks if are_ranks(ranks) else None


def _select_process(
    sides: Sequence[Sequence[Source]], process: int, stack: ExitStack, note: Callable[[str], None]
) -> list[list[Source]]:
    """Narrow traces to a process, and say which it is where it has another id."""
    members_by_trace = [
        [member for member, _ in list_members(source)]
        for side in sides
        for source in side
        if not isinstance(source, Run)
    ]
    reference = next((members for members in members_by_trace if process in {m.process_id for m in members}), [])

    def narrow(source: Source) -> Source:
        if isinstance(source, Run):
            return source
        process_id, matched_by = find_process(source, process, reference)
        if matched_by:
            note(
                f"process {process} is compared with process {process_id} of {source.path.name}, paired by {matched_by}"
            )
        return stack.enter_context(source.scope(process=process_id))

    return [[narrow(source) for source in side] for side in sides]
