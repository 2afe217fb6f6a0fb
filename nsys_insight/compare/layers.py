"""Compare two implementations of one program layer by layer: align their steps although kernels and names differ.

Matrix products, attention and communication are the anchors: each implementation runs them in the same order. Anchors
are aligned first; one product can replace several, such as those of query, key and value. What runs between the same
two anchors belongs together: a chain on one side and the kernel that replaces it on the other. Layers are the
iterations of the loops inside the step, such as one of the forward pass and one of the backward pass.

Two traces may have found other steps in the same program: one begins its steps at another kernel, or took a layer for
a step because nothing runs between the last layer and the next first one. `match_steps` makes them alike.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from statistics import fmean
from typing import TYPE_CHECKING, Any

from nsys_insight.compare.kernel_identity import normalize_name
from nsys_insight.errors import UsageError
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.paths import read_query
from nsys_insight.session.answer import Answer, build_answer, read_columns
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
# shares of the anchors' time. Anchors are not aligned below 0. cuBLAS runs products of different sizes in kernels of
# the same name, so a name counts only if the shares are similar.
NAME_SCORE, FAMILY_SCORE = 4.0, 2.0
MAX_NAME_RATIO = 1.5
# What it costs to align one matrix product with several, and of how many at most; and to leave an anchor alone.
MERGE_COST, MAX_MERGED, ALONE_COST = 0.5, 3, 0.5
# Matrix products that one replaces have at most this distance: an activation and a memset can be between them.
MAX_JOINED_DISTANCE = 3
# Beginnings of a step are tried if the alignments of all of them compare at most this number of anchors.
MAX_COMPARISONS = 300_000
_MAX_NAMES, _NAME_WIDTH = 4, 40

COLUMNS = read_columns("compare/layers")


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
        repeats: How many steps of the trace this step is; see `match_steps`.
    """

    label: str
    operations: tuple[Operation, ...]
    steps: int
    all_steps: int
    layers: tuple[int, ...] = ()
    repeats: int = 1

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
    rows = trace.rows(
        bind(read_query("internal/compare/step_operations"), {"most": MAX_STEPS}), steps, is_built_in=True
    )
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
    loops = trace.rows(
        bind(read_query("internal/compare/step_loops"), {"step": usual_steps[0]}), steps, is_built_in=True
    )
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
    anchors = [_find_anchors(side) for side in sides]
    if not all(anchors):
        raise UsageError(
            "one of the programs has no matrix products, attention or communication to align",
            "compare kernels by name: nsys-insight diff BEFORE AFTER",
        )
    if max(map(len, anchors)) > MAX_ANCHORS:
        raise UsageError(f"a step has more than {MAX_ANCHORS} matrix products", "name a shorter step with --step-range")
    pairs, _ = _align_anchors(*anchors)
    groups: list[Group] = []
    position = [0, 0]
    for pair in pairs:
        first = [side[0].index for side in pair]
        groups += _make_segment(sides[0][position[0] : first[0]], sides[1][position[1] : first[1]])
        position = [side[-1].index + 1 for side in pair]
        old, new = (list(side[begin:end]) for side, begin, end in zip(sides, first, position, strict=True))
        is_same = len(old) == len(new) == 1 and normalize_name(old[0].name) == normalize_name(new[0].name)
        groups.append(Group(old, new, "name" if is_same else "family"))
    return groups + _make_segment(sides[0][position[0] :], sides[1][position[1] :])


def match_steps(before: Program, after: Program) -> tuple[Program, Program]:
    """Return the programs with steps of the same length and beginning.

    If a step of one has layers and one of the other has none, but as many anchors as a layer, the second is repeated.
    A step without layers begins where it can be aligned best with the other one.
    """
    if not after.layers:
        return before, _begin_as(after, before)
    if not before.layers:
        return _begin_as(before, after), after
    return before, after


def _count_repeats(program: Program, other: Program) -> int:
    """Return how many steps of a program are one of the other: its layers, if each has the anchors of a layer."""
    if len(other.layers) != 1:
        return 1
    anchors, other_anchors = (sum(operation.is_anchor for operation in side.operations) for side in (program, other))
    (layers,) = other.layers
    return layers if other_anchors / 2 < anchors * layers < 2 * other_anchors else 1


def _repeat(program: Program, repeats: int) -> Program:
    """Return a program whose step is several steps of another one: its layers."""
    operations = tuple(
        replace(operation, layer=(0, layer)) for layer in range(repeats) for operation in program.operations
    )
    return replace(program, operations=operations, layers=(repeats,), repeats=repeats)


def _begin_as(program: Program, other: Program) -> Program:
    """Return a program without layers, repeated if need be, with the step that is aligned best with the other one.

    A step can begin after any anchor, because what runs between two steps belongs to the first anchor after it.
    """
    anchors, other_anchors = _find_anchors(program.operations), _find_anchors(other.operations)
    repeats = _count_repeats(program, other)

    def turn(count: int) -> Program:
        begin = anchors[count - 1].index + 1 if count else 0
        turned_program = replace(program, operations=(*program.operations[begin:], *program.operations[:begin]))
        return _repeat(turned_program, repeats) if repeats > 1 else turned_program

    comparisons = len(anchors) ** 2 * repeats * len(other_anchors)
    if not 0 < comparisons <= MAX_COMPARISONS:
        return turn(0)
    return max(
        map(turn, range(len(anchors))),
        key=lambda candidate: _align_anchors(_find_anchors(candidate.operations), other_anchors)[1],
    )


