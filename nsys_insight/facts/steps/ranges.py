"""Steps told by an NVTX range that repeats and holds the GPU work."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from nsys_insight.facts.statements import Run

# A name marks steps if it repeats so often, and if four fifths of the GPU time that is launched from its first to its
# last range is launched inside, which is half of all.
REPEATS = 3
INSIDE, OF_ALL = 0.8, 0.5
# Numbers of a counter are all different; layer_0 to layer_3, again and again, are parts of a step.
DIFFERENT = 0.9


class StepRanges(NamedTuple):
    """The ranges that are steps: their name, with # for numbers, and the share of the GPU time that they hold."""

    pattern: str
    inside: float


def step_ranges(run: Run, process: int, *, wanted: str | None, scoped: bool) -> StepRanges | None:
    """Fill the table `internal.step_pieces` from the ranges of one name on one thread.

    Args:
        run: Runs a statement of `queries/facts/steps`.
        process: The process whose steps they are.
        wanted: The name, if the user says which (`*` and `?` match anything); it need not convince.
        scoped: Whether that is the name of the scope.
    """
    run("scoped" if scoped else "named", process=process, wanted=wanted)
    for found in run("range_names"):
        counts = found.texts == 1 or found.texts >= DIFFERENT * found.occurrences
        if wanted is None and (found.occurrences < REPEATS or found.is_nested or not counts):
            continue
        run("ranges", thread=found.thread_id, pattern=found.pattern)
        (work,) = run("range_work")
        holds_work = work.inside_ns and work.inside_ns >= max(INSIDE * work.around_ns, OF_ALL * work.all_ns)
        if wanted is not None or holds_work:
            run("range_pieces", process=process, thread=found.thread_id)
            return StepRanges(found.pattern, work.inside_ns / work.around_ns if work.around_ns else 0.0)
    return None
