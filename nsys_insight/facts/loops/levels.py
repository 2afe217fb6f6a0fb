"""The levels of a loop nest, measured: iterations, periods, and how busy the GPU is in them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.facts.arrays import np
from nsys_insight.facts.loops.evidence import Amounts, add_up, count_marks, find_quartiles, weigh, weigh_interruptions
from nsys_insight.facts.loops.interruptions import join_runs
from nsys_insight.facts.loops.repetitions import MIN_ITERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from nsys_insight.facts.loops.nest import Loop, LoopNest, Terms

    Column = NDArray[Any]

# Levels whose operations hold less of the GPU time are left out.
MIN_GPU_SHARE = 0.001
# Levels below this depth are left out.
MAX_DEPTH = 6
# At most this number of inner loops of a level are listed, those with most iterations.
MAX_INNER_LOOPS = 12
# An iteration is regular if its number of operations differs from the median by at most this share.
SIMILAR_LENGTH = 0.25
# Operations whose values are added up at a time.
OPERATIONS_PER_SUM = 500_000


@dataclass(frozen=True)
class Level:
    """One loop of the nest, with all its runs."""

    name: str
    parent: str | None
    depth: int
    runs: list[Loop]
    inner: list[Level] = field(default_factory=list)


class _Segment(NamedTuple):
    """Operations from `first` up to `end`: a run of `repeats` equal ones, or as many iterations of an inner loop."""

    first: int
    end: int
    inner_loop: str | None
    repeats: int


@dataclass(frozen=True)
class Levels:
    """The measured levels of a nest.

    Args:
        nest: The nest.
        sequence: Columns of the operations in their order: `host_ns`, `start_ns`, `end_ns`, `gpu_ns`, `is_launch`,
            `is_operation`, `is_communication`, `is_wait`, `is_result`, `is_input`, `ends_step`.
        outermost: The outermost levels.
        amounts: Sums of the columns.
    """

    nest: LoopNest
    sequence: Mapping[str, Column]
    outermost: list[Level]
    amounts: Amounts

    def tables(self, process: int) -> dict[str, dict[str, Column]]:
        """Return the columns of the tables of `tables.toml` that have rows."""
        levels = list(_walk(self.outermost))
        if not levels:
            return {}
        iterations_by_level = [_measure(level, self.sequence) for level in levels]
        busy = _BusyTime(self.sequence)
        communicates = self.sequence["is_communication"].any()
        computing = _BusyTime(self.sequence, excluded="is_communication") if communicates else busy
        loops = [
            _summarize(level, iterations, busy, computing, self.sequence) | {"process_id": process}
            for level, iterations in zip(levels, iterations_by_level, strict=True)
        ]
        amounts = self.amounts
        runs = {level.name: level.runs for level in levels}
        columns = _columns(loops)
        columns["marks"] = np.array([count_marks(level.runs, amounts) for level in levels])
        columns["parent_weight"] = np.array(
            [
                weigh(runs[level.parent], level.runs, amounts)
                if level.parent
                else weigh_interruptions(level.runs, amounts)
                if len(level.runs) > 1
                else np.nan
                for level in levels
            ]
        )
        operations = [row for level in levels for row in _list_typical(self.nest, level, busy, self.sequence)]
        return {
            "loops": columns,
            "loop_iterations": {
                "loop": np.concatenate(
                    [np.full(len(i["run"]), level.name) for level, i in zip(levels, iterations_by_level, strict=True)]
                ),
                **{
                    name: np.concatenate([iterations[name] for iterations in iterations_by_level])
                    for name in iterations_by_level[0]
                },
            },
            "loop_operations": _columns(operations),
        }


def measure_levels(nest: LoopNest, sequence: Mapping[str, Column]) -> Levels:
    """Return the levels of a nest, outermost loops first, each with the loops inside."""
    amounts = Amounts(sequence)
    total_ns = max(int(sequence["gpu_ns"].sum()), 1)

    def is_relevant(loops: Sequence[Loop]) -> bool:
        return amounts.total("gpu_ns", loops) >= MIN_GPU_SHARE * total_ns

    groups = [runs for runs in join_runs(nest, amounts) if _is_loop(runs) and is_relevant(runs)]
    outermost = [_make_level(nest, is_relevant, str(number), None, 0, runs) for number, runs in enumerate(groups, 1)]
    return Levels(nest, sequence, outermost, amounts)


def _make_level(  # noqa: PLR0913, PLR0917 - a local function that calls itself would keep all columns in memory
    nest: LoopNest,
    is_relevant: Callable[[Sequence[Loop]], bool],
    name: str,
    parent: str | None,
    depth: int,
    runs: list[Loop],
) -> Level:
    inner: list[Level] = []
    if depth < MAX_DEPTH:
        by_symbol: dict[int, list[Loop]] = {}
        for run in runs:
            for loop in (*nest.loops_of(run.terms), *nest.long_runs_of(run.terms)):
                by_symbol.setdefault(loop.symbol, []).append(loop)
        candidates = [loops for loops in by_symbol.values() if _is_loop(loops) and is_relevant(loops)]
        candidates.sort(key=lambda loops: -sum(len(loop.iterations) for loop in loops))
        listed_loops = sorted(candidates[:MAX_INNER_LOOPS], key=lambda loops: _offset(loops[0], runs))
        inner = [
            _make_level(nest, is_relevant, f"{name}.{number}", name, depth + 1, loops)
            for number, loops in enumerate(listed_loops, 1)
        ]
    return Level(name, parent, depth, runs, inner)


def _is_loop(runs: Sequence[Loop]) -> bool:
    return max(len(run.iterations) for run in runs) >= MIN_ITERATIONS


def _offset(loop: Loop, runs: Sequence[Loop]) -> int:
    """Return how far from the start of its parent's iteration a loop starts, in operations."""
    for run in runs:
        if run.first <= loop.first < run.end:
            number = np.searchsorted(run.iterations, loop.first, side="right") - 1
            return int(loop.first - run.iterations[number])
    return 0


