"""Whether the steps of two runs are the same piece of work, so that their numbers can be compared."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.compare.runs import Run

# A change may fuse, split or replace kernels, but most of those that stay run as often in a step as before. If they run
# this much more often, one run's step is several of the other's, such as a layer of a token.
MORE_OFTEN = 1.5
# Where no kernel stays, a step may not have this many times the kernels.
MORE_KERNELS = 4.0


def unlike(before: Sequence[Run], after: Sequence[Run]) -> str | None:
    """Say why the steps of two sides are not the same work; None if they are, or if the traces do not show it."""
    for old in before:
        for new in after:
            if old.unit not in ("step", "token") or old.kernels is None or new.kernels is None:
                continue
            said = _unlike(old, new)
            if said:
                return said
    return None


def _unlike(old: Run, new: Run) -> str | None:
    before, after = _calls(old), _calls(new)
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


def _calls(run: Run) -> dict[str, float]:
    """How often each kernel runs in a step."""
    return {name: kernel.calls * run.tokens_per_step for name, kernel in (run.kernels or {}).items()}
