"""The layer: the kernels of one repetition inside a step, in order, with the chains that may be fused drawn below."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.page import styles
from nsys_insight.page.queries import ask
from nsys_insight.text.cells import printable
from nsys_insight.text.kernel_names import fit, readable
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# More kernels than that cannot be seen in one picture; without layers, the beginning of the step is drawn.
MOST = 96


@dataclass(frozen=True)
class LayerKernel:
    """One operation: `height` is its duration in % of the longest."""

    word: str
    style: str
    height: float
    tip: str


@dataclass(frozen=True)
class DrawnChain:
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

    kernels: list[LayerKernel]
    rows: list[list[DrawnChain]]
    layers: int | None
    longest: str
    is_cut: bool


def layer(trace: Session, steps: StepOptions) -> Layer | None:
    """Draw the layer of the stream that the best candidate is on; None where there is nothing to fuse."""
    candidates: dict[int, list[Any]] = defaultdict(list)
    for row in ask(trace, "layer_candidates", steps):
        candidates[row.candidate].append(row)
    if not candidates:
        return None
    best = next(iter(candidates.values()))[0]
    here = [rows for rows in candidates.values() if _stream(rows[0]) == _stream(best)]
    (step,) = trace.rows("SELECT layer_period, layers FROM fusion_step", steps)
    operations = ask(
        trace, "layer_operations", steps,
        process=best.process_id, device=best.device_id, stream=best.stream_id,
        from_ns=min(rows[0].start_ns for rows in here), most=min(step.layer_period or MOST, MOST),
    )  # fmt: skip
    names = [row.name_id for row in operations]
    words = {row.name_id: row.operation for rows in here for row in rows}
    drawn = [[_chain(rows, place) for place in _places(names, [row.name_id for row in rows])] for rows in here]
    longest = max((row.end_ns - row.start_ns for row in operations), default=0)
    kernels = [
        LayerKernel(
            words.get(row.name_id) or row.family,
            styles.of_work(row.family if row.kind == "kernel" else row.kind),
            100 * (row.end_ns - row.start_ns) / longest if longest else 0,
            f"{printable(fit(readable(row.name), 72))}\n{value('a_ns', row.end_ns - row.start_ns)}\n{row.family}",
        )
        for row in operations
    ]
    chosen_first = sorted((line for line in drawn if line), key=lambda line: not line[0].chosen)
    return Layer(
        kernels, chosen_first, step.layers, value("a_ns", longest), (step.layer_period or len(operations)) > MOST
    )


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


def _stream(row: Any) -> tuple[int, int, int]:
    return row.process_id, row.device_id, row.stream_id


def _chain(rows: list[Any], place: int) -> DrawnChain:
    first = rows[0]
    fused = frozenset(place + at for at, row in enumerate(rows) if row.is_fused)
    saved = f"saves {value('a_ns', first.saved_low_ns)} to {value('a_ns', first.saved_high_ns)} of a step"
    tip = f"candidate {first.candidate}, {first.pattern}: {len(fused)} kernels become one\n{saved}"
    tip += "\none of those that can be fused together" if first.is_chosen else "\nshares kernels with a better one"
    return DrawnChain(first.candidate, first.pattern, place, place + len(rows) - 1, fused, first.is_chosen, tip)
