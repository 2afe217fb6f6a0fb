"""Flame pictures, a row for each level: CPU work that the GPU waits for, by call stack, and NVTX ranges by nesting."""

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

# The narrowest bar that is drawn, as a share of the picture; the deepest level; the height of a level in pixels.
LEAST_SHARE, DEEPEST = 0.004, 20
ROW = 20
# Parameters of the query for NVTX ranges; further ones would be too narrow to be drawn.
RANGES = {"deepest": DEEPEST - 1, "most": 5_000}
# The styles of rows without a call stack, by how they begin.
_WITHOUT_STACK = {
    "OS call: ": "blocked", "off the CPU": "edge", "not sampled": "unknown", "on the CPU, too few": "unknown",
    "outside of OS calls": "unknown",
}  # fmt: skip


@dataclass(frozen=True)
class Flame:
    """The picture: rows of bars from the top, how high it is, and what it says in words."""

    rows: list[list[Bar]]
    height: int
    label: str
    is_cut: bool


@dataclass
class Node:
    """What was called from one place, or is inside of one range: for how long, and how often where that is known."""

    name: str
    style: str
    time_ns: float = 0.0
    calls: int = 0
    called: dict[str, Node] = field(default_factory=dict)

    def within(self, name: str, style: str, time_ns: float) -> Node:
        """Add time to what is called from here by a name."""
        node = self.called.setdefault(name, Node(name, style))
        node.time_ns += time_ns
        return node


def flame(answer: Answer) -> Flame | None:
    """Draw the report `cpu-work` by stack; None where no call chains tell anything."""
    rows = answer.dicts()
    chains = [row["what"].split(";") for row in rows if row["samples"] and _style(row["what"]) == "call"]
    if not any(len(chain) > 1 for chain in chains):
        return None
    skipped = _shared_frames(chains)
    root = Node("CPU work that the GPU waits for", "starved")
    for row in rows:
        root.time_ns += row["time_ns"]
        node = root.within(row["nvtx_path"] or "outside NVTX ranges", "range", row["time_ns"])
        style = _style(row["what"])
        frames = row["what"].split(";")[skipped:] if style == "call" else [row["what"]]
        for frame in frames:
            node = node.within(frame, style, row["time_ns"])
    largest = sorted(root.called.values(), key=lambda node: -node.time_ns)[:3]
    label = f"{root.name}: {value('time_ns', root.time_ns)}; " + ", ".join(
        f"{printable(node.name)} {value('time_ns', node.time_ns)}" for node in largest
    )
    return _flame(root, "this CPU work", label)


def icicle(trace: Session, steps: StepOptions) -> Flame | None:
    """Draw the push/pop NVTX ranges, host time by nesting; None where none is inside of another."""
    rows = ask(trace, "nested_ranges", steps, **RANGES)
    if not any(row.depth > 1 for row in rows):
        return None
    root = Node("NVTX ranges", "edge")
    found = {None: root}
    for row in rows:
        # What is around it is known by now, for rows come by depth; what was left out has nothing inside.
        around = found.get(row.parent_path)
        if around is not None:
            node = around.called.setdefault(f"{row.path}\n{row.name}", Node(row.name, "range"))
            node.time_ns += row.host_ns or 0  # of ranges that do not end
            node.calls += row.calls
            found[row.path] = node
    _extend(root)
    largest = ", ".join(
        f"{printable(node.name)} {value('time_ns', node.time_ns)}"
        for node in sorted(root.called.values(), key=lambda node: -node.time_ns)[:3]
    )
    return (
        _flame(root, "the time in NVTX ranges", f"{root.name}: {value('time_ns', root.time_ns)}; {largest}")
        if root.time_ns
        else None
    )


def _flame(root: Node, whole: str, label: str) -> Flame:
    """Draw what is in a node, level by level; `whole` is what its time is called."""
    levels: list[list[Bar]] = []
    is_cut = any([_draw(root, 0.0, 0, (root.time_ns, whole), levels)])
    return Flame(levels, ROW * len(levels), label, is_cut)


def _style(what: str) -> str:
    return next((style for begin, style in _WITHOUT_STACK.items() if what.startswith(begin)), "call")


def _shared_frames(chains: Sequence[Sequence[str]]) -> int:
    """How many outermost frames all chains have in common, but for the last of each: what starts every program."""
    shared = 0
    while all(len(chain) > shared + 1 and chain[shared] == chains[0][shared] for chain in chains):
        shared += 1
    return shared


def _draw(node: Node, left: float, depth: int, whole: tuple[float, str], levels: list[list[Bar]]) -> bool:
    """Draw a node and what it called, the longest first; tell whether something was too small or too deep."""
    while len(levels) <= depth:
        levels.append([])
    share = node.time_ns / whole[0]
    name = printable(node.name)
    tip = f"{name}\n{value('time_ns', node.time_ns)}, {value('work_pct', 100 * share)} of {whole[1]}"
    if node.calls:
        tip += f"\n{node.calls:,} times, {value('time_ns', node.time_ns / node.calls)} on average"
    name = name if depth else f"{name}: {value('time_ns', node.time_ns)}"
    levels[depth].append(Bar(100 * left, 100 * share, node.style, name, tip))
    if depth + 1 >= DEEPEST:
        return bool(node.called)
    return any([*_below(node, left, depth, whole, levels)])


def _below(node: Node, left: float, depth: int, whole: tuple[float, str], levels: list[list[Bar]]) -> Iterator[bool]:
    for called in sorted(node.called.values(), key=lambda each: (-each.time_ns, each.name)):
        if called.time_ns < LEAST_SHARE * whole[0]:
            yield True
        else:
            yield _draw(called, left, depth + 1, whole, levels)
            left += called.time_ns / whole[0]


def _extend(node: Node) -> None:
    """Make a range that was never closed as long as what is in it."""
    for inner in node.called.values():
        _extend(inner)
    node.time_ns = max(node.time_ns, sum(inner.time_ns for inner in node.called.values()))
