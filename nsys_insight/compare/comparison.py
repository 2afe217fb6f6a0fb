"""Compare runs before and after a change, row by row, and decide whether to keep it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, median
from typing import TYPE_CHECKING

from nsys_insight.compare import members, phases
from nsys_insight.compare.direction import Better, infer_direction
from nsys_insight.compare.kernel_identity import CALLS_TOLERANCE, Match, match_kernels
from nsys_insight.compare.noise import Difference, Samples, compute_differences
from nsys_insight.compare.runs import HEADLINE, PEAK_MEMORY, Run, Side
from nsys_insight.compare.step_times import WITHOUT_NSYS, measure_per_unit
from nsys_insight.compare.verdict import MIN_CHANGE_PCT, Decision, Verdict, decide, judge_direction
from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# A time that changed by less than this percentage of the step is `little`.
LITTLE_PCT = 1.0
# Metrics without a better direction: a fused kernel takes longer than each kernel that it replaces.
NEUTRAL = {"kernel_avg_ns", "kernel_med_ns", "graph_launches"}
# Clocks whose means differ by at least this percentage make times incomparable. Samples of one program on one machine
# differed by 0.1%.
MIN_CLOCK_PCT = 2.0
# Tokens per second, calculated from the wall time.
THROUGHPUT = "tokens_per_s"
SIGNIFICANT_VERDICTS = (Verdict.IMPROVED, Verdict.REGRESSED, Verdict.NEW, Verdict.MISSING, Verdict.DIFFERENT)
# Most kernels that a change does not touch run equally often in a step before and after. If their calls per step differ
# by this factor, the steps are different units of work, such as a layer and a token. Then it is the same factor, within
# MAX_RATIO_DEVIATION, for most kernels. A change that divides some work into chunks leaves other kernels as they were.
MIN_CALLS_RATIO = 1.5
MAX_RATIO_DEVIATION = 0.1
MIN_SAME_RATIO_SHARE = 0.75
# With an input of another size, most kernels run as often, on more or on fewer threads: by this factor at least. A
# change of the program does that to a few kernels, so with few kernels it is unknown.
MIN_THREADS_RATIO = 1.2
MIN_INPUT_KERNELS = 4
# If the runs have no kernel in common, the steps are different work if their kernel counts differ by this factor.
MIN_KERNELS_RATIO = 4.0


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        part: Subject of the row: "run" (a metric of the entire step), "phase", "rank" (or process), "collective",
            "family", "kernel" or "benchmark".
        name: Name of the phase, rank, collective, kernel, family or benchmark; None for the entire step.
        metric: The compared metric.
        difference: Samples of both sides, and the interval of the difference.
        verdict: improved, regressed, changed (the metric has no better direction or an unknown one, the kernel
            replaced a faster one, or the inputs have different sizes), negligible (a time that differs by less than
            LITTLE_PCT of the step), noise, new, gone; None if it cannot be determined, because a side is unknown or was
            measured once.
        match: How kernels were paired, as in `nsys_insight.compare.kernel_identity.Match`.
        calls: Calls of the kernel per step, before and after.
        registers: Maximum registers per thread of the kernel, before and after.
        better: Whether "higher" or "lower" is better; None if neither is, or if it is unknown.
        is_headline: Whether the row decides.
    """

    part: str
    name: str | None
    metric: str
    difference: Difference
    verdict: Verdict | None = None
    match: str | None = None
    calls: tuple[float | None, float | None] = (None, None)
    registers: tuple[int | None, int | None] = (None, None)
    better: Better | None = "lower"
    is_headline: bool = False

    @property
    def before(self) -> float | None:
        """Return the mean before."""
        return self.difference.before.mean if self.difference.before else None

    @property
    def after(self) -> float | None:
        """Return the mean after."""
        return self.difference.after.mean if self.difference.after else None

    def pct(self, value: float | None) -> float | None:
        """Return a difference as a percentage of the mean before; None if that is 0 or unknown."""
        return 100 * value / abs(self.before) if value is not None and self.before else None

    @property
    def delta_pct(self) -> float | None:
        """Return the difference of the means as a percentage of the mean before."""
        return self.pct(self.difference.delta)


