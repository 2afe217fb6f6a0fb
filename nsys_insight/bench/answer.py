"""A benchmark as an answer: what was measured, how it scatters, and what is decided."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.bench import verdict
from nsys_insight.bench.checks import Check, passed
from nsys_insight.bench.result import Bench, Series, Side, differing
from nsys_insight.bench.statistics import MOST_CV_PCT, Interval, center, spread
from nsys_insight.compare.comparison import WORTHWHILE_PCT
from nsys_insight.session.answer import Answer, Column, of_rows
from nsys_insight.text.units import Scale, scale_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_insight.bench.verdict import Verdict

_ONE = {
    "metric": "What was measured, with its unit in brackets",
    "better": "Whether higher or lower values are better, by unit and name, or as the user says; NULL if unknown",
    "middle": "Center: the Hodges-Lehmann estimate, the median of the means of all pairs",
    "low": "Lower end of its 95 % confidence interval; NULL for fewer than 6 repetitions",
    "high": "Where it ends",
    "count": "Repetitions",
    "cv_pct": "Coefficient of variation: sample standard deviation as a percentage of the mean",
    "mean": "Their mean",
    "least": "The smallest",
    "most": "The largest",
}
_TWO = {
    "metric": "What was measured, with its unit in brackets; the metric that decides is the first",
    "better": _ONE["better"],
    "before": "Center before the change: the median of the means of all pairs",
    "after": "The same after",
    "change_pct": "The change, as a percentage of before",
    "low_pct": (
        "Lower end of the interval of change_pct: 95 % confidence for the metric that decides, and "
        "for all others together; NULL for fewer than 6 repetitions"
    ),
    "high_pct": "Where it ends",
    "before_cv_pct": "Coefficient of variation before",
    "after_cv_pct": "The same after",
    "count": "Repetitions of each side",
    "verdict": "better, worse, changed (unknown which is better), noise (the interval holds 0, or sides measured"
    " apart differ by less than 2 %), refused (too much scatter or drift), unknown (too few repetitions)",
}
_KINDS = {"count": "BIGINT", **dict.fromkeys(("metric", "better", "verdict"), "VARCHAR")}
_DETAILS = {"mean", "least", "most", "before_cv_pct", "after_cv_pct", "count"}
ONE, TWO = (
    tuple(Column(name, _KINDS.get(name, "DOUBLE"), text, name in _DETAILS) for name, text in texts.items())
    for texts in (_ONE, _TWO)
)


@dataclass(frozen=True)
class Decision:
    """What is decided, and why."""

    word: str
    sentence: str
    verdicts: tuple[Verdict, ...]
    differing: dict[str, tuple[str, str]]


def decided(bench: Bench, checks: Sequence[Check], vary: Sequence[str] = ()) -> Decision:
    """Decide about the first metric of two sides; intervals of the others hold for all of them together."""
    before, after = bench.sides
    pairs = [(old, new) for new in after.series if (old := before.metric(new.name))]
    others = max(len(pairs) - 1, 1)
    verdicts = tuple(
        verdict.judge(
            old, new, turns=bench.turns,
            confidence=verdict.CONFIDENCE if not at else 1 - (1 - verdict.CONFIDENCE) / others,
        )
        for at, (old, new) in enumerate(pairs)
    )  # fmt: skip
    other = differing(before, after, vary)
    tests = passed(checks)
    if not verdicts:
        word, sentence = "unknown", "cannot be determined: no metric is in both"
    elif other and tests is not False:
        said = ", ".join(f"{name} {old} and {new}" for name, (old, new) in other.items())
        word, sentence = "unknown", f"cannot be determined: the workloads differ: {said}"
    else:
        word = verdict.decide(verdicts[0], tests=tests)
        sentence = _sentence(word, verdicts[0], pairs[0], checks)
    return Decision(word, sentence, verdicts, other)


def _sentence(word: str, found: Verdict, pair: tuple[Series, Series], checks: Sequence[Check]) -> str:
    """Say in one line what was decided."""
    if failed := [check for check in checks if not check.passed]:
        return f"revert: {failed[0].said}"
    said = {
        "accept": "accept",
        "unchecked": "faster, but correctness was not checked",
        "small": f"better, but by less than {WORTHWHILE_PCT:g} %",
        "revert": "revert",
        "indistinguishable": "indistinguishable",
        "refused": "no verdict",
        "unknown": "cannot be determined",
    }[word]
    old, new = pair
    numbers = _numbers(old, new, found)
    return f"{said}: {found.reason}; {numbers}" if found.reason else f"{said}: {numbers}"


def _numbers(old: Series, new: Series, found: Verdict) -> str:
    scale = scale_for(old.unit, [center(old.values).middle, center(new.values).middle])
    one, other = (Scale("", 1, scale.decimals).text(center(side.values).middle) for side in (old, new))
    unit = f" {new.unit}" if new.unit else ""
    change = "" if found.change_pct is None else f" ({found.change_pct:+.1f} %)"
    way = "unknown which direction is better" if new.better is None else f"{new.better} is better"
    return f"{new.name} {one} → {other}{unit}{change}, {way}"


def answer(bench: Bench, checks: Sequence[Check] = (), vary: Sequence[str] = ()) -> Answer:
    """The benchmark as a table with a sentence as its title."""
    summary: dict[str, Any] = {
        "conditions": bench.conditions,
        "gpus_before": list(bench.before),
        "gpus_after": list(bench.after),
        "sides": [
            {"label": side.label, "command": side.command, "parameters": side.parameters} for side in bench.sides
        ],
        "checks": [asdict(check) for check in checks],
        "tests_passed": passed(checks),
    }
    if len(bench.sides) == 1:
        columns, rows, title = ONE, [_row(one) for one in bench.side.series], _title(bench.side)
    else:
        found = decided(bench, checks, vary)
        summary |= {"decision": found.word, "different_parameters": found.differing}
        columns, title = TWO, found.sentence
        before, after = bench.sides
        rows = [_pair_row(before.metric(one.name), after.metric(one.name), one) for one in found.verdicts]
    return of_rows(
        columns,
        rows,
        report="bench",
        title=title,
        notes=tuple(notes(bench, checks)),
        summary=summary,
    )


def _title(side: Side) -> str:
    first = side.series[0]
    found = spread(first.values, first.clocks)
    if found.is_wide:
        looks = f": {'; '.join(found.causes)}" if found.causes else ", for no visible reason"
        return (
            f"{first.name} scatters by {found.cv_pct:.1f} %, more than the {MOST_CV_PCT:g} % that a baseline may{looks}"
        )
    return f"{side.label}: {len(first.values)} repetitions"


def notes(bench: Bench, checks: Sequence[Check], *, brief: bool = False) -> Iterator[str]:
    """Yield the notes below the numbers; `brief` leaves out the conditions and what the checks said."""
    if len(bench.sides) == 2:
        yield (
            "the two took turns, so anything that slows the machine slows both"
            if bench.turns
            else (
                "the two were measured one after the other: what the machine did in between is unknown, "
                "and less than 2 % does not count as a difference; bench --before CMD --after CMD takes turns"
            )
        )
    for side in bench.sides:
        for one in side.series:
            found, where = spread(one.values, one.clocks), f" {side.label}" if len(bench.sides) == 2 else ""
            wide = f"scatters by {found.cv_pct:.1f} %, more than {MOST_CV_PCT:g} %" if found.is_wide else ""
            if wide or found.causes:
                yield f"{one.name}{where}: {'; '.join(filter(None, [wide, *found.causes]))}"
    unknown = [one.name for one in bench.side.series if one.better is None]
    if unknown:
        names = ", ".join(unknown[:3])
        yield f"neither unit nor name says whether higher or lower {names} is better: --higher or --lower"
    parameters = {**bench.conditions, **bench.side.parameters}
    if parameters and not brief:
        yield "measured with " + ", ".join(f"{name} {value}" for name, value in parameters.items())
    yield from bench.notes
    yield from (check.said for check in checks if not brief)
    if len(bench.sides) == 2 and passed(checks) is None:
        yield "no test was run, so correctness was not checked: --test COMMAND or --compare-output A B"


def _row(one: Series) -> tuple[Any, ...]:
    found, middle = spread(one.values), center(one.values)
    return (
        one.label, one.better, middle.middle, *_known(middle), len(one.values), found.cv_pct, found.mean,
        min(one.values), max(one.values),
    )  # fmt: skip


def _pair_row(old: Series | None, new: Series | None, found: Verdict) -> tuple[Any, ...]:
    assert old is not None and new is not None  # noqa: S101, PT018 - a verdict is of both
    low, high = _known(found.change)
    return (
        new.label, new.better, center(old.values).middle, center(new.values).middle, found.change_pct,
        None if low is None else 100 * low, None if high is None else 100 * high, spread(old.values).cv_pct,
        spread(new.values).cv_pct, min(len(old.values), len(new.values)), found.word,
    )  # fmt: skip


def _known(found: Interval | None) -> tuple[float | None, float | None]:
    """The ends of an interval, where it has some."""
    return (None, None) if found is None or found.reach == float("inf") else (found.low, found.high)
