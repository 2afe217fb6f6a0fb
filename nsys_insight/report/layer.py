"""The layer: the kernels of one repetition inside a step, in order, with the chains that may be fused drawn below."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.kernel_text import fit, readable
from nsys_insight.ncu.shown import value
from nsys_insight.render.cells import printable
from nsys_insight.report import looks
from nsys_insight.report.asking import ask

if TYPE_CHECKING:
    from nsys_insight.trace import Trace

# More kernels than that cannot be seen in one picture; without layers, the beginning of the step is drawn.
MOST = 96


@dataclass(frozen=True)
class Kernel:
    """One operation: `height` is its duration in % of the longest."""

    word: str
    look: str
    height: float
    tip: str


@dataclass(frozen=True)
class Chain:
    """Where a candidate comes: from operation `first` to `last`; `fused` are those of it that would be one kernel."""

    candidate: int
    pattern: str
    first: int
    last: int
    fused: frozenset[int]
    chosen: bool
    tip: str


@dataclass(frozen=True)
class Layer:
    """The picture: `rows` are the candidates that come in it, each a line of the places where it comes."""

    kernels: list[Kernel]
    rows: list[list[Chain]]
    layers: int | None
    longest: str
    is_cut: bool


def layer(trace: Trace, asked: dict[str, Any]) -> Layer | None:
    """Draw the layer of the stream that the best candidate is on; None where there is nothing to fuse."""
    candidates: dict[int, list[Any]] = defaultdict(list)
    for row in ask(trace, "layer_candidates", asked):
        candidates[row[0]].append(row)
    if not candidates:
        return None
    *_, process, device, stream = next(iter(candidates.values()))[0]
    here = {number: rows for number, rows in candidates.items() if rows[0][-3:] == (process, device, stream)}
    ((period, layers),) = trace.rows("SELECT layer_period, layers FROM fusion_step", **asked)
    from_ns = min(rows[0][9] for rows in here.values())
    operations = ask(
        trace, "layer_operations", asked,
        process=process, device=device, stream=stream, from_ns=from_ns, most=min(period or MOST, MOST),
    )  # fmt: skip
    names = [row[1] for row in operations]
    words = {row[8]: row[7] for rows in here.values() for row in rows}
    drawn = [[_chain(rows, place) for place in _places(names, [row[8] for row in rows])] for rows in here.values()]
    longest = max((row[5] - row[4] for row in operations), default=0)
    kernels = [
        Kernel(
            words.get(name_id) or family,
            looks.of_work(family if kind == "kernel" else kind),
            100 * (end - start) / longest if longest else 0,
            f"{printable(fit(readable(name), 72))}\n{value('a_ns', end - start)}\n{family}",
        )
        for kind, name_id, family, name, start, end in operations
    ]
    chosen_first = sorted((line for line in drawn if line), key=lambda line: not line[0].chosen)
    return Layer(kernels, chosen_first, layers, value("a_ns", longest), (period or len(operations)) > MOST)


def _places(names: list[Any], wanted: list[Any]) -> list[int]:
    """Where a sequence comes, no two of them overlapping."""
    places, at = [], 0
    while at + len(wanted) <= len(names):
        if names[at : at + len(wanted)] == wanted:
            places.append(at)
            at += len(wanted)
        else:
            at += 1
    return places


def _chain(rows: list[Any], place: int) -> Chain:
    candidate, pattern, is_chosen, low, high = rows[0][:5]
    fused = frozenset(place + at for at, row in enumerate(rows) if row[6])
    saved = f"saves {value('a_ns', low)} to {value('a_ns', high)} of a step"
    tip = f"candidate {candidate}, {pattern}: {len(fused)} kernels become one\n{saved}"
    tip += "\none of those that can be fused together" if is_chosen else "\nshares kernels with a better one"
    return Chain(candidate, pattern, place, place + len(rows) - 1, fused, is_chosen, tip)
