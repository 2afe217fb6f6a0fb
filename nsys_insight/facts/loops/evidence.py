"""Which of two levels a program means as its step: the outer loop, or the loop in it that rare work interrupts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.arrays import np
from nsys_insight.facts.loops.repetitions import MIN_ITERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from nsys_insight.facts.loops.nest import Loop

    Column = NDArray[Any]

# An operation comes once per iteration if there are this many of it in an iteration, on average: the first or the last
# iteration of a capture may lack it. It breaks where every tenth iteration or more has none.
ONCE = 0.9
# Rare work comes after each fourth iteration at most. It breaks for an evaluation after each third iteration.
MIN_BETWEEN = 4
# Rare work takes less than this share of the GPU time. It breaks for an evaluation that takes longer than a third of
# the training since the one before.
MAX_RARE_SHARE = 0.25
# Counts are regular if most of them are within this share of their median: layers always are as many, and the first or
# the last run may be cut by the capture. It breaks for solvers that converge after nearly equal iterations.
NEARLY_EQUAL, MOST_RUNS = 0.15, 0.75
# Intervals that people choose, such as each 10th, 25th or 100th iteration, are multiples of the first number, counts
# of layers often are not. Multiples of the second number are rarely counts of layers. It breaks for a model of 40
# layers, if nothing else marks its tokens, and for any model of 100 layers.
CHOSEN_INTERVAL, LONG_INTERVAL = 5, 50
# A wait after fewer iterations than this is the end of a step; after more, it may bound how far the host is ahead. It
# breaks for a program that lets the GPU finish after every few steps.
MIN_AHEAD = 8
# Iterations do equal work if the middle half of them differs by less than this share of the GPU time.
EQUAL_WORK = 0.1
# The marks that a program sets once per step: results and tokens that leave the GPU, the loss or the optimizer, inputs.
MARKS = ("is_result", "ends_step", "is_input")


def add_up(values: Column) -> Column:
    """Return the sum of the values before each position, and of all of them, in a single new array."""
    total = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=total[1:])
    return total


class Amounts:
    """Sums of the columns of a sequence over loops and iterations."""

    def __init__(self, sequence: Mapping[str, Column]) -> None:
        """Add up the columns that `weigh` compares."""
        self._gpu_ns = add_up(sequence["gpu_ns"])
        # Few rows are marks or waits: their positions take less memory than sums.
        self._marks = {name: np.flatnonzero(sequence[name]) for name in ("is_wait", *MARKS)}
        waits = self._marks["is_wait"]
        self._wait_ns = add_up(sequence["end_ns"][waits] - sequence["start_ns"][waits])
        self._uncounted = np.flatnonzero(~sequence["is_operation"].astype(bool))

    def total(self, name: str, loops: Sequence[Loop]) -> int:
        """Return the sum of a column over loops."""
        bounds = np.array([(loop.first, loop.end) for loop in loops]).reshape(-1, 2)
        return int((self._sum_before(name, bounds[:, 1]) - self._sum_before(name, bounds[:, 0])).sum())

    def between(self, name: str, left: Loop, right: Loop) -> int:
        """Return the sum of a column over what lies between two loops."""
        return int(np.diff(self._sum_before(name, np.array([left.end, right.first])))[0])

    def gpu_ns_of_iterations(self, loops: Sequence[Loop]) -> Column:
        """Return the GPU time of each iteration of loops, in nanoseconds."""
        bounds = [np.append(loop.iterations, loop.end) for loop in loops]
        return np.concatenate([np.diff(self._gpu_ns[iteration_bounds]) for iteration_bounds in bounds])

    def _sum_before(self, name: str, positions: Column) -> Column:
        """Return the sum of a column up to each of some positions."""
        if name == "gpu_ns":
            return self._gpu_ns[positions]
        if name == "is_operation":
            return positions - np.searchsorted(self._uncounted, positions)
        if name == "wait_ns":
            return self._wait_ns[np.searchsorted(self._marks["is_wait"], positions)]
        return np.searchsorted(self._marks[name], positions)


def count_marks(loops: Sequence[Loop], amounts: Amounts) -> int:
    """Return how many of the marks of a step the iterations of loops have, and whether the host waits in each."""
    iterations = sum(len(loop.iterations) for loop in loops)
    return sum(amounts.total(name, loops) >= ONCE * iterations for name in (*MARKS, "is_wait"))


def weigh(outer: Sequence[Loop], inner: Sequence[Loop], amounts: Amounts) -> int:
    """Return how much more speaks for an outer loop than for a loop inside of it as the step; negative for the inner.

    The unit is one weak hint. What a program does once per step weighs three: a result or a token that leaves the GPU,
    a loss, an optimizer. Work that is too much or too frequent to be an interruption weighs as much or more.
    """
    outer_iterations = sum(len(loop.iterations) for loop in outer)
    counts = np.array([len(loop.iterations) for loop in inner])
    iterations = int(counts.sum())
    rest_totals = {
        name: amounts.total(name, outer) - amounts.total(name, inner)
        for name in ("gpu_ns", "is_wait", "wait_ns", *MARKS)
    }

    def has(name: str) -> tuple[bool, bool]:
        """Return whether each iteration of the inner loop has a mark, and the rest of each outer one."""
        return amounts.total(name, inner) >= ONCE * iterations, rest_totals[name] >= ONCE * outer_iterations

    median = int(np.median(counts))
    is_regular = bool(np.mean(np.abs(counts - median) <= NEARLY_EQUAL * median) >= MOST_RUNS)
    weight = 0
    if rest_totals["gpu_ns"] > MAX_RARE_SHARE * amounts.total("gpu_ns", outer):
        weight += 6
    if iterations < MIN_BETWEEN * outer_iterations:
        weight += 3
    marks = {name: has(name) for name in MARKS}
    is_inner_marked = any(in_inner for in_inner, _ in marks.values())
    for in_inner, in_rest in marks.values():
        weight += -3 if in_inner else (3 if is_regular and not is_inner_marked else 1) if in_rest else 0
    waits_inside, waits_in_rest = has("is_wait")
    weight += waits_in_rest and not waits_inside
    if is_regular:
        weight += -5 if median % LONG_INTERVAL == 0 else -1 if median % CHOSEN_INTERVAL == 0 else 1
    else:
        # The host can end a loop after any iteration if it gets a result from each. Else other work comes in between.
        weight += 1 if has("is_result")[0] or waits_inside else -2
    if amounts.total("is_operation", outer) - amounts.total("is_operation", inner) < outer_iterations / 2:
        # The rest consists of waits. A host that is iterations ahead and waits after every eighth one bounds its queue,
        # and iterations that consist of loops of their own are rarely parts of a step. But where the number of
        # iterations or their work varies, it is the outer loop that repeats.
        inner_ns = amounts.gpu_ns_of_iterations(inner)
        is_ahead = median >= MIN_AHEAD and rest_totals["wait_ns"] >= outer_iterations * float(np.median(inner_ns))
        is_equal = np.mean(counts == median) >= MOST_RUNS and _is_equal(inner_ns)
        weight += -3 if is_equal and (is_ahead or _has_loops(inner)) else 2
    return int(weight)


def weigh_interruptions(runs: Sequence[Loop], amounts: Amounts) -> int:
    """Return how much more speaks for a step that ends with each interruption of a loop, as in `weigh`."""
    firsts = np.array([run.first for run in runs[:-1]])
    spans = replace(runs[0], first=runs[0].first, end=runs[-1].first, iterations=firsts)
    return weigh([spans], runs[:-1], amounts)


def _has_loops(loops: Sequence[Loop]) -> bool:
    """Return whether most operations of loops repeat inside of their iterations, in inner loops or runs."""
    return sum(loop.end - loop.first for loop in loops) >= MIN_ITERATIONS * sum(len(loop.terms) for loop in loops)


def _is_equal(gpu_ns: Column) -> bool:
    low, median, high = find_quartiles(gpu_ns)
    return bool(high - low <= EQUAL_WORK * median)


def find_quartiles(values: Column) -> list[float]:
    """Return the quartiles: `np.quantile` imports the masked arrays of NumPy, which takes 10 ms."""
    positions = np.array([0.25, 0.5, 0.75]) * (len(values) - 1)
    quartiles: list[float] = np.interp(positions, np.arange(len(values)), np.sort(values)).tolist()
    return quartiles
