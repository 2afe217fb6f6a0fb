"""The layer: the kernels of one repetition inside a step, in order, above the chains that may be fused."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.page import styles
from nsys_insight.page.queries import ask
from nsys_insight.text.cells import printable
from nsys_insight.text.kernel_names import fit, make_readable
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# Kernels in the picture: more could not be distinguished. Without layers, it shows the beginning of the step.
MAX_KERNELS = 96


@dataclass(frozen=True)
class LayerKernel:
    """One operation: `height` is its duration in % of the longest."""

    word: str
    style: str
    height: float
    tip: str


@dataclass(frozen=True)
class DrawnChain:
    """An occurrence of a fusion candidate, from operation `first` to `last`.

    `fused` are the operations that would become one kernel.
    """

    candidate: int
    pattern: str
    first: int
    last: int
    fused: frozenset[int]
    is_chosen: bool
    tip: str


@dataclass(frozen=True)
class Layer:
    """The picture: `rows` has one row for each candidate in it, with all its occurrences."""

    kernels: list[LayerKernel]
    rows: list[list[DrawnChain]]
    layers: int | None
    longest: str
    is_cut: bool


def draw_layer(trace: Session, steps: StepOptions) -> Layer | None:
    """Draw the layer of the stream that has the best candidate. None if there is nothing to fuse."""
    candidates: dict[int, list[Any]] = defaultdict(list)
    for row in ask(trace, "layer_candidates", steps):
        candidates[row.candidate].append(row)
    if not candidates:
        return None
    best = next(iter(candidates.values()))[0]
    chains = [rows for rows in candidates.values() if _stream_key(rows[0]) == _stream_key(best)]
    (step,) = trace.rows("SELECT layer_period, layers FROM fusion_step", steps)
    operations = ask(
        trace, "layer_operations", steps,
        process=best.process_id, device=best.device_id, stream=best.stream_id,
        from_ns=min(rows[0].start_ns for rows in chains), max_rows=min(step.layer_period or MAX_KERNELS, MAX_KERNELS),
    )  # fmt: skip
    names = [row.name_id for row in operations]
    words = {row.name_id: row.operation for rows in chains for row in rows}
    occurrences = [
        [_draw_chain(rows, index) for index in _find_sequence(names, [row.name_id for row in rows])] for rows in chains
    ]
    longest = max((row.end_ns - row.start_ns for row in operations), default=0)
    kernels = [
        LayerKernel(
            words.get(row.name_id) or row.family,
            styles.style_work(row.family if row.kind == "kernel" else row.kind),
            100 * (row.end_ns - row.start_ns) / longest if longest else 0,
            f"{printable(fit(make_readable(row.name), 72))}\n{value('a_ns', row.end_ns - row.start_ns)}\n{row.family}",
        )
        for row in operations
    ]
    drawn_rows = sorted((row for row in occurrences if row), key=lambda row: not row[0].is_chosen)
    return Layer(
        kernels, drawn_rows, step.layers, value("a_ns", longest), (step.layer_period or len(operations)) > MAX_KERNELS
    )


def _find_sequence(names: list[Any], sequence: list[Any]) -> list[int]:
    """Return the index of each occurrence of a sequence, without overlaps."""
    indexes, index = [], 0
    while index + len(sequence) <= len(names):
        if names[index : index + len(sequence)] == sequence:
            indexes.append(index)
            index += len(sequence)
        else:
            index += 1
    return indexes


def _stream_key(row: Any) -> tuple[int, int, int]:
    return row.process_id, row.device_id, row.stream_id


def _draw_chain(rows: list[Any], start_index: int) -> DrawnChain:
    first = rows[0]
    fused = frozenset(start_index + offset for offset, row in enumerate(rows) if row.is_fused)
    saving = f"saves {value('a_ns', first.saved_low_ns)} to {value('a_ns', first.saved_high_ns)} of a step"
    tip = f"candidate {first.candidate}, {first.pattern}: {len(fused)} kernels become one\n{saving}"
    tip += "\none of those that can be fused together" if first.is_chosen else "\nshares kernels with a better one"
    return DrawnChain(
        first.candidate, first.pattern, start_index, start_index + len(rows) - 1, fused, first.is_chosen, tip
    )
