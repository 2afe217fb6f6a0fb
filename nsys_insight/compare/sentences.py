"""What is said of a comparison: the decision in a line, and what it would take to decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.compare.comparison import WORTHWHILE_PCT
from nsys_insight.compare.noise import runs_needed
from nsys_insight.text import units

if TYPE_CHECKING:
    from nsys_insight.compare.comparison import Comparison


def quantity(metric: str, *values: float | None) -> list[str]:
    """Write values of a metric in one unit, each with it."""
    return units.values(metric, values)


def sentence(comparison: Comparison) -> str:
    """Say what was decided, in one line."""
    said = {
        "accept": "accept",
        "revert": "revert",
        "small": f"better, but by less than {WORTHWHILE_PCT:g} %",
        "indistinguishable": "indistinguishable",
        "unknown": "cannot be determined",
    }[comparison.decision]
    rows = comparison.headline
    if len(rows) > 1:
        decides = "regressed" if comparison.decision == "revert" else "improved"
        rows = sorted(
            [row for row in rows if row.verdict == decides] or rows, key=lambda row: -abs(row.delta_pct or 0)
        )[:1]
    if not rows:
        return said
    row = rows[0]
    before, after = quantity(row.metric, row.before, row.after)
    what = " ".join(filter(None, (row.name, units.label_of(row.metric))))
    change = f" ({row.delta_pct:+.1f} %)" if row.delta_pct is not None else ""
    per = "" if comparison.unit == "run" else f" per {comparison.unit}"
    return f"{said}: {what} {before} → {after}{per}{change}"


def needs(comparison: Comparison) -> str | None:
    """Say of an indistinguishable difference what it would take to tell it, and what would have shown."""
    if comparison.decision not in ("indistinguishable", "unknown") or not comparison.headline:
        return None
    unclear = [row.metric for row in comparison.headline if row.verdict == "changed" and row.better is None]
    if comparison.decision == "unknown" and unclear:
        return (
            f"neither name nor unit says whether higher or lower {unclear[0]} is better: use"
            f" --higher or --lower {unclear[0].partition(' [')[0]}"
        )
    row = comparison.headline[0]
    found = row.difference
    if comparison.decision == "unknown" or found.low is None or found.high is None or not row.before:
        return (
            "one measurement of each side cannot distinguish a difference from noise: give several runs of "
            "each, --before a1 a2 a3 --after b1 b2 b3, or define a step (see nsys-insight steps)"
        )
    shown = row.pct(max(found.spread, (found.high - found.low) / 2)) or 0
    if shown > 100:
        return "there are too few steps, or they vary too much, for a decision"
    runs = runs_needed(found)
    took = f"; to detect this one takes at least {runs} runs of each" if runs else ""
    return f"a difference of {shown:.1f} % or more would have been detected{took}"