@dataclass(frozen=True)
class Comparison:
    """The differences between two sides.

    Attributes:
        before: The runs before.
        after: The runs after.
        rows: All rows. Those of the entire step are in the order of a budget, families and kernels by size of change.
        by_run: Whether noise comes from several runs of each side, instead of the steps of one run.
        other_input: Why the runs had inputs of different sizes; None if they had not, or if it is unknown.
    """

    before: Sequence[Run]
    after: Sequence[Run]
    rows: Sequence[Row]
    by_run: bool
    other_input: str | None = None

    @cached_property
    def headline(self) -> list[Row]:
        """Return the rows that decide."""
        return [row for row in self.rows if row.is_headline]

    @cached_property
    def main_row(self) -> Row | None:
        """Return the row that the decision names: the largest change with its verdict."""
        verdict = Verdict.REGRESSED if self.decision is Decision.REVERT else Verdict.IMPROVED
        rows = [row for row in self.headline if row.verdict is verdict] or self.headline
        return max(rows, key=lambda row: abs(row.delta_pct or 0), default=None)

    @cached_property
    def decision(self) -> Decision:
        """Return the decision by the headline. A comparison has no tests that could fail."""
        return decide([(row.verdict, row.delta_pct) for row in self.headline])

    @cached_property
    def unit(self) -> str:
        """Return the unit of work of the numbers."""
        return self.after[0].unit

    def rows_with_verdict(self, *verdicts: Verdict) -> list[Row]:
        """Return the rows with one of these verdicts, without the headline rows."""
        return [row for row in self.rows if row.verdict in verdicts and row not in self.headline]


def compare(
    before: Sequence[Run],
    after: Sequence[Run],
    *,
    step_times_ns: tuple[int, int] | None = None,
    has_same_input: bool = False,
) -> Comparison:
    """Compare the runs of two sides.

    If both sides have several runs, a sample is a run. Otherwise a sample is a step.

    Args:
        before: The runs before.
        after: The runs after.
        step_times_ns: Times of a step without nsys, before and after, as measured: they decide.
        has_same_input: Whether the inputs are known to be the same, as for a budget: other grids are a change of the
            program.

    Raises:
        UsageError: The runs have different units, their steps do different work, or the measured times are not of
            these steps.
    """
    kinds = {run.unit for run in (*before, *after)}
    if len(kinds) > 1:
        raise UsageError(
            f"these cannot be compared, because their figures are per {' and per '.join(sorted(kinds))}",
            "give two traces, two saved runs of the same kind, or two benchmark files",
        )
    if reason := explain_different_work(before, after):
        raise UsageError(
            f"a step is another level than saved, or does other work: {reason}",
            "nsys-insight loops lists the levels: choose the same on both sides with --loop, --step-range or --tokens",
        )
    by_run = min(len(before), len(after)) > 1
    measured_difference = measure_per_unit(before, after, step_times_ns) if step_times_ns else None
    if kinds == {"run"}:
        rows = _benchmark_rows(before, after, by_run=by_run)
    else:
        sides = (Side.pool(before, by_run=by_run), Side.pool(after, by_run=by_run))
        has_same_main = members.has_same_main_member(before, after)
        rows = [*_metric_rows(*sides)] if has_same_main else []
        if has_same_main:
            rows += [Row("phase", *phase) for phase in phases.pair_phases(before, after, by_run=by_run)]
        rows += [Row("rank", *row) for row in members.compare_members(before, after, by_run=by_run)]
        rows += [Row("collective", *row) for row in members.compare_collectives(before, after, by_run=by_run)]
        if has_same_main and all(run.kernels is not None for run in (*before, *after)):
            matches = match_kernels(sides[0].kernels, sides[1].kernels, (before[0].sequence, after[0].sequence))
            rows += [*_family_rows(*sides), *_kernel_rows(*sides, matches)]
    if measured_difference:
        rows.insert(1, Row("run", None, WITHOUT_NSYS, measured_difference))
    headline = _choose_headline(rows, before, after)
    judged_rows = _assign_verdicts([replace(row, is_headline=row in headline) for row in rows], single=not by_run)
    if find_clocks(before, after):
        judged_rows = [
            replace(row, verdict=None) if row.metric.endswith("_ns") and row.metric != WITHOUT_NSYS else row
            for row in judged_rows
        ]
    if kinds <= {"token", "step"}:
        place = 2 if measured_difference else 1
        judged_rows[place:place] = [
            _throughput_row(row)
            for row in judged_rows[place - 1 : place]
            if row.part == "run" and row.metric in (HEADLINE, WITHOUT_NSYS) and row.before and row.after
        ]
    other_input = None if has_same_input else explain_other_input(before, after)
    if other_input:
        judged_rows = [
            replace(row, verdict=Verdict.DIFFERENT) if row.verdict in (Verdict.IMPROVED, Verdict.REGRESSED) else row
            for row in judged_rows
        ]
    return Comparison(before, after, judged_rows, by_run, other_input)


