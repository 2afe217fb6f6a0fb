"""Steps: the repetitions of the work (one decoded token, one training iteration), found in the trace.

The methods, in the order in which they are tried: an NVTX range that repeats, CUDA graphs, the repeated
sequence of operations on the busiest stream; and a number of tokens that is given, by which the whole is divided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError
from nsys_insight.facts.statements import runner
from nsys_insight.facts.steps import launched
from nsys_insight.facts.steps.ranges import step_ranges
from nsys_insight.facts.steps.sequence import BusiestStream, cut_by_rhythm

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from nsys_insight.facts.statements import Run
    from nsys_insight.packs.step_options import StepOptions

# From so many steps on, and such a share of the GPU time from the first to the last, steps are found with high, or at
# least medium confidence.
HIGH, MEDIUM = (5, 0.95), (3, 0.8)
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


def fill(connection: duckdb.DuckDBPyConnection, options: StepOptions, prepare: Callable[[str], None]) -> None:
    """Fill the tables of `queries/facts/steps/tables.sql`.

    Args:
        connection: Where the model is.
        options: What the user says about steps.
        prepare: Creates the views that a statement names.

    Raises:
        UsageError: No NVTX range has the name that the user gave.
    """
    run = runner(connection, "steps", prepare)
    if are_chosen(run, options):
        run("chosen")
    else:
        _find_all(connection, prepare, run, options)
    (steady,) = run("steady")
    if not steady.count:
        run("whole_scope")


def are_chosen(run: Run, options: StepOptions) -> bool:
    """Tell whether the scope is steps that were found in the whole trace: then all is known of them."""
    (scope,) = run("scope_name")
    return bool(scope.is_of_steps_alone) and options.step_method != "count"


def _find_all(
    connection: duckdb.DuckDBPyConnection, prepare: Callable[[str], None], run: Run, options: StepOptions
) -> None:
    run("no_pieces")
    busiest = run("busiest")
    if busiest:
        launched.fill(connection, prepare, run, busiest[0].process_id)
        _find(run, BusiestStream.of(busiest[0]), options)
    for kind, names in (
        ("VIEW", "named ops owned"),
        ("TABLE", "stream cut units pieces ranges line slots counted calls waits work busy totals numbered"),
    ):
        for name in names.split():
            connection.execute(f"DROP {kind} IF EXISTS internal.step_{name}")


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
        ranges = step_ranges(run, stream.process, wanted=wanted, scoped=scoped)
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
