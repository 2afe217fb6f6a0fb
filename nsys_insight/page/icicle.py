"""NVTX ranges as an icicle: host time by the place in the nesting, from the outermost ranges down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.page.flame import DEEPEST, Flame, Node, drawn
from nsys_insight.page.queries import ask
from nsys_insight.text.cells import printable
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# What is asked for: more ranges than that are narrower than can be seen.
RANGES = {"deepest": DEEPEST - 1, "most": 5_000}


def icicle(trace: Session, steps: StepOptions) -> Flame | None:
    """Draw the push/pop ranges; None where none is inside of another."""
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
    _hold(root)
    largest = ", ".join(
        f"{printable(node.name)} {value('time_ns', node.time_ns)}"
        for node in sorted(root.called.values(), key=lambda node: -node.time_ns)[:3]
    )
    return (
        drawn(root, "the time in NVTX ranges", f"{root.name}: {value('time_ns', root.time_ns)}; {largest}")
        if root.time_ns
        else None
    )


def _hold(node: Node) -> None:
    """Let a range that was never closed be as long as what is in it."""
    for inner in node.called.values():
        _hold(inner)
    node.time_ns = max(node.time_ns, sum(inner.time_ns for inner in node.called.values()))
