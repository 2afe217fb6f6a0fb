"""Compare runs before and after a change, row by row, and decide whether to keep it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING

from nsys_insight.compare import phases
from nsys_insight.compare.direction import direction
from nsys_insight.compare.kernel_identity import match
from nsys_insight.compare.noise import Difference, Samples, differences
from nsys_insight.compare.runs import HEADLINE, PEAK_MEMORY, Side
from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_insight.compare.direction import Better
    from nsys_insight.compare.kernel_identity import Match
    from nsys_insight.compare.runs import Run

# Larger gains are worth a change.
WORTHWHILE_PCT = 3.0
# Times of single runs that differ by less are no difference: in two runs of one program on one machine (decode_eager,
# 32 steps), kernels whose own spread was 1 % differed by up to 1.4 %.
LEAST_PCT = 2.0
# A time that changed by less than this share of the step is little.
LITTLE_PCT = 1.0
# Neither higher nor lower is better: a fused kernel takes longer than each kernel that it replaces.
NEUTRAL = {"kernel_avg_ns", "kernel_med_ns", "graph_launches"}
# Tokens per second, from the wall time.
THROUGHPUT = "tokens_per_s"
MOVED = ("improved", "regressed", "new", "gone", "changed")
# Most kernels that a change leaves run as often in a step as before. If they run this much more often, a step of one
# run is several of the other's, such as a layer and a token.
MORE_OFTEN = 1.5
# Without a kernel in both, one step may not have this many times the kernels of the other.
MORE_KERNELS = 4.0


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        part: What is compared: "run" (a metric of the whole step), "phase", "family", "kernel" or "benchmark".
        name: Of which phase, kernel, family or benchmark; None for the whole step.
        metric: What of it.
        difference: Both sides, and the interval.
        verdict: improved, regressed, changed (of what is neither better nor worse, of a metric of which it is not
            known, and of a kernel that took the place of a faster one), little (a time that differs by less than
            LITTLE_PCT of the step), noise, new, gone; None where it cannot be determined, for a side is not known or
            was measured once.
        match: How kernels were paired, as in `nsys_insight.compare.kernel_identity.Match`.
        calls: How many of the kernel a step launches, before and after.
        registers: The most registers of the kernel, before and after.
        better: Whether "higher" or "lower" is better; None if neither is, or if it is not known.
    """

    part: str
    name: str | None
    metric: str
    difference: Difference
    verdict: str | None = None
    match: str | None = None
    calls: tuple[float | None, float | None] = (None, None)
    registers: tuple[int | None, int | None] = (None, None)
    better: Better | None = "lower"

    @property
    def before(self) -> float | None:
        """The mean before."""
        return self.difference.before.mean if self.difference.before else None

    @property
    def after(self) -> float | None:
        """The mean after."""
        return self.difference.after.mean if self.difference.after else None

    def pct(self, value: float | None) -> float | None:
        """A difference as a percentage of what was before; None where that is 0 or unknown."""
        return 100 * value / abs(self.before) if value is not None and self.before else None

    @property
    def delta_pct(self) -> float | None:
        """The difference of the means as a percentage."""
        return self.pct(self.difference.delta)


@dataclass(frozen=True)
class Comparison:
    """What two sides differ in.

    Attributes:
        before: The runs before.
        after: The runs after.
        rows: All rows: of the whole step in the order of a budget, families and kernels by how much they moved.
        by_run: Whether noise is told from several runs of each side, or from the steps of one.
    """

    before: Sequence[Run]
    after: Sequence[Run]
    rows: Sequence[Row]
    by_run: bool

    @cached_property
    def headline(self) -> list[Row]:
        """The rows that decide."""
        return [row for row in self.rows if row.part == "benchmark" or (row.part == "run" and row.metric == HEADLINE)]

    @cached_property
    def decision(self) -> str:
        """`revert` if a headline row is worse, `accept` if one is better by a worthwhile amount, `small` if by less;
        else `indistinguishable`, or `unknown` where noise cannot be determined.
        """  # noqa: D205 - one sentence
        verdicts = {row.verdict for row in self.headline}
        if "regressed" in verdicts:
            return "revert"
        better = [abs(row.delta_pct or 0) for row in self.headline if row.verdict == "improved"]
        if better:
            return "accept" if max(better) > WORTHWHILE_PCT else "small"
        return "indistinguishable" if "noise" in verdicts else "unknown"

    @cached_property
    def unit(self) -> str:
        """What the numbers are per."""
        return self.after[0].unit

    def moved(self, *verdicts: str) -> list[Row]:
        """The rows with one of these verdicts that do not decide."""
        return [row for row in self.rows if row.verdict in verdicts and row not in self.headline]