def _walk(levels: Iterable[Level]) -> Iterable[Level]:
    for level in levels:
        yield level
        yield from _walk(level.inner)


def _measure(level: Level, sequence: Mapping[str, Column]) -> dict[str, Column]:
    """Return the columns of `facts.loop_iterations` for a level."""
    firsts, ends = _bounds(level)
    run_lengths = [len(run.iterations) for run in level.runs]
    is_last = np.zeros(len(firsts), bool)
    is_last[np.cumsum(run_lengths) - 1] = True
    far = np.iinfo(np.int64).max
    start = _reduce(np.minimum, np.where(sequence["is_operation"], sequence["start_ns"], far), firsts, ends)
    start = np.where(start == far, sequence["start_ns"][firsts], start)
    done_ns = _reduce(np.maximum, np.where(sequence["is_operation"], sequence["end_ns"], start.min()), firsts, ends)
    # The waits after the last operation of a run belong to its last iteration.
    operations = np.flatnonzero(sequence["is_operation"])
    next_operation = _look_up(operations, np.searchsorted(operations, ends), len(sequence["host_ns"]))
    del operations
    shapes = _sum(firsts, ends, sequence["shape"])
    values, counts = np.unique(shapes, return_counts=True)
    return {
        "run": np.repeat(np.arange(len(level.runs)), run_lengths),
        "iteration": np.concatenate([np.arange(length) for length in run_lengths]),
        "host_start_ns": sequence["host_ns"][firsts],
        "start_ns": start,
        "end_ns": np.where(is_last, done_ns, np.append(start[1:], 0)),
        "host_end_ns": _look_up(sequence["host_ns"], np.where(is_last, next_operation, ends), far),
        "is_different": shapes != values[counts.argmax()],
        "done_ns": done_ns,
        "operations": _sum(firsts, ends, sequence["is_operation"]),
        "gpu_ns": _sum(firsts, ends, sequence["gpu_ns"]),
    }


