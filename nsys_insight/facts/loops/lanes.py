"""The loops of a process that drives several devices or streams, perhaps from several threads.

A single thread puts the work of all devices in one order: what goes to two devices in turn is one iteration. Threads
that run at the same time mix their operations in any order. Then the operations of one device, or of one stream, tell
the loop of the process, and what the others do meanwhile is a part of its iterations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.facts.arrays import np
from nsys_insight.facts.loops.levels import measure_levels
from nsys_insight.facts.loops.nest import LoopNest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    Column = NDArray[Any]
    Tables = dict[str, dict[str, Column]]

# All operations together tell the loop if its regular iterations hold this share of the GPU time. It breaks for
# programs that spend more time outside of their loop: for them, branches and each device are looked at in vain.
CLEAR_SHARE = 0.8
# At most this many devices, or streams, are looked at, those that are busy for longest.
MOST_LANES = 2


def find_loops(sequence: Mapping[str, Column], classes: Mapping[int, int], process: int) -> Tables:
    """Return the columns of the tables of `queries/facts/loops/tables.sql` that have rows.

    Args:
        sequence: Columns of the operations of the process in their order, as `facts/loops` reads them.
        classes: The class of each token, as in `LoopNest`.
        process: The process.
    """
    best = _measure(sequence, classes, None, process)
    best_share = _find_regular_share(best)
    if best_share < CLEAR_SHARE:
        branching = _fold(sequence, classes, None, has_branches=True)
        if branching.has_branches:
            return measure_levels(branching, sequence).tables(process)
        for positions in _list_lanes(sequence):
            tables = _measure(sequence, classes, positions, process)
            share = _find_regular_share(tables)
            if share > best_share:
                best, best_share = tables, share
    return best


def _measure(
    sequence: Mapping[str, Column], classes: Mapping[int, int], positions: Column | None, process: int
) -> Tables:
    return measure_levels(_fold(sequence, classes, positions), sequence).tables(process)


def _fold(
    sequence: Mapping[str, Column], classes: Mapping[int, int], positions: Column | None, *, has_branches: bool = False
) -> LoopNest:
    selection = slice(None) if positions is None else positions
    return LoopNest(
        sequence["token"][selection],
        ~sequence["is_major"][selection].astype(bool),
        sequence["is_end"][selection].astype(bool),
        classes,
        None if positions is None else np.append(positions, len(sequence["token"])),
        has_branches=has_branches,
    )


def _list_lanes(sequence: Mapping[str, Column]) -> Iterator[Column]:
    """Yield where the operations of the busiest devices are; with a single device, those of its busiest streams."""
    for name in ("device_id", "stream_id"):
        used_lanes = np.where(sequence["is_operation"].astype(bool), sequence[name], -1)
        lanes = np.unique(used_lanes[used_lanes >= 0]).tolist()
        if len(lanes) > 1:
            lanes.sort(key=lambda lane: -int(sequence["gpu_ns"][used_lanes == lane].sum()))
            yield from (np.flatnonzero(used_lanes == lane) for lane in lanes[:MOST_LANES])
            return


def _find_regular_share(tables: Tables) -> float:
    """Return the largest share of the GPU time that the regular and equal iterations of one loop hold."""
    loops = tables.get("loops")
    if not loops:
        return 0.0
    shares = loops["gpu_share"] * loops["regular_share"] * loops["structure_share"]
    return float(shares.max())
