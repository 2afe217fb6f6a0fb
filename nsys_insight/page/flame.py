"""Flame graphs with one row per level: CPU work that the GPU waits for by call stack, and NVTX ranges by nesting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nsys_insight.page.pictures import Bar
from nsys_insight.page.queries import ask
from nsys_insight.text.cells import printable
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.answer import Answer
    from nsys_insight.session.session import Session

# The narrowest bar that is drawn, as a share of the picture; the number of levels; the height of a level in pixels.
MIN_SHARE, MAX_LEVELS = 0.004, 20
LEVEL_HEIGHT = 20
# Parameters of the query for NVTX ranges. More ranges would be too narrow to draw.
RANGE_LIMITS = {"max_depth": MAX_LEVELS - 1, "max_rows": 5_000}
# The styles of rows without a call stack, by the prefix of the row's name.
_WITHOUT_STACK = {
    "OS call: ": "blocked", "off the CPU": "edge", "not sampled": "unknown", "on the CPU, too few": "unknown",
    "outside of OS calls": "unknown",
}  # fmt: skip


@dataclass(frozen=True)
class Flame:
    """The picture: rows of bars from the top, the height in pixels, and a description in words."""

    rows: list[list[Bar]]
    height: int
    label: str
    is_cut: bool


@dataclass
class Node:
    """A frame with the calls made from it, or a range with the ranges inside: its time, and the calls if counted."""

    name: str
    style: str
    time_ns: float = 0.0
    calls: int = 0
    children: dict[str, Node] = field(default_factory=dict)

    def add_child(self, name: str, style: str, time_ns: float) -> Node:
        """Add time to the child of this name, and return the child."""
        node = self.children.setdefault(name, Node(name, style))
        node.time_ns += time_ns
        return node


def draw_flame(answer: Answer) -> Flame | None:
    """Draw the report `cpu-work` by stack. None if no call stack has more than one frame."""
    rows = answer.dicts()
    chains = [row["what"].split(";") for row in rows if row["samples"] and _pick_style(row["what"]) == "call"]
    if not any(len(chain) > 1 for chain in chains):
        return None
    skipped = _count_shared_frames(chains)
    root = Node("CPU work that the GPU waits for", "starved")
    for row in rows:
        root.time_ns += row["time_ns"]
        node = root.add_child(row["nvtx_path"] or "outside NVTX ranges", "range", row["time_ns"])
        style = _pick_style(row["what"])
        frames = row["what"].split(";")[skipped:] if style == "call" else [row["what"]]
        for frame in frames:
            node = node.add_child(frame, style, row["time_ns"])
    largest = sorted(root.children.values(), key=lambda node: -node.time_ns)[:3]
    label = f"{root.name}: {value('time_ns', root.time_ns)}; " + ", ".join(
        f"{printable(node.name)} {value('time_ns', node.time_ns)}" for node in largest
    )
    return _draw_tree(root, "this CPU work", label)


def draw_icicle(trace: Session, steps: StepOptions) -> Flame | None:
    """Draw the push/pop NVTX ranges: host time by nesting. None if no range is nested."""
    rows = ask(trace, "nested_ranges", steps, **RANGE_LIMITS)
    if not any(row.depth > 1 for row in rows):
        return None
    root = Node("NVTX ranges", "edge")
    nodes_by_path = {None: root}
    for row in rows:
        # Rows are sorted by depth, so the parent is there already, unless the query left it out.
        parent = nodes_by_path.get(row.parent_path)
        if parent is not None:
            node = parent.children.setdefault(f"{row.path}\n{row.name}", Node(row.name, "range"))
            node.time_ns += row.host_ns or 0  # NULL if the ranges do not end
            node.calls += row.calls
            nodes_by_path[row.path] = node
    _extend_open_ranges(root)
    largest = ", ".join(
        f"{printable(node.name)} {value('time_ns', node.time_ns)}"
        for node in sorted(root.children.values(), key=lambda node: -node.time_ns)[:3]
    )
    return (
        _draw_tree(root, "the time in NVTX ranges", f"{root.name}: {value('time_ns', root.time_ns)}; {largest}")
        if root.time_ns
        else None
    )


def _draw_tree(root: Node, total_name: str, label: str) -> Flame:
    """Draw a tree level by level. `total_name` is the name of the root's time in tooltips."""
    levels: list[list[Bar]] = []
    is_cut = any([_draw_node(root, 0.0, 0, (root.time_ns, total_name), levels)])
    return Flame(levels, LEVEL_HEIGHT * len(levels), label, is_cut)


def _pick_style(row_name: str) -> str:
    return next((style for prefix, style in _WITHOUT_STACK.items() if row_name.startswith(prefix)), "call")


def _count_shared_frames(chains: Sequence[Sequence[str]]) -> int:
    """Count the outermost frames that all chains share, without the last frame of each: the program's start-up code."""
    shared = 0
    while all(len(chain) > shared + 1 and chain[shared] == chains[0][shared] for chain in chains):
        shared += 1
    return shared


def _draw_node(node: Node, left: float, depth: int, total: tuple[float, str], levels: list[list[Bar]]) -> bool:
    """Draw a node and its children, longest first. Return whether some were too narrow or too deep to draw.

    `total` is the root's time and its name.
    """
    while len(levels) <= depth:
        levels.append([])
    share = node.time_ns / total[0]
    name = printable(node.name)
    tip = f"{name}\n{value('time_ns', node.time_ns)}, {value('work_pct', 100 * share)} of {total[1]}"
    if node.calls:
        tip += f"\n{node.calls:,} times, {value('time_ns', node.time_ns / node.calls)} on average"
    name = name if depth else f"{name}: {value('time_ns', node.time_ns)}"
    levels[depth].append(Bar(100 * left, 100 * share, node.style, name, tip))
    if depth + 1 >= MAX_LEVELS:
        return bool(node.children)
    return any([*_draw_children(node, left, depth, total, levels)])


def _draw_children(
    node: Node, left: float, depth: int, total: tuple[float, str], levels: list[list[Bar]]
) -> Iterator[bool]:
    for child in sorted(node.children.values(), key=lambda child: (-child.time_ns, child.name)):
        if child.time_ns < MIN_SHARE * total[0]:
            yield True
        else:
            yield _draw_node(child, left, depth + 1, total, levels)
            left += child.time_ns / total[0]


def _extend_open_ranges(node: Node) -> None:
    """Make a range that was never closed as long as the ranges inside it."""
    for child in node.children.values():
        _extend_open_ranges(child)
    node.time_ns = max(node.time_ns, sum(child.time_ns for child in node.children.values()))
