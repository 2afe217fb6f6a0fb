"""The runs of one loop that rare other work interrupts: an evaluation, a checkpoint, a log, a prefill."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from nsys_insight.facts.arrays import np
from nsys_insight.facts.loops.evidence import MAX_RARE_SHARE, MOST_RUNS, weigh_interruptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_insight.facts.loops.evidence import Amounts
    from nsys_insight.facts.loops.nest import Loop, LoopNest

# Runs do the same work if their iterations take as much GPU time, up to this share: two benchmarks that run the same
# kernels on different sizes are two loops. It breaks for sizes that differ less, and for caches that grow faster.
SAME_WORK = 0.25
# A run is compared with this number of runs before it, so that the time stays linear.
RECENT_RUNS = 20


def join_runs(nest: LoopNest, amounts: Amounts) -> list[list[Loop]]:
    """Return the outermost loops, each with its runs, in the order of their first runs."""
    by_symbol: dict[int, list[Loop]] = {}
    for loop in _dissolve(nest, amounts):
        by_symbol.setdefault(loop.symbol, []).append(loop)
    groups = [group for runs in by_symbol.values() for group in _group_runs(runs, amounts)]
    return sorted(groups, key=lambda runs: runs[0].first)


def _group_runs(runs: Sequence[Loop], amounts: Amounts) -> list[list[Loop]]:
    """Return the runs of one body as one loop if what lies between them is rare, else as few loops as possible."""
    if _are_one_loop(runs, amounts):
        return [list(runs)]
    groups: list[list[Loop]] = []
    for run in runs:
        if groups and _are_one_loop([*groups[-1][-RECENT_RUNS:], run], amounts):
            groups[-1].append(run)
        else:
            groups.append([run])
    return groups


def _are_one_loop(runs: Sequence[Loop], amounts: Amounts) -> bool:
    """Return whether runs do the same work, and whether what comes between them is rare."""
    between = list(pairwise(runs))
    for name in ("is_operation", "gpu_ns"):
        rare = sum(amounts.between(name, left, right) for left, right in between)
        if rare > MAX_RARE_SHARE * (rare + amounts.total(name, runs)):
            return False
    work = np.array([np.median(amounts.gpu_ns_of_iterations([run])) for run in runs])
    typical_ns = float(np.median(amounts.gpu_ns_of_iterations(runs)))
    return bool(np.mean(np.abs(work - typical_ns) <= SAME_WORK * typical_ns) >= MOST_RUNS)


def _dissolve(nest: LoopNest, amounts: Amounts) -> list[Loop]:
    """Return the outermost loops, with the runs of the step instead of outer loops that only interruptions make.

    Interruptions of several kinds, or at changing distances, make several outer loops around the runs of one loop.
    """
    outermost = list(nest.loops_of(nest.terms))
    for symbol in nest.list_scattered():
        runs_by_loop = [list(_find_runs(nest, loop, symbol)) for loop in outermost]
        runs = [run for runs in runs_by_loop for run in runs]
        if len(runs) > 1 and _are_one_loop(runs, amounts) and weigh_interruptions(runs, amounts) < 0:
            return [part for loop, runs in zip(outermost, runs_by_loop, strict=True) for part in runs or [loop]]
    return outermost


def _find_runs(nest: LoopNest, loop: Loop, symbol: int) -> Iterator[Loop]:
    """Return the runs of one body in a loop, at any depth; the loop itself if it is one."""
    if loop.symbol == symbol:
        yield loop
    elif symbol in nest.inner_symbols(loop.symbol):
        for inner in nest.loops_of(loop.terms):
            yield from _find_runs(nest, inner, symbol)
