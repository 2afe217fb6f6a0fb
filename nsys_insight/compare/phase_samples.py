"""What one run measured of its phases and requests."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from nsys_insight.compare.noise import Samples
from nsys_insight.paths import query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.session.session import Session

# By phase, or "requests", the samples of each metric.
Phases = dict[str, dict[str, Samples]]


def measured(trace: Session, most: int) -> Phases:
    """Measure what a step of each phase costs, as at most `most` values of a metric."""
    values: dict[str, dict[str, list[float]]] = {}
    for row in trace.rows(query("internal/compare/phases")):
        values.setdefault(row.name, {}).setdefault(row.metric, []).append(float(row.value))
    return {name: {metric: _few(series, most) for metric, series in of.items()} for name, of in values.items()}


def _few(values: Sequence[float], most: int) -> Samples:
    each = -(-len(values) // most)
    means = tuple(fmean(values[at : at + each]) for at in range(0, len(values), each))
    return Samples(means, len(values) / len(means))
