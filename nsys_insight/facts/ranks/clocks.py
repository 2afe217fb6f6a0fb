"""One clock for several traces, aligned by the ends of collectives: all ranks leave an all-reduce at the same time.

Each trace counts time from its own start, read from its host's clock. The clocks of hosts differ by milliseconds and
drift against each other, so an offset and a drift are fitted to the ends. The residual is the error: the order of
arrivals closer than that is unknown.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nsys_insight.facts.arrays import Ints, np

if TYPE_CHECKING:
    from collections.abc import Iterable


# Fit a drift only to at least this number of collectives, and accept it only if the error falls to this share.
_MIN_FOR_DRIFT, _MAX_ERROR_RATIO = 20, 0.5
# The error is this quantile of the absolute differences.
ERROR_QUANTILE = 0.95


class Clock(NamedTuple):
    """Conversion from a trace's time to the run's time: time - offset - drift * (time - since)."""

    offset: float = 0.0
    drift: float = 0.0
    since: float = 0.0
    error: float = 0.0

    def apply(self, times: Ints) -> Ints:
        """Convert times to the run's clock."""
        if not self.offset and not self.drift:
            return times
        late = np.rint(self.offset + self.drift * (times - self.since)).astype(np.int64)
        shifted: Ints = times - late
        return shifted

    def compose(self, other: Clock) -> Clock:
        """Apply this clock, then `other`: from a trace to a trace that `other` converts to the run's clock."""
        since = other.drift * (self.since - self.offset - other.since)
        drift, error = self.drift + other.drift, max(self.error, other.error)
        return Clock(self.offset + other.offset + since, drift, self.since, error)


def fit(reference: Ints, other: Ints) -> Clock:
    """Fit the clock of `other` to that of `reference`, from the times of the same ends on both clocks."""
    differences = (other - reference).astype(np.float64)
    since = float(other[0])
    offset = float(np.median(differences))
    error = _residual_error(differences - offset)
    if len(differences) >= _MIN_FOR_DRIFT:
        times = (other - other[0]).astype(np.float64)
        drift, first = _fit_line(times, differences)
        error_of_line = _residual_error(differences - first - drift * times)
        if error_of_line <= _MAX_ERROR_RATIO * error:
            return Clock(first, drift, since, error_of_line)
    return Clock(offset, 0.0, since, error)


class Links(Protocol):
    """The collectives that traces share. With hundreds of traces, not all pairs are compared."""

    def linked_traces(self, trace: int) -> Iterable[int]:
        """Return the traces that share collectives with this trace."""

    def common_ends(self, reference: int, other: int) -> tuple[Ints, Ints]:
        """Return the ends of the collectives that both traces have, on the clock of each."""


def align_clocks(links: Links, first: int) -> dict[int, Clock]:
    """Align the clocks of traces with that of the first.

    Returns:
        The clocks of the traces that share collectives with the first, directly or through other traces.
    """
    aligned = {first: Clock()}
    todo = deque([first])
    while todo:
        reference = todo.popleft()
        for other in sorted(set(links.linked_traces(reference)) - aligned.keys()):
            reference_ends, other_ends = links.common_ends(reference, other)
            if len(reference_ends):
                aligned[other] = fit(reference_ends, other_ends).compose(aligned[reference])
                todo.append(other)
    return aligned


def _residual_error(residuals: Any) -> float:
    return float(np.quantile(np.abs(residuals), ERROR_QUANTILE)) if len(residuals) else 0.0


def _fit_line(times: Any, differences: Any) -> tuple[float, float]:
    """Fit a straight line twice. The second fit leaves out the 10% of the values farthest from the first line."""
    if not times[-1] > times[0]:
        return 0.0, float(np.median(differences))
    slope, first = np.polyfit(times, differences, 1)
    residuals = np.abs(differences - first - slope * times)
    is_inlier = residuals <= np.quantile(residuals, 0.9)
    if np.count_nonzero(is_inlier) > 2 and times[is_inlier].max() > times[is_inlier].min():
        slope, first = np.polyfit(times[is_inlier], differences[is_inlier], 1)
    return float(slope), float(first)