def compare(before: Sequence[Run], after: Sequence[Run]) -> Comparison:
    """Compare the runs of two sides.

    Where both sides have several runs, a run is what is measured once; else a step is.

    Raises:
        UsageError: The runs are not of one kind, or their steps are not the same work.
    """
    kinds = {run.unit for run in (*before, *after)}
    if len(kinds) > 1:
        raise UsageError(
            f"these cannot be compared, because their figures are per {' and per '.join(sorted(kinds))}",
            "give two traces, two saved runs of the same kind, or two benchmark files",
        )
    if other := different_work(before, after):
        raise UsageError(
            f"the steps of these runs do different work: {other}",
            "define a step with --step-range NAME or --tokens N, for both sides",
        )
    by_run = min(len(before), len(after)) > 1
    if kinds == {"run"}:
        rows = _benchmarks(before, after, by_run=by_run)
    else:
        sides = (Side.of(before, by_run=by_run), Side.of(after, by_run=by_run))
        rows = [*_metrics(*sides)]
        rows += [Row("phase", *found) for found in phases.pairs(before, after, by_run=by_run)]
        if all(run.kernels is not None for run in (*before, *after)):
            matches = match(sides[0].kernels, sides[1].kernels, (before[0].sequence, after[0].sequence))
            rows += [*_families(*sides), *_kernels(*sides, matches)]
    judged = _with_verdicts(rows, single=not by_run)
    if kinds <= {"token", "step"}:
        judged[1:1] = [_throughput(row) for row in judged[:1] if row.metric == HEADLINE and row.before and row.after]
    return Comparison(before, after, judged, by_run)


def _throughput(wall: Row) -> Row:
    """The tokens of a second, as per-token states them: those of the mean wall, and of its interval's ends."""
    (before, after), low, high = (wall.before or 0, wall.after or 0), wall.difference.low, wall.difference.high
    rates = [1e9 / value for value in (before, after)]
    ends = [None if off is None or before + off <= 0 else 1e9 / (before + off) - rates[0] for off in (high, low)]
    found = Difference(Samples((rates[0],)), Samples((rates[1],)), *(ends if None not in ends else ()))
    return Row("run", None, THROUGHPUT, found, wall.verdict, better="higher")


def _metrics(before: Side, after: Side) -> Iterable[Row]:
    names = dict.fromkeys(name for side in (before, after) for run in side.runs for name in run.metrics)
    for name in names:
        # A budget is of what a step costs, unless it says otherwise.
        better = None if name in NEUTRAL else direction(name) or "lower"
        yield Row("run", None, name, Difference(before.metric(name), after.metric(name)), better=better)
    peaks = before.peak_memory(), after.peak_memory()
    if all(peaks):
        yield Row("run", None, PEAK_MEMORY, Difference(*peaks))


def _families(before: Side, after: Side) -> Iterable[Row]:
    sides = (before, after)
    for family in sorted({kernel.family for side in sides for kernel in side.kernels.values()}):
        names = [[name for name, kernel in side.kernels.items() if kernel.family == family] for side in sides]
        yield _kernel_row("family", family, sides, names, None)


def _kernels(before: Side, after: Side, matches: Iterable[Match]) -> Iterable[Row]:
    for found in matches:
        yield _kernel_row("kernel", found.name, (before, after), (found.before, found.after), found.how)


def _kernel_row(part: str, name: str, sides: tuple[Side, Side], names: Sequence[Sequence[str]], how: str | None) -> Row:
    times = [side.time_of(of_side) for side, of_side in zip(sides, names, strict=True)]
    calls = [sum(side.kernels[name].calls for name in of_side) for side, of_side in zip(sides, names, strict=True)]
    registers = [
        max((side.kernels[name].registers or 0 for name in of_side), default=0) or None
        for side, of_side in zip(sides, names, strict=True)
    ]
    verdict = "new" if not names[0] else "gone" if not names[1] else None
    return Row(
        part, name, "kernel_ns", Difference(times[0], times[1]), verdict, how, (calls[0], calls[1]),
        (registers[0], registers[1]) if part == "kernel" else (None, None),
    )  # fmt: skip


