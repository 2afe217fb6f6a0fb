"""One clock for several traces, by the ends of collectives: everybody leaves an all-reduce together.

Each trace counts time from its own start, which it knows by its host's clock. Hosts differ by milliseconds and drift
against each other, so offset and drift are fitted to the ends; what is left over is the error, below which nothing is
known of who came first.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

    Ints = np.ndarray[Any, np.dtype[np.int64]]

# A drift is believed from so many collectives on, and where it takes away half of what is left over without it.
_LEAST_FOR_DRIFT, _WORTH = 20, 0.5
# The share of the differences that the error is not exceeded by.
WITHIN = 0.95


class Clock(NamedTuple):
    """What leads from a trace's time to that of the run: time - offset - drift * (time - since)."""

    offset: float = 0.0
    drift: float = 0.0
    since: float = 0.0
    error: float = 0.0

    def apply(self, times: Ints) -> Ints:
        """Give times as the run counts them."""
        import numpy as np

        if not self.offset and not self.drift:
            return times
        late = np.rint(self.offset + self.drift * (times - self.since)).astype(np.int64)
        moved: Ints = times - late
        return moved

    def after(self, other: Clock) -> Clock:
        """Follow this clock by another one: from a trace to one that is itself led to the run."""
        since = other.drift * (self.since - self.offset - other.since)
        drift, error = self.drift + other.drift, max(self.error, other.error)
        return Clock(self.offset + other.offset + since, drift, self.since, error)


def fit(reference: Ints, other: Ints) -> Clock:
    """Fit the clock of `other` to that of `reference`, of ends that are the same."""
    import numpy as np

    apart = (other - reference).astype(np.float64)
    since = float(other[0])
    offset = float(np.median(apart))
    error = _left(apart - offset)
    if len(apart) >= _LEAST_FOR_DRIFT:
        at = (other - other[0]).astype(np.float64)
        drift, first = _line(at, apart)
        error_of_line = _left(apart - first - drift * at)
        if error_of_line <= _WORTH * error:
            return Clock(first, drift, since, error_of_line)
    return Clock(offset, 0.0, since, error)


class Links(Protocol):
    """The collectives that traces share; of hundreds of traces not all pairs are looked at."""

    def of(self, trace: int) -> Iterable[int]:
        """The traces that share any with this one."""

    def ends(self, one: int, other: int) -> tuple[Ints, Ints]:
        """The ends of those that both took part in, as each has them."""


def aligned(links: Links, first: int) -> dict[int, Clock]:
    """Lead the clocks of traces to that of the first.

    Returns:
        The clocks of those that are linked with the first by collectives, be it by way of others.
    """
    found = {first: Clock()}
    todo = deque([first])
    while todo:
        known = todo.popleft()
        for other in sorted(set(links.of(known)) - found.keys()):
            of_known, of_other = links.ends(known, other)
            if len(of_known):
                found[other] = fit(of_known, of_other).after(found[known])
                todo.append(other)
    return found


def _left(apart: Any) -> float:
    import numpy as np

    return float(np.quantile(np.abs(apart), WITHIN)) if len(apart) else 0.0


def _line(at: Any, apart: Any) -> tuple[float, float]:
    """Fit a straight line, the second time without the tenth of the values that is farthest from it."""
    import numpy as np

    if not at[-1] > at[0]:
        return 0.0, float(np.median(apart))
    slope, first = np.polyfit(at, apart, 1)
    off = np.abs(apart - first - slope * at)
    near = off <= np.quantile(off, 0.9)
    if np.count_nonzero(near) > 2 and at[near].max() > at[near].min():
        slope, first = np.polyfit(at[near], apart[near], 1)
    return float(slope), float(first)
