"""A chain of kernels that may be fused, with what that saves; and all that is found in a typical step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nsys_insight.facts.fusion.gain import Gain
    from nsys_insight.facts.fusion.replay import Timeline
    from nsys_insight.facts.fusion.stream import Chain, OpStream


@dataclass(frozen=True)
class Candidate:
    """A chain with what it saves."""

    chain: Chain
    gain: Gain
    verdict: str
    reason: str | None
    recurrence: float
    saved_low_ns: float
    saved_high_ns: float

    @property
    def order(self) -> tuple[Any, ...]:
        """Those that can be fused first, each by what they save."""
        first = self.chain.stream.ops[self.chain.places[0][0]]
        saved = self.saved_low_ns + self.saved_high_ns
        return (("YES", "UNKNOWN", "NO").index(self.verdict), -round(saved), first.device, first.stream, first.place)


@dataclass(frozen=True)
class TypicalStep:
    """What is found in the typical step of a process: `typical` of the `sampled` steps are like it."""

    process: int
    sampled: int
    typical: int
    wall_ns: float
    timeline: Timeline
    streams: list[OpStream]
    candidates: list[Candidate]
