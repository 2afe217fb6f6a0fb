"""Loops of a kernel: back edges in its control flow, and the blocks from which they are reached.

A jump backward is a loop only if its target dominates it (Aho, Lam, Sethi, Ullman: Compilers, natural loops): compilers
move seldom-used blocks behind the end, and these jump backward without repeating anything.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsys_insight.kernel_code.instructions import Instruction, Kernel

_JUMPS = {"BRA", "JMP", "BRX", "BRXU", "JMX", "JMXU"}
_INDIRECT = {"BRX", "BRXU", "JMX", "JMXU"}
_ENDS = {"EXIT", "RET", "KILL", "BPT", "RTT"}


@dataclass(slots=True)
class Loop:
    """A natural loop: the positions of its instructions in the kernel, and the loops in it.

    `number` says where it is nested: 1.2 is the second loop in the first. `depth` is 1 for an outermost one.
    """

    head: int
    positions: list[int]
    number: str = ""
    depth: int = 1
    inner: list[Loop] = field(default_factory=list)

    @property
    def is_innermost(self) -> bool:
        """Whether there is no loop in it."""
        return not self.inner


def loops_of(kernel: Kernel) -> list[Loop]:
    """The loops of a kernel, each before those that are in it, in the order of their addresses."""
    flow = _Flow(kernel.instructions)
    bodies = flow.natural_loops()
    found = [
        Loop(head, sorted(at for block in body for at in flow.positions(block)))
        for head, body in sorted(bodies.items())
    ]
    found.sort(key=lambda loop: (-len(loop.positions), loop.head))
    outermost: list[Loop] = []
    # Two natural loops of different heads are nested or apart, so the last one found around a head is the innermost.
    around: dict[int, Loop] = {}
    for loop in found:
        outer = around.get(loop.positions[0])
        (outer.inner if outer else outermost).append(loop)
        around.update(dict.fromkeys(loop.positions, loop))
    return _numbered(outermost)


def _numbered(outermost: list[Loop]) -> list[Loop]:
    """Number loops by their addresses, each before those in it; text may nest deeper than Python's stack."""
    found: list[Loop] = []
    waiting = [("", 1, outermost)]
    while waiting:
        prefix, depth, loops = waiting.pop()
        for number, loop in enumerate(sorted(loops, key=lambda one: one.positions[0]), 1):
            loop.number, loop.depth = f"{prefix}{number}", depth
            found.append(loop)
            waiting.append((f"{loop.number}.", depth + 1, loop.inner))
    return sorted(found, key=lambda loop: (loop.positions[0], loop.depth))


