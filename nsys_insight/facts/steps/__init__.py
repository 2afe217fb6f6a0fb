"""Steps: the repetitions of the work (one decoded token, one training iteration), detected from the trace.

The methods, in the order in which they are tried: an NVTX range that repeats, NVTX ranges that repeat one after the
other (forward, backward, optimizer), the outermost loop of the program (`facts.loops`), and a given number of tokens by
which the entire scope is divided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.errors import UsageError
from nsys_insight.facts import operations
from nsys_insight.facts.steps.choice import (
    choose_loop,
    describe_doubt,
    describe_loop,
    describe_rejection,
    is_marked,
    judge_loop,
    name_unit,
)

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context, Run
    from nsys_insight.packs.step_options import StepOptions

# High and medium confidence: the minimum number of steps, and the minimum share of the GPU time from the first step to
# the last that they cover.
HIGH, MEDIUM = (5, 0.95), (3, 0.8)
# The ranges of one name are steps if there are `MIN_RANGES` of them, and if enough GPU time is launched inside them: of
# the GPU time that is launched from the first range to the last, and of all GPU time of the process.
MIN_RANGES = 3
MIN_SHARE_BETWEEN, MIN_SHARE_TOTAL = 0.8, 0.5
# The share of their GPU time in operations whose name most of the ranges have: phase 1 to phase 3 do different work.
MIN_REPEATED = 0.5
# The share of ranges that must have different texts, if the texts have numbers: a counter never repeats, but layer_0 to
# layer_3 do, and are parts of a step.
MIN_DISTINCT_TEXTS = 0.9
# What repeats is not the steps if it covers less of the GPU time than this, even if it repeats evenly.
MIN_COVERED = 0.5
# The most ranges in turn that a step has, and how many of them its name lists.
MAX_RANGES, MAX_NAMES = 32, 4
# Steps are named after CUDA graphs if these hold at least this share of their GPU time.
MIN_GRAPH_SHARE = 0.5
# Iterations are layers if a longer one ends each step: it comes at least so often, so evenly.
MIN_LONGER, EVENLY_SPACED = 3, 0.9


@dataclass(frozen=True)
class Method:
    """How steps were detected.

    Args:
        method: nvtx, graph, sequence or count; None if no steps were detected.
        pattern: The name of the ranges, or where the steps are cut, in words.
        reason: Why these are the steps; None if that follows from the number of steps and `share`.
        share: The share of the GPU time that the steps cover; None if it is still to be calculated.
        is_named: Whether the user gave the name of the ranges.
        loop: The loop of the nest whose iterations are the steps.
        unit: What a step is called.
        doubt: Which other level may be the step; None if the level is clear.
        confidence: high, medium or low; None if it follows from the number of steps and `share`.
    """

    method: str | None
    pattern: str | None = None
    reason: str | None = None
    share: float | None = None
    is_named: bool = False
    loop: str | None = None
    confidence: str | None = None
    unit: str = "step"
    doubt: str | None = None


class StepRanges(NamedTuple):
    """The NVTX ranges that are steps.

    Args:
        pattern: Their name, with # for numbers.
        covered: The share of the GPU time from the first range to the last that is launched inside them.
    """

    pattern: str
    covered: float


def fill(context: Context) -> None:
    """Fill the tables of `tables.toml`.

    Raises:
        UsageError: No NVTX range has the name that the user gave.
    """
    run, options = context.runner("steps"), context.options.steps
    if has_chosen_steps(run, options):
        run("chosen")
    else:
        _detect(context, run)
    (steady_steps,) = run("steady")
    if not steady_steps.count:
        run("whole_scope")


def has_chosen_steps(run: Run, options: StepOptions) -> bool:
    """Return whether the scope consists of steps that were detected in the unscoped trace: their facts are reused."""
    (scope,) = run("scope_name")
    return bool(scope.is_of_steps_alone) and options.step_method != "count"


def _detect(context: Context, run: Run) -> None:
    """Detect the steps, and drop the scratch tables."""
    run("no_pieces")
    busiest = run("busiest")
    if busiest:
        operations.find(context, busiest[0].process_id)
        _detect_in_process(run, busiest[0].process_id, context.options.steps)
    tables = "named pieces ranges counted calls waits work busy totals numbered"
    scratch = ["VIEW IF EXISTS internal.step_owned"]
    scratch += [f"TABLE IF EXISTS internal.step_{name}" for name in tables.split()]
    context.connection.execute("; ".join(f"DROP {relation}" for relation in scratch))


def _detect_in_process(run: Run, process: int, options: StepOptions) -> None:
    """Detect the steps of a process, and what each step contains."""
    method = _choose_method(run, process, options)
    if not method.method:
        run("no_pieces")
    if method.method:
        (work,) = run("totals", process=process)
        if work.graph_operations:
            run("graph_launches")
        run("classify_steps", process=process)
        run("interruptions")
    run(
        "method",
        method=method.method, pattern=method.pattern, loop=method.loop, reason=method.reason,
        share=method.share, is_named=method.is_named, confidence=method.confidence, unit=method.unit,
        doubt=method.doubt,
        tokens=options.tokens, tokens_per_step=(options.tokens_per_step or 1) * (options.batch or 1),
        step_time=options.step_time_ns,
        high_steps=HIGH[0], high=HIGH[1], medium_steps=MEDIUM[0], medium=MEDIUM[1], process=process,
    )  # fmt: skip


def _choose_method(run: Run, process: int, options: StepOptions) -> Method:
    """Try the methods in their order. The steps of the first one that works are in `internal.step_pieces`."""
    if options.loop:
        loop = next((loop for loop in run("loops") if loop.loop == options.loop), None)
        if not loop:
            raise UsageError(f"there is no loop {options.loop}", "nsys-insight loops lists the loops")
        return _cut_at_loop(run, process, loop, is_named=True)
    (scope,) = run("scope_name")
    methods = _list_methods(run, process, options, is_scope_range=bool(scope.nvtx) and not options.step_range)
    if "nvtx" in methods:
        range_name = options.step_range or scope.nvtx
        is_scope_range = bool(scope.nvtx) and not options.step_range
        ranges = _find_step_ranges(run, process, range_name=range_name, is_scope_range=is_scope_range)
        if ranges and (ranges.covered or range_name) and _covered_share(run):
            reason = f"they contain {100 * ranges.covered:.1f}% of the GPU time from the first to the last"
            return Method("nvtx", ranges.pattern, reason, ranges.covered, is_named=range_name is not None)
        if options.step_range:
            raise UsageError(
                f"no NVTX range of process {process} is named {options.step_range!r}",
                "nsys-insight nvtx lists them; * matches anything",
            )
    loops = run("loops") if "sequence" in methods or "graph" in methods else []
    loop = choose_loop(loops, options.step_method)
    if loop:
        method = _cut_at_loop(run, process, loop)
        if _covered_share(run):
            return method
    if options.tokens and options.step_method in ("auto", "count"):
        run("one_step", process=process)
        return Method(
            "count",
            None,
            "the whole scope is divided by the number of tokens, including warm-up and prefill",
        )
    if loops:
        return Method(None, None, f"no loop is the step: loop {loops[0].loop}, {describe_rejection(loops[0])}")
    return Method(None, None, "no repetition was found")


def _list_methods(run: Run, process: int, options: StepOptions, *, is_scope_range: bool) -> tuple[str, ...]:
    """Return the methods to try, in their order."""
    if options.step_method != "auto":
        return (options.step_method,)
    loop_methods = ("graph", "sequence")
    return loop_methods if is_scope_range and _is_benchmark(run, process) else ("nvtx", *loop_methods)


def _is_benchmark(run: Run, process: int) -> bool:
    """Return whether the only range of the scope contains the steps, such as a benchmark's, and is not one itself.

    A loop whose iterations end with a wait of the host consists of steps. Others may be the layers of a step.
    """
    (scope_ranges,) = run("scoped_count", process=process)
    loops = run("loops")
    loop = choose_loop(loops, "auto") if scope_ranges.count == 1 else None
    return loop is not None and loop.has_waits and judge_loop(loop, loops) != "low"


def _cut_at_loop(run: Run, process: int, loop: Any, *, is_named: bool = False) -> Method:
    """Fill `internal.step_pieces` from the iterations of a loop; `is_named`: the user chose it."""
    loops = run("loops")
    run("loop_pieces", process=process, loop=loop.loop)
    (mark,) = run("loop_mark", loop=loop.loop)
    repetitions = 1
    # An iteration with the mark of a step is one. Others may be layers.
    if not mark.ends_with_copy and not is_marked(loop) and not is_named:
        for layers in run("find_layers", least=MIN_LONGER, regular=EVENLY_SPACED, covered=MIN_COVERED):
            repetitions = layers.repetitions
            run("merge_repetitions", repetitions=repetitions)
    name = "D2H copy" if mark.ends_with_copy else mark.first_name
    prefix = f"{repetitions} repetitions a step, " if repetitions > 1 else ""
    pattern = f"{prefix}{'after' if mark.ends_with_copy else 'from'} each {name}"
    method = "graph" if loop.graph_share >= MIN_GRAPH_SHARE else "sequence"
    result = Method(method, pattern, loop=loop.loop, reason=describe_loop(loop), confidence="high", is_named=is_named)
    if is_named or repetitions > 1:
        return result if is_named else replace(result, confidence="medium")
    return replace(
        result, confidence=judge_loop(loop, loops), unit=name_unit(loop, loops), doubt=describe_doubt(loop, loops)
    )


def _find_step_ranges(run: Run, process: int, *, range_name: str | None, is_scope_range: bool) -> StepRanges | None:
    """Fill `internal.step_pieces` from the ranges of one name on one thread.

    Args:
        run: Runs a statement of this folder.
        process: The process of the ranges.
        range_name: The name that the user gave (`*` and `?` match anything). Such ranges need not pass the checks.
        is_scope_range: Whether this is the range of the scope.
    """
    run("scoped" if is_scope_range else "named", process=process, range_name=range_name)
    candidates = run("range_names")
    for candidate in candidates:
        is_counter = candidate.texts == 1 or candidate.texts >= MIN_DISTINCT_TEXTS * candidate.occurrences
        if range_name is None and (candidate.occurrences < MIN_RANGES or candidate.is_nested or not is_counter):
            continue
        run("ranges", thread=candidate.thread_id, pattern=candidate.pattern)
        (work,) = run("range_work")
        if range_name is not None or (work.ranges_count >= MIN_RANGES and _are_steps(work, MIN_SHARE_BETWEEN)):
            return _cut_at_ranges(run, process, candidate, work, by_period=not is_scope_range)
    if range_name is not None or not candidates:
        return None
    (cycle,) = run(
        "cycles", least_ranges=MIN_RANGES, least_distinct=MIN_DISTINCT_TEXTS,
        most_ranges=MAX_RANGES, most_names=MAX_NAMES,
    )  # fmt: skip
    (work,) = run("range_work")
    # There are no other ranges, so what is launched between these belongs to the steps as well.
    if not cycle.cycles or not _are_steps(work, MIN_SHARE_TOTAL):
        return None
    # The parts of a layer repeat as well. Then the loop around them has fewer iterations.
    loop = choose_loop(run("loops"), "auto")
    if loop and loop.iterations < cycle.cycles:
        return None
    return _cut_at_ranges(run, process, cycle, work, by_period=True)


def _are_steps(work: Any, least_share: float) -> bool:
    """Return whether ranges with this work, a row of `range_work.sql`, hold enough of it, and the same in each."""
    has_enough = work.inside_ns >= max(least_share * work.around_ns, MIN_SHARE_TOTAL * work.all_ns)
    return bool(has_enough and work.repeated_ns >= MIN_REPEATED * work.inside_ns)


def _cut_at_ranges(run: Run, process: int, ranges: Any, work: Any, *, by_period: bool) -> StepRanges:
    """Fill `internal.step_pieces` from `internal.step_ranges`, which have this thread, pattern and work."""
    run("range_pieces", process=process, thread=ranges.thread_id, by_period=by_period)
    return StepRanges(ranges.pattern, work.inside_ns / work.around_ns if work.around_ns else 0.0)


def _covered_share(run: Run) -> float:
    """Return the share of the process's GPU time that the steps cover; 0 if they have no duration."""
    (stream_steps,) = run("coverage")
    if not stream_steps.wall_ns:
        return 0.0
    share = float(stream_steps.share)
    if share < MIN_COVERED:
        (all_streams,) = run("coverage_all_streams")
        share = max(share, float(all_streams.share))
    return share
