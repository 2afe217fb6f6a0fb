"""Where a stream is parted: what is launched before and after is not one kernel, whatever it is."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.fusion.replay import Wait
    from nsys_insight.facts.fusion.stream import Op

# Launches from Python are 5 to 50 µs apart; what takes the CPU longer is work of its own, which no kernel does.
WORK_NS = 100_000.0


def parted(line: Sequence[Op], waits: Sequence[Wait]) -> dict[int, str]:
    """Give the places of a stream before which something parts it, with what that is."""
    waits = sorted(waits)
    begins = [wait.start_ns for wait in waits]
    found = {}
    for at, (one, other) in enumerate(pairwise(line), 1):
        if one.call_ns is None or other.call_ns is None or (one.in_graph and one.correlation == other.correlation):
            continue
        following = bisect_left(begins, one.call_ns)
        if following < len(waits) and begins[following] < other.call_ns:
            found[at] = f"the host waits between them ({waits[following].name})"
        elif one.thread != other.thread:
            found[at] = "different host threads launch them"
        elif one.part and other.part and one.part != other.part:
            found[at] = f"they are in different NVTX ranges ({one.part}, {other.part})"
        elif other.call_ns - (one.returned_ns or one.call_ns) > WORK_NS:
            found[at] = (
                f"{(other.call_ns - (one.returned_ns or one.call_ns)) / 1e6:.1f} ms of CPU time are between them"
            )
    return found