class _Flow:
    """Basic blocks, and which follows which."""

    def __init__(self, code: list[Instruction]) -> None:
        self.code = code
        at = {one.address: position for position, one in enumerate(code)}
        reconverge = _reconvergence(code, at)
        leaders, edges, roots = {0}, defaultdict(set), {0}
        for position, one in enumerate(code):
            targets = [at[target] for target in one.targets if target in at]
            if one.mnemonic == "BSYNC":
                targets = reconverge.get(position, [])
            elif one.mnemonic == "CALL":
                roots.update(targets)  # comes back to what follows it
                leaders.update(targets)
                continue
            elif one.mnemonic not in _JUMPS | _ENDS:
                continue
            leaders.update([*targets, position + 1])
            edges[position].update(targets)
            if one.is_predicated or _is_conditional(one) or (one.mnemonic == "BSYNC" and not targets):
                edges[position].add(position + 1)
        self.starts = sorted(leader for leader in leaders if leader < len(code))
        number = {start: block for block, start in enumerate(self.starts)}
        self.after: list[set[int]] = []
        for block in range(len(self.starts)):
            last = self._end(block) - 1
            following = edges[last] if last in edges else {last + 1}
            self.after.append({number[one] for one in following if one in number})
        self.roots = sorted(number[root] for root in roots)
        if any(one.mnemonic in _INDIRECT and not one.targets for one in code):
            reached = {other for others in self.after for other in others}
            self.roots = sorted({*self.roots, *(block for block in range(len(self.starts)) if block not in reached)})

    def positions(self, block: int) -> range:
        """The positions of a block's instructions."""
        return range(self.starts[block], self._end(block))

    def natural_loops(self) -> dict[int, set[int]]:
        """The blocks of each loop by its head; back edges to one head are one loop."""
        dominators, order = self._dominators()
        spans = _spans(dominators, order)
        before: dict[int, list[int]] = defaultdict(list)
        for block in order:
            for other in self.after[block]:
                before[other].append(block)
        bodies: dict[int, set[int]] = {}
        for tail in order:
            for head in self.after[tail]:
                if spans[head][0] <= spans[tail][0] < spans[head][1] and not self._is_trap(head, tail):
                    body = bodies.setdefault(head, {head})
                    waiting = [tail]
                    while waiting:
                        block = waiting.pop()
                        if block not in body:
                            body.add(block)
                            waiting += before[block]
        return bodies

    def _is_trap(self, head: int, tail: int) -> bool:
        """Whether it is the jump to itself that fills the space behind a function's end."""
        return head == tail and len(self.positions(head)) == 1 and self.code[self.starts[head]].mnemonic == "BRA"

    def _end(self, block: int) -> int:
        return self.starts[block + 1] if block + 1 < len(self.starts) else len(self.code)

    def _dominators(self) -> tuple[dict[int, int], list[int]]:
        """Immediate dominators of the blocks that are reached, and these in reverse postorder.

        After Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm; -1 is a block before all roots.
        """
        order = self._reverse_postorder()
        place = {-1: -1} | {block: number for number, block in enumerate(order)}
        before: dict[int, list[int]] = defaultdict(list)
        for block in order:
            for other in self.after[block]:
                before[other].append(block)
        for root in self.roots:
            before[root].append(-1)
        found = {-1: -1}
        changed = True
        while changed:
            changed = False
            for block in order:
                known = [one for one in before[block] if one in found]
                new = known[0]
                for other in known[1:]:
                    while new != other:
                        if place[new] > place[other]:
                            new = found[new]
                        else:
                            other = found[other]  # noqa: PLW2901 - climbs
                if found.get(block) != new:
                    found[block], changed = new, True
        return found, order

    def _reverse_postorder(self) -> list[int]:
        seen: set[int] = set()
        left: list[int] = []
        for root in self.roots:
            stack = [(root, False)]
            while stack:
                block, is_done = stack.pop()
                if is_done:
                    left.append(block)
                elif block not in seen:
                    seen.add(block)
                    stack.append((block, True))
                    stack += [(other, False) for other in sorted(self.after[block]) if other not in seen]
        return left[::-1]


def _spans(dominators: dict[int, int], order: list[int]) -> dict[int, tuple[int, int]]:
    """Number the tree of dominators so that a block dominates those whose number lies in its span."""
    below: dict[int, list[int]] = defaultdict(list)
    for block in order:
        below[dominators[block]].append(block)
    spans: dict[int, tuple[int, int]] = {}
    count, stack = 0, [(block, False) for block in below[-1]]
    while stack:
        block, is_done = stack.pop()
        if is_done:
            spans[block] = (spans[block][0], count)
        else:
            spans[block] = (count, count)
            count += 1
            stack += [(block, True), *((other, False) for other in below[block])]
    return spans


def _is_conditional(one: Instruction) -> bool:
    """Whether a jump without a predicate before it may go on: by a condition of the warp (DIV) or a predicate."""
    words = one.operands.replace("!", "").split(",")
    return bool({"DIV", "CONV", "ANY"} & set(one.modifiers)) or (
        one.mnemonic == "BRA" and len(words) > 1 and words[0].lstrip("~").startswith(("P", "UP"))
    )


def _reconvergence(code: list[Instruction], at: dict[int, int]) -> dict[int, list[int]]:
    """Where threads go on that meet at a BSYNC: where the last BSSY of the register before it says."""
    named: dict[str, int] = {}
    found: dict[int, list[int]] = {}
    for position, one in enumerate(code):
        register = one.operands.partition(",")[0].strip()
        if one.mnemonic == "BSSY" and one.targets and one.targets[0] in at:
            named[register] = at[one.targets[0]]
        elif one.mnemonic == "BSYNC" and register in named:
            found[position] = [named[register]]
    return found
