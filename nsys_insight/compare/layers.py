"""Compare two implementations of one program layer by layer: align their steps although kernels and names differ.

Matrix products, attention and communication are the anchors: each implementation runs them in the same order. Anchors
are aligned first. What runs between the same two anchors belongs together: a chain on one side and the kernel that
replaces it on the other. Layers are the iterations of the loops inside the step, such as one of the forward pass and
one of the backward pass.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from statistics import fmean
from typing import TYPE_CHECKING, Any

from nsys_insight.compare.kernel_identity import normalize_name
from nsys_insight.errors import UsageError
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.paths import read_query
from nsys_insight.session.answer import Answer, Column, build_answer
from nsys_insight.sql.parameters import bind
from nsys_insight.text.kernel_names import fit, make_readable
from nsys_insight.text.units import time_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_insight.session.session import Session

ANCHOR_FAMILIES = {"gemm", "attention", "comm"}
# Steps that are read; durations are means over those with the same operations.
MAX_STEPS = 32
# The time to align anchors grows with the product of their numbers.
MAX_ANCHORS = 3_000
# Layers that repeat less often in a step are no layers.
MIN_LAYERS = 2
# Below this share of the anchors' time on either side that is aligned, the alignment is not trusted.
MIN_ALIGNED_SHARE = 0.5
# Score of two anchors with the same name, and of two of one family. Both lose the logarithm of the ratio of their
# shares of the anchors' time. Anchors are not aligned below 0.
NAME_SCORE, FAMILY_SCORE = 4.0, 2.0
_MAX_NAMES, _NAME_WIDTH = 4, 40

COLUMNS = (
    Column(
        "part",
        "VARCHAR",
        "Where it is in the step: before the layers, layer (of which loop, if several), another layer (unlike most),"
        " between the layers, after the layers; step if there are no layers",
    ),
    Column("position", "BIGINT", "Position in the part, from 0"),
    Column("module", "VARCHAR", "The anchor (matrix product, attention, communication), or what is around it"),
    Column("before_ns", "DOUBLE", "GPU time per step before, of all layers"),
    Column("after_ns", "DOUBLE", "GPU time per step after"),
    Column("delta_ns", "DOUBLE", "after - before"),
    Column("before_launches", "DOUBLE", "Kernels, copies and memsets per step before, of all layers"),
    Column("after_launches", "DOUBLE", "The same after"),
    Column("layers", "BIGINT", "Number of layers that the row is the sum of", is_detail=True),
    Column(
        "change",
        "VARCHAR",
        "same (the same kernels), other kernels, fused (fewer kernels), split (more), only before, only after;"
        " varies, if layers differ",
    ),
    Column(
        "aligned_by",
        "VARCHAR",
        "How both sides were aligned: name; family (a matrix product of similar share); place (between the same"
        " anchors); NULL for what only one side has",
        is_detail=True,
    ),
    Column("before_kernels", "VARCHAR", "Its kernels before, in order"),
    Column("after_kernels", "VARCHAR", "Its kernels after, in order"),
)


# The number of a loop in the step, and of its iteration.
Layer = tuple[int, int]


@dataclass(frozen=True)
class Operation:
    """An operation of a step: its name, family, mean duration, and the loop and layer that it is in, if any."""

    name: str
    family: str
    duration_ns: float
    layer: Layer | None = None

    @property
    def is_anchor(self) -> bool:
        """Return whether the operation is aligned without regard to those around it."""
        return self.family in ANCHOR_FAMILIES


@dataclass(frozen=True)
class Program:
    """The step of one implementation.

    Attributes:
        label: Name of the trace.
        operations: The operations of a step, in the order in which they ran.
        steps: Number of steps that the durations are means over.
        all_steps: Number of steps that were read.
        layers: Number of layers of each loop in a step.
    """

    label: str
    operations: tuple[Operation, ...]
    steps: int
    all_steps: int
    layers: tuple[int, ...] = ()

    @property
    def total_ns(self) -> float:
        """Return the GPU time of a step, the sum of its operations."""
        return math.fsum(operation.duration_ns for operation in self.operations)


@dataclass
class Group:
    """Operations of both sides that belong together. Without `aligned_by`, only one side has any."""

    before: list[Operation] = field(default_factory=list)
    after: list[Operation] = field(default_factory=list)
    aligned_by: str | None = None

    @property
    def is_anchor_pair(self) -> bool:
        """Return whether this is an anchor of each side."""
        return self.aligned_by in ("name", "family") and self.before[0].is_anchor

    @property
    def change(self) -> str:
        """Describe how the two sides differ."""
        if not self.before or not self.after:
            return "only before" if self.before else "only after"
        names = [Counter(normalize_name(operation.name) for operation in side) for side in (self.before, self.after)]
        if names[0] == names[1]:
            return "same"
        difference = len(self.after) - len(self.before)
        return "other kernels" if not difference else "fused" if difference < 0 else "split"


def read_program(trace: Session, steps: StepOptions = AUTO) -> Program:
    """Read the operations of a typical step.

    Raises:
        UsageError: The trace has no steps, or its kernels are hidden in CUDA graphs.
    """
    rows = trace.rows(bind(read_query("internal/compare/step_operations"), {"most": MAX_STEPS}), steps)
    by_step: dict[int, list[Any]] = {}
    for row in rows:
        by_step.setdefault(row.step, []).append(row)
    if not by_step or all(row.kind == "graph" for row in rows):
        raise UsageError(
            f"no steps with kernels were found in {trace.path.name}",
            "define a step with --step-range; capture CUDA graphs with --cuda-graph-trace=node",
        )
    sequences = {step: tuple(row.name for row in step_rows) for step, step_rows in by_step.items()}
    ((usual_names, count),) = Counter(sequences.values()).most_common(1)
    usual_steps = [step for step, names in sequences.items() if names == usual_names]
    loops = trace.rows(bind(read_query("internal/compare/step_loops"), {"step": usual_steps[0]}), steps)
    bounds = _choose_layers(loops)
    operations = tuple(
        Operation(
            row.name,
            row.family,
            fmean(by_step[step][position].duration_ns for step in usual_steps),
            next(
                (
                    (loop, layer)
                    for loop, layers in enumerate(bounds)
                    for layer, (start, end) in enumerate(layers)
                    if start <= row.call_ns < end
                ),
                None,
            ),
        )
        for position, row in enumerate(by_step[usual_steps[0]])
    )
    return Program(trace.path.name, operations, count, len(by_step), tuple(map(len, bounds)))


def _choose_layers(rows: Sequence[Any]) -> list[list[tuple[int, int]]]:
    """Return for each loop inside the step when the host begins and ends its layers.

    Of loops one inside the other, the loop with most GPU time counts.
    """
    iterations: dict[str, list[Any]] = {}
    for row in rows:
        iterations.setdefault(row.loop, []).append(row)
    loops = [of_loop for of_loop in iterations.values() if len(of_loop) >= MIN_LAYERS]
    main_loops: list[list[Any]] = []
    for of_loop in sorted(loops, key=lambda of_loop: (-of_loop[0].gpu_share, of_loop[0].depth)):
        if all(
            of_loop[-1].host_end_ns <= other[0].host_start_ns or other[-1].host_end_ns <= of_loop[0].host_start_ns
            for other in main_loops
        ):
            main_loops.append(of_loop)
    main_loops.sort(key=lambda of_loop: of_loop[0].host_start_ns)
    return [[(row.host_start_ns, row.host_end_ns) for row in of_loop] for of_loop in main_loops]


def align(before: Program, after: Program) -> list[Group]:
    """Align the operations of two programs; each operation is in one group, and groups are in order.

    Raises:
        UsageError: The programs have too little in common, or too many anchors.
    """
    sides = (before.operations, after.operations)
    anchors = [[index for index, operation in enumerate(side) if operation.is_anchor] for side in sides]
    if not all(anchors):
        raise UsageError(
            "one of the programs has no matrix products, attention or communication to align",
            "compare kernels by name: nsys-insight diff BEFORE AFTER",
        )
    if max(map(len, anchors)) > MAX_ANCHORS:
        raise UsageError(f"a step has more than {MAX_ANCHORS} matrix products", "name a shorter step with --step-range")
    pairs = _align_anchors(*([side[index] for index in indices] for side, indices in zip(sides, anchors, strict=True)))
    groups: list[Group] = []
    position = [0, 0]
    for old, new in [*((anchors[0][i], anchors[1][j]) for i, j in pairs), (len(sides[0]), len(sides[1]))]:
        groups += _make_segment(sides[0][position[0] : old], sides[1][position[1] : new])
        if old < len(sides[0]):
            is_same = normalize_name(sides[0][old].name) == normalize_name(sides[1][new].name)
            groups.append(Group([sides[0][old]], [sides[1][new]], "name" if is_same else "family"))
        position = [old + 1, new + 1]
    return groups


def _make_segment(before: Sequence[Operation], after: Sequence[Operation]) -> list[Group]:
    """Return one group for what runs between two anchors; none if nothing does."""
    if not before and not after:
        return []
    if [operation.name for operation in before] == [operation.name for operation in after]:
        return [Group(list(before), list(after), "name")]
    return [Group(list(before), list(after), "place" if before and after else None)]


def _align_anchors(before: Sequence[Operation], after: Sequence[Operation]) -> list[tuple[int, int]]:
    """Return the pairs of anchors with the largest total score that keep the order on both sides."""
    totals = [math.fsum(operation.duration_ns for operation in side) or 1.0 for side in (before, after)]
    width = len(after) + 1
    best = [[0.0] * width for _ in range(len(before) + 1)]
    for i in range(len(before) - 1, -1, -1):
        row, next_row = best[i], best[i + 1]
        for j in range(len(after) - 1, -1, -1):
            score = _score(before[i], after[j], totals)
            row[j] = max(next_row[j], row[j + 1], next_row[j + 1] + score if score > 0 else 0.0)
    pairs, i, j = [], 0, 0
    while i < len(before) and j < len(after):
        score = _score(before[i], after[j], totals)
        if score > 0 and best[i][j] == best[i + 1][j + 1] + score:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _score(old: Operation, new: Operation, totals: Sequence[float]) -> float:
    if old.family != new.family:
        return 0.0
    ratio = (old.duration_ns / totals[0] or 1e-9) / (new.duration_ns / totals[1] or 1e-9)
    is_same = normalize_name(old.name) == normalize_name(new.name)
    return (NAME_SCORE if is_same else FAMILY_SCORE) - min(abs(math.log(ratio)), NAME_SCORE)


def compare_layers(before: Program, after: Program) -> Answer:
    """Compare two programs module by module, summed over the layers.

    Raises:
        UsageError: The programs cannot be aligned.
    """
    groups = align(before, after)
    rows = [_make_row(*entry) for entry in _sum_layers(groups, before, after)]
    shares = _aligned_shares(groups)
    if min(shares) < MIN_ALIGNED_SHARE:
        raise UsageError(
            f"these programs cannot be aligned: of the time of matrix products, attention and communication, "
            f"{100 * shares[0]:.0f}% before and {100 * shares[1]:.0f}% after have a counterpart",
            "compare their totals: nsys-insight diff BEFORE AFTER",
        )
    totals = f"{time_text(before.total_ns)} → {time_text(after.total_ns)} of GPU operations per step"
    return build_answer(
        COLUMNS,
        rows,
        report="diff",
        title=f"Layer by layer: {totals}",
        notes=tuple(_notes(groups, shares, before, after)),
        trace={"before": [before.label], "after": [after.label], "unit": "step"},
    )


def _sum_layers(
    groups: Sequence[Group], before: Program, after: Program
) -> Iterator[tuple[str, int, list[Group], int]]:
    """Yield part, position, the groups that are one row, and the number of layers.

    Layers are those of the side that has more.
    """
    layers = _find_layers(groups, "before" if sum(before.layers) >= sum(after.layers) else "after")
    loops = list(dict.fromkeys(layer[0] for layer in layers if layer is not None))
    for loop, members in groupby(zip(layers, groups, strict=True), key=lambda entry: entry[0] and entry[0][0]):
        entries = list(members)
        if loop is not None:
            by_layer: dict[Layer | None, list[Group]] = {}
            for layer, group in entries:
                by_layer.setdefault(layer, []).append(group)
            name = f"layer of loop {loops.index(loop) + 1}" if len(loops) > 1 else "layer"
            yield from _sum_loop(name, list(by_layer.values()))
            continue
        is_first, is_last = entries[0][1] is groups[0], entries[-1][1] is groups[-1]
        part = "before the layers" if is_first else "after the layers" if is_last else "between the layers"
        for position, (_, group) in enumerate(entries):
            yield part if loops else "step", position, [group], 1


def _sum_loop(name: str, layers: Sequence[list[Group]]) -> Iterator[tuple[str, int, list[Group], int]]:
    """Yield the rows of a loop: layers that are like most are summed by position, the others follow."""
    kinds = Counter(map(_describe_layer, layers))
    usual_kind = kinds.most_common(1)[0][0]
    usual_layers = [layer for layer in layers if _describe_layer(layer) == usual_kind]
    for position, slot in enumerate(zip(*usual_layers, strict=True)):
        yield name, position, list(slot), len(usual_layers)
    other_layers = [layer for layer in layers if _describe_layer(layer) != usual_kind]
    for position, group in enumerate(group for layer in other_layers for group in layer):
        yield f"another {name}", position, [group], 1


def _find_layers(groups: Sequence[Group], side: str) -> list[Layer | None]:
    """Return the layer of each group: that of its anchor, or of the anchor before it.

    Where a layer begins between two anchors, the work before its first anchor counts with the layer before it, because
    implementations that fuse it with the end of that layer cannot be divided there.
    """
    layers: list[Layer | None] = []
    current: Layer | None = None
    for group in groups:
        anchors = [operation for operation in getattr(group, side) if operation.is_anchor]
        current = anchors[0].layer if anchors else current
        layers.append(current)
    return layers


def _describe_layer(groups: Sequence[Group]) -> tuple[Any, ...]:
    """Return what layers of one kind have in common: the anchors of their groups."""
    return tuple(
        tuple(
            tuple(operation.family for operation in side if operation.is_anchor) for side in (group.before, group.after)
        )
        for group in groups
    )


def _make_row(part: str, position: int, groups: Sequence[Group], layers: int) -> tuple[Any, ...]:
    """Return the row of groups at the same place in several layers."""
    before = [operation for group in groups for operation in group.before]
    after = [operation for group in groups for operation in group.after]
    before_ns, after_ns = (math.fsum(operation.duration_ns for operation in side) for side in (before, after))
    first = groups[0]
    changes, alignments = ([getattr(group, name) for group in groups] for name in ("change", "aligned_by"))
    return (
        part, position, _name_module(first), before_ns, after_ns, after_ns - before_ns, float(len(before)),
        float(len(after)), layers, _common(changes), _common(alignments), _list_kernels(first.before),
        _list_kernels(first.after),
    )  # fmt: skip


def _common(values: Sequence[str | None]) -> str | None:
    return values[0] if len({*values}) == 1 else "varies"


def _name_module(group: Group) -> str:
    """Return the families of a group: its anchors if it has any."""
    operations = [*group.before, *group.after]
    anchors = [operation.family for operation in operations if operation.is_anchor]
    return " + ".join(dict.fromkeys(anchors or [operation.family for operation in operations]))


def _list_kernels(operations: Sequence[Operation]) -> str | None:
    names = [fit(make_readable(operation.name), _NAME_WIDTH) for operation in operations]
    kernel_texts = [
        f"{names.count(name)} \N{MULTIPLICATION SIGN} {name}" if names.count(name) > 1 else name
        for name in dict.fromkeys(names)
    ]
    remainder = [f"{len(kernel_texts) - _MAX_NAMES} more"] if len(kernel_texts) > _MAX_NAMES else []
    return ", ".join([*kernel_texts[:_MAX_NAMES], *remainder]) or None


def _aligned_shares(groups: Sequence[Group]) -> tuple[float, float]:
    """Return which share of the time of each side's anchors is aligned with an anchor of the other side."""

    def share(side: str) -> float:
        anchors = [(group, operation) for group in groups for operation in getattr(group, side) if operation.is_anchor]
        total_ns = math.fsum(operation.duration_ns for _, operation in anchors)
        aligned_ns = math.fsum(operation.duration_ns for group, operation in anchors if group.is_anchor_pair)
        return aligned_ns / (total_ns or 1.0)

    return share("before"), share("after")


def _notes(groups: Sequence[Group], shares: tuple[float, float], before: Program, after: Program) -> Iterator[str]:
    programs = {"before": before, "after": after}
    layers = " and ".join(
        dict.fromkeys(" + ".join(map(str, program.layers)) or "none" for program in programs.values())
    )
    by_family = sum(group.aligned_by == "family" for group in groups)
    by_name = sum(group.is_anchor_pair for group in groups) - by_family
    yield (
        f"layers in a step: {layers}; {100 * shares[0]:.0f}% before and {100 * shares[1]:.0f}% after of the time of"
        f" matrix products, attention and communication are aligned one to one: {by_name} by name, {by_family} by"
        " family and share of the time; the rest by place"
    )
    for side, program in programs.items():
        unaligned_ns = math.fsum(
            operation.duration_ns for group in groups if not group.aligned_by for operation in getattr(group, side)
        )
        text = f"{side}: means over {program.steps} of {program.all_steps} steps, which run the same operations"
        if unaligned_ns:
            text += f"; {time_text(unaligned_ns)} per step have no counterpart"
        yield text