def _summarize(
    level: Level,
    iterations: Mapping[str, Column],
    busy: _BusyTime,
    computing: _BusyTime,
    sequence: Mapping[str, Column],
) -> dict[str, Any]:
    """Return the row of a level in `facts.loops`.

    The last iteration of a run has no period, so it is left out of the times unless there are no others.
    """
    host, run = iterations["host_start_ns"], iterations["run"]
    start, end = iterations["start_ns"], np.maximum(iterations["end_ns"], iterations["start_ns"])
    is_timed = np.append(np.diff(run) == 0, False)
    if is_timed.any():
        start, end = start[is_timed], end[is_timed]
    periods = end - start
    busy_ns = busy.measure(start, end)
    bounds = _bounds(level)
    launches = _sum(*bounds, sequence["is_launch"])
    graph_ns = _sum(*bounds, sequence["gpu_ns"], sequence["is_graph"])
    counts = iterations["operations"]
    low, median, high = find_quartiles(periods)
    return {
        "loop": level.name,
        "parent": level.parent,
        "depth": level.depth,
        "iterations": len(host),
        "per_parent": float(np.median([len(run.iterations) for run in level.runs])) if level.parent else np.nan,
        "period_ns": float(median),
        "period_low_ns": float(low),
        "period_high_ns": float(high),
        "gpu_busy_ns": float(np.median(busy_ns)),
        "gpu_idle_ns": float(np.median(periods - busy_ns)),
        "communication_ns": float(np.median(busy_ns - computing.measure(start, end))),
        "operations": float(np.median(iterations["operations"])),
        "launches": float(np.median(launches)),
        "gpu_share": float(iterations["gpu_ns"].sum() / max(sequence["gpu_ns"].sum(), 1)),
        "launch_share": float(launches.sum() / max(sequence["is_launch"].sum(), 1)),
        "graph_share": float(graph_ns.sum() / max(iterations["gpu_ns"].sum(), 1)),
        "structure_share": _share_structure(level),
        "regular_share": float(np.mean(np.abs(counts - np.median(counts)) <= SIMILAR_LENGTH * np.median(counts))),
        "start_ns": int(host.min()),
        "end_ns": int(iterations["done_ns"].max()),
    }


