"""Steps: the repetitions of the work (one decoded token, one training iteration), found in the trace.

The methods, in the order in which they are tried: an NVTX range that repeats, CUDA graphs, the repeated
sequence of operations on the busiest stream; and a number of tokens that is given, by which the whole is divided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.errors import UsageError
from nsys_insight.facts import operations
from nsys_insight.facts.steps.sequence import BusiestStream, cut_by_rhythm

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context, Run
    from nsys_insight.packs.step_options import StepOptions

# From so many steps on, and such a share of the GPU time from the first to the last, steps are found with high, or at
# least medium confidence.
HIGH, MEDIUM = (5, 0.95), (3, 0.8)
# A name marks steps if it repeats so often, and if four fifths of the GPU time that is launched from its first to its
# last range is launched inside, which is half of all.
REPEATS = 3
INSIDE, OF_ALL = 0.8, 0.5
# Numbers of a counter are all different; layer_0 to layer_3, again and again, are parts of a step.
DIFFERENT = 0.9
# What holds less of the GPU's work than this is not the steps, however evenly it repeats.
HELD = 0.5


@dataclass(frozen=True)
class Method:
    """How steps were told, by which name or mark, and how much of the GPU time that is known to hold.

    `mark_name` is the name of the operation that the pattern ends with, where it is one that begins or ends a step.
    """

    method: str | None
    pattern: str | None = None
    reason: str | None = None
    share: float | None = None
    named: bool = False
    mark_name: str | None = None


class StepRanges(NamedTuple):
    """The ranges that are steps: their name, with # for numbers, and the share of the GPU time that they hold."""

    pattern: str
    inside: float


def fill(context: Context) -> None:
    """Fill the tables of `queries/facts/steps/tables.sql`.

    Raises:
        UsageError: No NVTX range has the name that the user gave.
    """
    run, options = context.runner("steps"), context.options.steps
    if are_chosen(run, options):
        run("chosen")
    else:
        _find_all(context, run)
    (steady,) = run("steady")
    if not steady.count:
        run("whole_scope")


def are_chosen(run: Run, options: StepOptions) -> bool:
    """Tell whether the scope is steps that were found in the whole trace: then all is known of them."""
    (scope,) = run("scope_name")
    return bool(scope.is_of_steps_alone) and options.step_method != "count"


def _find_all(context: Context, run: Run) -> None:
    run("no_pieces")
    busiest = run("busiest")
    if busiest:
        operations.find(context, busiest[0].process_id)
        _find(run, BusiestStream.of(busiest[0]), context.options.steps)
    for kind, names in (
        ("VIEW", "named ops owned"),
        ("TABLE", "stream cut units pieces ranges line slots counted calls waits work busy totals numbered"),
    ):
        for name in names.split():
            context.connection.execute(f"DROP {kind} IF EXISTS internal.step_{name}")


def _find(run: Run, stream: BusiestStream, options: StepOptions) -> None:
    """Find the steps of the process whose stream is the busiest, and what each of them holds."""
    method = _method(run, stream, options)
    if not method.method:
        run("no_pieces")
    if method.method:
        run("totals", process=stream.process)
        run("judged")
    run(
        "method",
        method=method.method, pattern=method.pattern, mark_name=method.mark_name, reason=method.reason,
        share=method.share, named=method.named,
        tokens=options.tokens, tokens_per_step=(options.tokens_per_step or 1) * (options.batch or 1),
        high_steps=HIGH[0], high=HIGH[1], medium_steps=MEDIUM[0], medium=MEDIUM[1], process=stream.process,
    )  # fmt: skip


def _method(run: Run, stream: BusiestStream, options: StepOptions) -> Method:
    """Try the methods in their order, and leave what was found in `internal.step_pieces`."""
    tried = ("nvtx", "graph", "sequence") if options.step_method == "auto" else (options.step_method,)
    (scope,) = run("scope_name")
    if "nvtx" in tried:
        wanted = options.step_range or scope.nvtx
        scoped = bool(scope.nvtx) and not options.step_range
        ranges = _step_ranges(run, stream.process, wanted=wanted, scoped=scoped)
        if ranges and (ranges.inside or wanted) and _held(run):
            reason = f"{100 * ranges.inside:.1f} % of the GPU time between the first and the last is launched in them"
            return Method("nvtx", ranges.pattern, reason, ranges.inside, named=wanted is not None)
        if options.step_range:
            raise UsageError(
                f"no NVTX range of process {stream.process} is named {options.step_range!r}",
                "nsys-insight nvtx lists them; * matches anything",
            )
    seen = ""
    for name in ("graph", "sequence"):
        if name in tried:
            chosen = options.step_method == name
            mark = cut_by_rhythm(run, stream, graphs=name == "graph", chosen=chosen)
            if mark:
                held = _held(run)
                if held >= HELD or (chosen and held):
                    return Method(name, mark.pattern, mark_name=mark.name, share=None if held >= HELD else held)
                seen = f"; what repeats, {mark.pattern}, holds {_share(held)} of the GPU time"
    if options.tokens and options.step_method in ("auto", "count"):
        run("whole", process=stream.process)
        return Method(
            "count",
            None,
            "the whole scope is divided by the number of tokens, including warm-up and prefill",
        )
    return Method(None, None, f"no repetition was found that holds half of the GPU time{seen}")


def _step_ranges(run: Run, process: int, *, wanted: str | None, scoped: bool) -> StepRanges | None:
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


def _held(run: Run) -> float:
    """The share of the process's GPU time that the steps hold which were cut; 0 if they last no time."""
    (held,) = run("held")
    if not held.wall_ns:
        return 0.0
    share = float(held.share)
    if share < HELD:
        (of_all,) = run("held_by_all")
        share = max(share, float(of_all.share))
    return share


def _share(part: float) -> str:
    """Write a share that may be small."""
    return f"{100 * part:.1f} %" if part >= 0.001 else "less than 0.1 %"