def find_clocks(before: Sequence[Run], after: Sequence[Run]) -> tuple[float, float] | None:
    """Return the mean clocks of the SMs of both sides in Hz, if they differ; None if not, or if one is unknown."""
    sides = [[run.clock_hz for run in side if run.clock_hz] for side in (before, after)]
    if not all(sides):
        return None
    old, new = (fmean(side) for side in sides)
    return (old, new) if abs(new - old) >= MIN_CLOCK_PCT / 100 * old else None


def _choose_headline(rows: Sequence[Row], before: Sequence[Run], after: Sequence[Run]) -> list[Row]:
    """Choose the rows that decide: the step time.

    If the steps are of several phases of a server, it is that of each phase: their mean depends on how many of each
    there were. If processes do different work, it is that of each process. A time that was measured without nsys
    decides alone.
    """
    if measured_rows := [row for row in rows if row.metric == WITHOUT_NSYS]:
        return measured_rows
    runs = (*before, *after)
    walls = [row for row in rows if row.metric == HEADLINE]
    of_phases = [row for row in walls if row.part == "phase" and phases.is_serving(row.name or "")]
    if len(of_phases) > 1 and not all(map(phases.find_main_phase, runs)):
        return of_phases
    of_members = [row for row in walls if row.part == "rank"]
    if of_members and any(run.is_mixed for run in runs):
        return of_members
    return [row for row in rows if row.part == "benchmark"] or [row for row in walls if row.part == "run"]


def _throughput_row(wall: Row) -> Row:
    """Return the row of tokens per second, as in per-token: from the mean wall time and the ends of its interval."""
    (before, after), low, high = (wall.before or 0, wall.after or 0), wall.difference.low, wall.difference.high
    rates = [1e9 / value for value in (before, after)]
    interval_offsets = [
        None if off is None or before + off <= 0 else 1e9 / (before + off) - rates[0] for off in (high, low)
    ]
    difference = Difference(
        Samples((rates[0],)), Samples((rates[1],)), *(interval_offsets if None not in interval_offsets else ())
    )
    return Row("run", None, THROUGHPUT, difference, wall.verdict, better="higher")


def _metric_rows(before: Side, after: Side) -> Iterable[Row]:
    names = dict.fromkeys(name for side in (before, after) for run in side.runs for name in run.metrics)
    for name in names:
        # The metrics of a budget are costs, unless their name implies otherwise.
        better = None if name in NEUTRAL else infer_direction(name) or "lower"
        yield Row("run", None, name, Difference(before.metric(name), after.metric(name)), better=better)
    peaks = before.peak_memory(), after.peak_memory()
    if all(peaks):
        yield Row("run", None, PEAK_MEMORY, Difference(*peaks))


def _family_rows(before: Side, after: Side) -> Iterable[Row]:
    sides = (before, after)
    for family in sorted({kernel.family for side in sides for kernel in side.kernels.values()}):
        names = [[name for name, kernel in side.kernels.items() if kernel.family == family] for side in sides]
        yield _make_kernel_row("family", family, sides, names, None)


def _kernel_rows(before: Side, after: Side, matches: Iterable[Match]) -> Iterable[Row]:
    for match in matches:
        yield _make_kernel_row("kernel", match.name, (before, after), (match.before, match.after), match.paired_by)