@dataclass(frozen=True)
class _Anchor:
    """An anchor, its index among the operations, and whether one product can replace it and the next one."""

    operation: Operation
    index: int
    is_joinable: bool


def _find_anchors(operations: Sequence[Operation]) -> list[_Anchor]:
    """Return the anchors of a step.

    Matrix products that one can replace are neighbors in a layer: those of query, key and value, of gate and up.
    """
    indices = [index for index, operation in enumerate(operations) if operation.is_anchor]
    return [
        _Anchor(
            operations[index],
            index,
            next_index is not None
            and operations[index].family == operations[next_index].family == "gemm"
            and operations[index].layer == operations[next_index].layer
            and next_index - index <= MAX_JOINED_DISTANCE,
        )
        for index, next_index in zip_longest(indices, indices[1:])
    ]


def _make_segment(before: Sequence[Operation], after: Sequence[Operation]) -> list[Group]:
    """Return one group for what runs between two anchors; none if nothing does."""
    if not before and not after:
        return []
    if [operation.name for operation in before] == [operation.name for operation in after]:
        return [Group(list(before), list(after), "name")]
    return [Group(list(before), list(after), "place" if before and after else None)]


def _align_anchors(
    before: Sequence[_Anchor], after: Sequence[_Anchor]
) -> tuple[list[tuple[Sequence[_Anchor], Sequence[_Anchor]]], float]:
    """Return the pairs of anchors with the largest total score that keep the order on both sides, and that score.

    A pair has one anchor of each side, or one matrix product that replaces several.
    """
    totals = [math.fsum(anchor.operation.duration_ns for anchor in side) or 1.0 for side in (before, after)]
    joined = [_find_joined(side) for side in (before, after)]

    def find_pairs(i: int, j: int) -> Iterator[tuple[float, int, int]]:
        """Yield the score of each pair that begins at two anchors, and where the next pair can begin."""
        for old_size, new_size in (
            (1, 1),
            *((size, 1) for size in joined[0][i]),
            *((1, size) for size in joined[1][j]),
        ):
            score = _score(before[i : i + old_size], after[j : j + new_size], totals)
            if score > 0:
                yield score, i + old_size, j + new_size

    best = [
        [-ALONE_COST * (len(before) - i + len(after) - j) for j in range(len(after) + 1)]
        for i in range(len(before) + 1)
    ]
    for i in range(len(before) - 1, -1, -1):
        for j in range(len(after) - 1, -1, -1):
            scores = (score + best[next_i][next_j] for score, next_i, next_j in find_pairs(i, j))
            best[i][j] = max(best[i + 1][j] - ALONE_COST, best[i][j + 1] - ALONE_COST, *scores)
    pairs, i, j = [], 0, 0
    while i < len(before) and j < len(after):
        for score, next_i, next_j in find_pairs(i, j):
            if best[i][j] == score + best[next_i][next_j]:
                pairs.append((before[i:next_i], after[j:next_j]))
                i, j = next_i, next_j
                break
        else:
            i, j = (i + 1, j) if best[i][j] == best[i + 1][j] - ALONE_COST else (i, j + 1)
    return pairs, best[0][0]


def _find_joined(anchors: Sequence[_Anchor]) -> list[list[int]]:
    """Return how many anchors from each one on a single matrix product can replace.

    The last two of them have one name, as products of one size do: those of key and value, of gate and up.
    """
    return [
        [
            size
            for size in range(2, MAX_MERGED + 1)
            if index + size <= len(anchors)
            and all(anchor.is_joinable for anchor in anchors[index : index + size - 1])
            and anchors[index + size - 2].operation.name == anchors[index + size - 1].operation.name
        ]
        for index in range(len(anchors))
    ]


def _score(old: Sequence[_Anchor], new: Sequence[_Anchor], totals: Sequence[float]) -> float:
    first, other = old[0].operation, new[0].operation
    if first.family != other.family:
        return 0.0
    shares = [
        math.fsum(anchor.operation.duration_ns for anchor in side) / total
        for side, total in zip((old, new), totals, strict=True)
    ]
    distance = abs(math.log((shares[0] or 1e-9) / (shares[1] or 1e-9)))
    if len(old) + len(new) > 2:
        return FAMILY_SCORE - MERGE_COST - distance
    is_same = normalize_name(first.name) == normalize_name(other.name) and distance < math.log(MAX_NAME_RATIO)
    return (NAME_SCORE if is_same else FAMILY_SCORE) - distance


def compare_layers(before: Program, after: Program) -> Answer:
    """Compare two programs module by module, summed over the layers.

    Raises:
        UsageError: The programs cannot be aligned.
    """
    before, after = match_steps(before, after)
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
        f" matrix products, attention and communication are aligned: {by_name} by name, {by_family} by"
        " family and share of the time; the rest by place"
    )
    for side, program in programs.items():
        unaligned_ns = math.fsum(
            operation.duration_ns for group in groups if not group.aligned_by for operation in getattr(group, side)
        )
        if program.repeats > 1:
            yield f"{side}: its steps are the layers of the other one, so {program.repeats} of them are one step here"
        text = f"{side}: means over {program.steps} of {program.all_steps} steps, which run the same operations"
        if unaligned_ns:
            text += f"; {time_text(unaligned_ns)} per step have no counterpart"
        yield text