def _share_structure(level: Level) -> float:
    """Return the share of iterations that have the most frequent terms; an inner loop is one term at any length.

    Of iterations that take one of a few branches, it is the share of these branches.
    """
    # Nearly all runs of an inner loop are equal.
    runs_by_terms: dict[tuple[bytes, bytes], list[Loop]] = defaultdict(list)
    for run in level.runs:
        starts = run.terms.first.searchsorted(run.iterations)
        runs_by_terms[run.terms.symbol.tobytes(), starts.tobytes()].append(run)
    structures: Counter[bytes] = Counter()
    for runs in runs_by_terms.values():
        terms, iterations = runs[0].terms, runs[0].iterations
        bounds = [*terms.first.searchsorted(iterations).tolist(), len(terms)]
        for number in range(0, len(iterations), max(1, len(iterations) // 250)):
            structures[terms.symbol[bounds[number] : bounds[number + 1]].tobytes()] += len(runs)
    usual_structures = structures.most_common(level.runs[0].branches)
    return sum(count for _, count in usual_structures) / structures.total()


def _bounds(level: Level) -> tuple[Column, Column]:
    """Return the first operation of each iteration, and where it ends: at the next one, or at the end of its run."""
    firsts = np.concatenate([run.iterations for run in level.runs])
    ends = np.append(firsts[1:], firsts[-1:])
    ends[np.cumsum([len(run.iterations) for run in level.runs]) - 1] = [run.end for run in level.runs]
    return firsts, ends


def _look_up(values: Column, positions: Column, default: int) -> Column:
    """Return the values at some positions; `default` behind the last one."""
    values_there: Column = np.where(positions < len(values), values[np.minimum(positions, len(values) - 1)], default)
    return values_there


def _list_typical(
    nest: LoopNest, level: Level, busy: _BusyTime, sequence: Mapping[str, Column]
) -> Iterable[dict[str, Any]]:
    """Return the rows of a typical iteration: of the most frequent terms, the first one with the median duration."""
    run = max(level.runs, key=lambda loop: len(loop.iterations))
    numbers = range(len(run.iterations))
    if len(numbers) > 500:
        numbers = range(0, len(numbers), len(numbers) // 250)
    shapes = [run.iteration(number).symbol.tobytes() for number in numbers]
    usual_terms, _ = Counter(shapes).most_common(1)[0]
    typical_numbers = [number for number, shape in zip(numbers, shapes, strict=True) if shape == usual_terms]
    hosts = np.append(sequence["host_ns"][run.iterations], sequence["host_ns"][run.end - 1])
    typical_numbers.sort(key=lambda number: hosts[number + 1] - hosts[number])
    terms = run.iteration(typical_numbers[len(typical_numbers) // 2])
    names = {inner.runs[0].symbol: inner.name for inner in level.inner}
    yield from _measure_segments(nest, level.name, _fold_inner_loops(nest, terms, names), busy, sequence)


def _fold_inner_loops(nest: LoopNest, terms: Terms, names: Mapping[int, str]) -> list[_Segment]:
    """Return the segments of an iteration: operations, runs of equal operations, and inner loops that have a name."""
    segments: list[_Segment] = []
    for index in range(len(terms)):
        first = int(terms.first[index])
        end = int(terms.first[index + 1]) if index + 1 < len(terms) else terms.end
        if terms.loop[index] < 0:
            segments.append(_Segment(first, end, None, len(nest.find_operations(first, end))))
            continue
        loop = nest.loop(int(terms.loop[index]))
        if loop.symbol in names:
            segments.append(_Segment(first, end, names[loop.symbol], len(loop.iterations)))
        else:
            segments += _fold_inner_loops(nest, loop.terms, names)
    return segments


def _measure_segments(
    nest: LoopNest, loop: str, segments: Sequence[_Segment], busy: _BusyTime, sequence: Mapping[str, Column]
) -> Iterable[dict[str, Any]]:
    """Return a row for each segment: how long it takes, and how long no GPU was busy before it."""
    latest_end: int | None = None
    for position, (first, end, inner_loop, repeats) in enumerate(segments):
        positions = nest.find_operations(first, end)
        is_operation = sequence["is_operation"][positions].astype(bool)
        starts, ends = sequence["start_ns"][positions], sequence["end_ns"][positions]
        gap_ns, duration_ns = 0, int((ends - starts).sum())
        if is_operation.any():
            start = int(starts[is_operation].min())
            if latest_end is not None and start > latest_end:
                gap_ns = start - latest_end - int(busy.measure(np.array([latest_end]), np.array([start]))[0])
            latest_end = max(latest_end or start, int(ends[is_operation].max()))
            duration_ns = int(sequence["gpu_ns"][positions].sum())
        yield {
            "loop": loop, "position": position, "inner_loop": inner_loop, "repeats": repeats, "first": first,
            "gap_ns": gap_ns, "duration_ns": duration_ns,
        }  # fmt: skip


class _BusyTime:
    """The time in which any GPU of the process was busy, except for operations that the column `excluded` marks."""

    def __init__(self, sequence: Mapping[str, Column], *, excluded: str | None = None) -> None:
        """Merge the operations into intervals that do not overlap."""
        is_counted = sequence["is_operation"].astype(bool)
        if excluded:
            is_counted &= ~sequence[excluded].astype(bool)
        start, end = sequence["start_ns"][is_counted], sequence["end_ns"][is_counted]
        np.maximum(end, start, out=end)
        # No operation is in progress when one starts if as many have ended before as have started.
        start.sort(kind="stable")
        end.sort(kind="stable")
        is_first = np.append(True, start[1:] > end[:-1])[: len(start)]
        start, end = start[is_first], end[np.append(is_first[1:], True)[: len(start)]]
        self._end, self._busy_before = end, add_up(end - start)

    def measure(self, start: Column, end: Column) -> Column:
        """Return the busy time from each start to the end."""
        return self._before(end) - self._before(start)

    def _before(self, moment: Column) -> Column:
        number = np.searchsorted(self._end, moment, side="right")
        if not len(self._end):
            return np.zeros(len(moment), np.int64)
        current = np.minimum(number, len(self._end) - 1)
        start = self._end[current] - (self._busy_before[current + 1] - self._busy_before[current])
        return self._busy_before[number] + np.where(number == current, np.maximum(moment - start, 0), 0)


def _reduce(
    operation: np.ufunc, values: Column, firsts: Column, ends: Column, dtype: type[np.int64] | None = None
) -> Column:
    """Reduce the values from each first up to the end, which is exclusive, after it, and not after the next first."""
    bounds = np.stack([firsts, ends], axis=1).ravel()
    bounds = bounds[:-1] if bounds[-1] == len(values) else bounds  # the last values are reduced up to their end
    reduced: Column = operation.reduceat(values, bounds, dtype=dtype)[::2]
    return reduced


def _sum(firsts: Column, ends: Column, values: Column, factors: Column | None = None) -> Column:
    """Add up values, or their products with factors, as `_reduce`: piece by piece, because NumPy copies them first."""
    pieces = min(1 + (int(ends[-1]) - int(firsts[0])) // OPERATIONS_PER_SUM, len(firsts))
    sums = []
    for first, end in zip(np.array_split(firsts, pieces), np.array_split(ends, pieces), strict=True):
        piece = slice(int(first[0]), int(end[-1]))
        addends = values[piece] if factors is None else values[piece] * factors[piece]
        sums.append(_reduce(np.add, addends, first - first[0], end - first[0], np.int64))
    return np.concatenate(sums)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Column]:
    """Return rows as columns: "" for text that is missing, NaN for numbers.

    Text has a text type: for each text among Python objects, DuckDB checks again whether pandas is installed.
    """
    columns = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        columns[name] = np.array(["" if value is None else value for value in values])
    return columns