def _make_kernel_row(
    part: str, name: str, sides: tuple[Side, Side], names: Sequence[Sequence[str]], paired_by: str | None
) -> Row:
    times = [side.sum_times(side_names) for side, side_names in zip(sides, names, strict=True)]
    calls = [
        sum(side.kernels[name].calls for name in side_names) for side, side_names in zip(sides, names, strict=True)
    ]
    registers = [
        max((side.kernels[name].registers or 0 for name in side_names), default=0) or None
        for side, side_names in zip(sides, names, strict=True)
    ]
    verdict = Verdict.NEW if not names[0] else Verdict.MISSING if not names[1] else None
    return Row(
        part, name, "kernel_ns", Difference(times[0], times[1]), verdict, paired_by, (calls[0], calls[1]),
        (registers[0], registers[1]) if part == "kernel" else (None, None),
    )  # fmt: skip


def _benchmark_rows(before: Sequence[Run], after: Sequence[Run], *, by_run: bool) -> list[Row]:
    """Pair benchmarks by name. If each side has only one, pair these two: their names may be their commands."""
    sides = (Side(before, by_run), Side(after, by_run))
    names = [list(dict.fromkeys(name for run in side.runs for name in run.metrics)) for side in sides]
    if len(names[0]) == len(names[1]) == 1:
        pairs = [(names[0][0], names[1][0])]
    else:
        pairs = [(name, name) for name in dict.fromkeys([*names[0], *names[1]])]
    rows = []
    for old, new in pairs:
        difference = Difference(sides[0].metric(old), sides[1].metric(new))
        name, _, metric = new.rpartition(": ")
        verdict = Verdict.NEW if old not in names[0] else Verdict.MISSING if new not in names[1] else None
        known_direction = next(
            (run.better[new] for run in (*after, *before) if new in run.better), None
        ) or infer_direction(new)
        better = None if metric in NEUTRAL else known_direction
        rows.append(Row("benchmark", name or None, metric, difference, verdict, better=better))
    return rows


def _assign_verdicts(rows: list[Row], *, single: bool) -> list[Row]:
    """Compute intervals, assign verdicts and sort the rows.

    The intervals of the headline and the phases are computed separately from those of the other rows.
    """
    deciding_rows = [row for row in rows if _is_deciding(row)]
    walls = [row.before for row in deciding_rows if row.part != "phase" and row.metric == HEADLINE and row.before]
    little_ns = LITTLE_PCT / 100 * min(walls, default=0.0)
    judged_rows = []
    for tested_rows in (deciding_rows, [row for row in rows if row not in deciding_rows]):
        pairs = [(row.difference.before, row.difference.after) for row in tested_rows]
        for row, difference in zip(tested_rows, compute_differences(pairs), strict=True):
            tested_row = replace(row, difference=difference)
            verdict = row.verdict or _find_verdict(tested_row, single=single)
            judged_rows.append(
                replace(tested_row, verdict=_adjust_verdict(replace(tested_row, verdict=verdict), little_ns))
            )
    part_order = ("benchmark", "run", "phase", "rank", "collective", "family", "kernel")
    parts_in_given_order = part_order[:5]
    positions = {
        (row.part, row.name, row.metric): index for index, row in enumerate(rows) if row.part in parts_in_given_order
    }
    return sorted(
        judged_rows,
        key=lambda row: (
            part_order.index(row.part),
            positions.get((row.part, row.name, row.metric), 0),
            row.part == "kernel" and row.verdict not in SIGNIFICANT_VERDICTS,
            0 if row.part in parts_in_given_order else -abs(row.difference.delta or 0),
            row.name or "",
        ),
    )


def _is_deciding(row: Row) -> bool:
    if row.part == "phase":
        return phases.is_deciding(row.name or "", row.metric)
    return row.is_headline or (row.part == "run" and row.metric == HEADLINE)


def _adjust_verdict(row: Row, little_ns: float) -> Verdict | None:
    """Return the final verdict: `little` for small changes of a time, `changed` for a guessed pair of kernels."""
    is_changed_time = (
        row.verdict in (Verdict.IMPROVED, Verdict.REGRESSED) and row.metric.endswith("_ns") and row.metric != HEADLINE
    )
    if is_changed_time and row.part != "benchmark" and abs(row.difference.delta or 0) < little_ns:
        return Verdict.NEGLIGIBLE
    return Verdict.DIFFERENT if row.verdict is Verdict.REGRESSED and row.match == "guess" else row.verdict