def _benchmarks(before: Sequence[Run], after: Sequence[Run], *, by_run: bool) -> list[Row]:
    """Pair benchmarks by their names; the only one of each side, which may be called by its command, with the other."""
    sides = (Side(before, by_run), Side(after, by_run))
    names = [list(dict.fromkeys(name for run in side.runs for name in run.metrics)) for side in sides]
    if len(names[0]) == len(names[1]) == 1:
        pairs = [(names[0][0], names[1][0])]
    else:
        pairs = [(name, name) for name in dict.fromkeys([*names[0], *names[1]])]
    rows = []
    for old, new in pairs:
        sampled = Difference(sides[0].metric(old), sides[1].metric(new))
        name, _, metric = new.rpartition(": ")
        verdict = "new" if old not in names[0] else "gone" if new not in names[1] else None
        told = next((run.better[new] for run in (*after, *before) if new in run.better), None) or direction(new)
        better = None if metric in NEUTRAL else told
        rows.append(Row("benchmark", name or None, metric, sampled, verdict, better=better))
    return rows


def _with_verdicts(rows: list[Row], *, single: bool) -> list[Row]:
    """Find the intervals, those of the headline and the phases apart from the others', and give verdicts; order what
    moved.
    """  # noqa: D205 - one sentence
    first = [row for row in rows if _comes_first(row)]
    walls = [row.before for row in first if row.part != "phase" and row.metric == HEADLINE and row.before]
    little = LITTLE_PCT / 100 * min(walls, default=0.0)
    judged = []
    for asked in (first, [row for row in rows if row not in first]):
        pairs = [(row.difference.before, row.difference.after) for row in asked]
        for row, found in zip(asked, differences(pairs), strict=True):
            sure = replace(row, difference=found)
            verdict = row.verdict or _verdict(sure, single=single)
            judged.append(replace(sure, verdict=_little_or_verdict(replace(sure, verdict=verdict), little)))
    parts = ("benchmark", "run", "phase", "family", "kernel")
    ordered = ("run", "benchmark", "phase")
    place = {(row.name, row.metric): at for at, row in enumerate(rows) if row.part in ordered}
    return sorted(
        judged,
        key=lambda row: (
            parts.index(row.part),
            place.get((row.name, row.metric), 0),
            row.part == "kernel" and row.verdict not in MOVED,
            0 if row.part in ordered else -abs(row.difference.delta or 0),
            row.name or "",
        ),
    )


def _comes_first(row: Row) -> bool:
    if row.part == "phase":
        return phases.decides(row.name or "", row.metric)
    return row.part == "benchmark" or (row.part == "run" and row.metric == HEADLINE)


def _little_or_verdict(row: Row, little_ns: float) -> str | None:
    """The verdict of a row; `little` if a time changed by less than `little_ns`."""
    judged = row.verdict in ("improved", "regressed") and row.metric.endswith("_ns") and row.metric != HEADLINE
    if judged and row.part != "benchmark" and abs(row.difference.delta or 0) < little_ns:
        return "little"
    return "changed" if row.verdict == "regressed" and row.match == "guess" else row.verdict


def _verdict(row: Row, *, single: bool) -> str | None:
    delta = row.difference.delta
    if delta is None:
        return None
    if row.metric == PEAK_MEMORY:
        is_real = abs(row.delta_pct or 100 * (delta != 0)) > max(LEAST_PCT, abs(row.pct(row.difference.spread) or 0))
    elif row.difference.low is None:
        return None
    else:
        small = single and row.metric.endswith("_ns") and abs(row.delta_pct or 100) < LEAST_PCT
        is_real = row.difference.is_real and not small
    if not is_real:
        return "noise"
    if row.better is None:
        return "changed"
    return "improved" if (delta > 0) == (row.better == "higher") else "regressed"


def different_work(before: Sequence[Run], after: Sequence[Run]) -> str | None:
    """Why the steps of two sides are different work; None if they are the same, or if the traces do not show it."""
    for old in before:
        for new in after:
            if old.unit not in ("step", "token") or old.kernels is None or new.kernels is None:
                continue
            said = _different_work(old, new)
            if said:
                return said
    return None


def _different_work(old: Run, new: Run) -> str | None:
    before, after = _calls_per_step(old), _calls_per_step(new)
    common = [after[name] / before[name] for name in before.keys() & after.keys() if before[name] and after[name]]
    if common:
        ratio = median(common)
        more, less = (new, old) if ratio > 1 else (old, new)
        times = max(ratio, 1 / ratio)
        if times < MORE_OFTEN:
            return None
        return f"the same kernels run {times:.3g} times as often in a step of {more.label} as in one of {less.label}"
    counts = sum(before.values()), sum(after.values())
    if not all(counts) or max(counts) < MORE_KERNELS * min(counts):
        return None
    return (
        f"no kernel is in both, and a step of {old.label} has {counts[0]:.4g} kernels,"
        f" one of {new.label} {counts[1]:.4g}"
    )


def _calls_per_step(run: Run) -> dict[str, float]:
    """How often each kernel runs in a step."""
    return {name: kernel.calls * run.tokens_per_step for name, kernel in (run.kernels or {}).items()}