def _find_verdict(row: Row, *, single: bool) -> Verdict | None:
    delta = row.difference.delta
    if delta is None:
        return None
    if row.metric == WITHOUT_NSYS:
        is_real = abs(row.delta_pct or 0) >= MIN_CHANGE_PCT
    elif row.metric == PEAK_MEMORY:
        is_real = abs(row.delta_pct or 100 * (delta != 0)) > max(
            MIN_CHANGE_PCT, abs(row.pct(row.difference.spread) or 0)
        )
    elif row.difference.low is None:
        return None
    else:
        is_within_run_noise = single and row.metric.endswith("_ns") and abs(row.delta_pct or 100) < MIN_CHANGE_PCT
        is_real = row.difference.is_real and not is_within_run_noise
    if not is_real:
        return Verdict.NOISE
    return judge_direction(delta, row.better)


def explain_different_work(before: Sequence[Run], after: Sequence[Run]) -> str | None:
    """Explain why the steps of two sides are different work; None if they are not, or if it is unknown."""
    if not members.has_same_main_member(before, after):
        return None
    for old in before:
        for new in after:
            if old.unit not in ("step", "token") or old.kernels is None or new.kernels is None:
                continue
            reason = _explain_pair(old, new)
            if reason:
                return reason
    return None


def _explain_pair(old: Run, new: Run) -> str | None:
    before, after = _calls_per_step(old), _calls_per_step(new)
    ratios = [after[name] / before[name] for name in before.keys() & after.keys() if before[name] and after[name]]
    if ratios:
        ratio = median(ratios)
        run_with_longer_steps, run_with_shorter_steps = (new, old) if ratio > 1 else (old, new)
        factor = max(ratio, 1 / ratio)
        similar_ratios = [value for value in ratios if abs(value / ratio - 1) <= MAX_RATIO_DEVIATION]
        if factor < MIN_CALLS_RATIO or len(similar_ratios) < MIN_SAME_RATIO_SHARE * len(ratios):
            return None
        return (
            f"the same kernels run {factor:.3g} times as often in a step of {run_with_longer_steps.label}"
            f" as in one of {run_with_shorter_steps.label}"
        )
    counts = sum(before.values()), sum(after.values())
    if not all(counts) or max(counts) < MIN_KERNELS_RATIO * min(counts):
        return None
    return (
        f"no kernel is in both, and a step of {old.label} has {counts[0]:.4g} kernels,"
        f" one of {new.label} {counts[1]:.4g}"
    )


def explain_other_input(before: Sequence[Run], after: Sequence[Run]) -> str | None:
    """Explain why the runs had inputs of different sizes; None if they had not, or if it is unknown."""
    for old in before:
        for new in after:
            ratios = _thread_ratios(old, new)
            larger = [ratio for ratio in ratios if ratio >= MIN_THREADS_RATIO]
            smaller = [ratio for ratio in ratios if ratio <= 1 / MIN_THREADS_RATIO]
            changed_ratios = max(larger, smaller, key=len)
            if len(ratios) >= MIN_INPUT_KERNELS and len(changed_ratios) >= MIN_SAME_RATIO_SHARE * len(ratios):
                return (
                    f"{len(changed_ratios)} of {len(ratios)} kernels that run equally often have"
                    f" {median(changed_ratios):.3g} times as many threads in {new.label} as in {old.label}"
                )
    return None


def _thread_ratios(old: Run, new: Run) -> list[float]:
    """Return the threads after by those before, of each kernel that runs equally often in both."""
    pairs = [(kernel, (new.kernels or {}).get(name)) for name, kernel in (old.kernels or {}).items()]
    return [
        after.threads / before.threads
        for before, after in pairs
        if after and before.threads and after.threads
        if abs(after.calls - before.calls) <= CALLS_TOLERANCE * before.calls
    ]


def _calls_per_step(run: Run) -> dict[str, float]:
    return {name: kernel.calls * run.tokens_per_step for name, kernel in (run.kernels or {}).items()}
