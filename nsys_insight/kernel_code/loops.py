"""Loops of a kernel: back edges in its control flow, and the blocks that can reach them.

A backward jump is a loop only if its target dominates it (Aho, Lam, Sethi, Ullman: Compilers, natural loops). Compilers
move rarely used blocks behind the end of a function; these jump backward without repeating anything.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsys_insight.kernel_code.instructions import Instruction, Kernel

_JUMP_MNEMONICS = {"BRA", "JMP", "BRX", "BRXU", "JMX", "JMXU"}
_INDIRECT_JUMPS = {"BRX", "BRXU", "JMX", "JMXU"}
_END_MNEMONICS = {"EXIT", "RET", "KILL", "BPT", "RTT"}


@dataclass(slots=True)
class Loop:
    """A natural loop: the positions of its instructions in the kernel, and the loops nested in it.

    `number` is the place in the nesting: 1.2 is the second loop in the first. `depth` is 1 for an outermost loop.
    """

    head: int
    positions: list[int]
    number: str = ""
    depth: int = 1
    inner: list[Loop] = field(default_factory=list)

    @property
    def is_innermost(self) -> bool:
        """Return whether no loop is nested in this one."""
        return not self.inner


def find_loops(kernel: Kernel) -> list[Loop]:
    """Find the loops of a kernel in the order of their addresses, each before the loops nested in it."""
    graph = _FlowGraph(kernel.instructions)
    loops = [
        Loop(head, sorted(position for block in body for position in graph.list_positions(block)))
        for head, body in sorted(graph.find_natural_loops().items())
    ]
    loops.sort(key=lambda loop: (-len(loop.positions), loop.head))
    outermost: list[Loop] = []
    # Two natural loops with different heads are nested or disjoint. Large loops come first here, so the last loop
    # that covers a position is the innermost one.
    innermost_by_position: dict[int, Loop] = {}
    for loop in loops:
        outer = innermost_by_position.get(loop.positions[0])
        (outer.inner if outer else outermost).append(loop)
        innermost_by_position.update(dict.fromkeys(loop.positions, loop))
    return _number_loops(outermost)


def _number_loops(outermost: list[Loop]) -> list[Loop]:
    """Assign numbers to loops by their addresses, each before the loops in it.

    There is no recursion, because a text may nest loops deeper than Python's stack.
    """
    numbered_loops: list[Loop] = []
    pending = [("", 1, outermost)]
    while pending:
        prefix, depth, loops = pending.pop()
        for number, loop in enumerate(sorted(loops, key=lambda loop: loop.positions[0]), 1):
            loop.number, loop.depth = f"{prefix}{number}", depth
            numbered_loops.append(loop)
            pending.append((f"{loop.number}.", depth + 1, loop.inner))
    return sorted(numbered_loops, key=lambda loop: (loop.positions[0], loop.depth))


class _FlowGraph:
    """The control flow graph: basic blocks and their successors."""

    def __init__(self, code: list[Instruction]) -> None:
        self.code = code
        position_by_address = {instruction.address: position for position, instruction in enumerate(code)}
        reconvergence = _find_reconvergence(code, position_by_address)
        leaders, edges, roots = {0}, defaultdict(set), {0}
        for position, instruction in enumerate(code):
            targets = [position_by_address[target] for target in instruction.targets if target in position_by_address]
            if instruction.mnemonic == "BSYNC":
                targets = reconvergence.get(position, [])
            elif instruction.mnemonic == "CALL":
                roots.update(targets)  # returns to the next instruction
                leaders.update(targets)
                continue
            elif instruction.mnemonic not in _JUMP_MNEMONICS | _END_MNEMONICS:
                continue
            leaders.update([*targets, position + 1])
            edges[position].update(targets)
            is_open_sync = instruction.mnemonic == "BSYNC" and not targets
            if instruction.is_predicated or _is_conditional(instruction) or is_open_sync:
                edges[position].add(position + 1)
        self.starts = sorted(leader for leader in leaders if leader < len(code))
        block_by_start = {start: block for block, start in enumerate(self.starts)}
        self.successors: list[set[int]] = []
        for block in range(len(self.starts)):
            last = self._find_end(block) - 1
            next_positions = edges[last] if last in edges else {last + 1}
            self.successors.append(
                {block_by_start[position] for position in next_positions if position in block_by_start}
            )
        self.roots = sorted(block_by_start[root] for root in roots)
        if any(instruction.mnemonic in _INDIRECT_JUMPS and not instruction.targets for instruction in code):
            jump_targets = {successor for successors in self.successors for successor in successors}
            unreached_blocks = (block for block in range(len(self.starts)) if block not in jump_targets)
            self.roots = sorted({*self.roots, *unreached_blocks})

    def list_positions(self, block: int) -> range:
        """Return the positions of a block's instructions."""
        return range(self.starts[block], self._find_end(block))

    def find_natural_loops(self) -> dict[int, set[int]]:
        """Find the blocks of each natural loop, by its head. Back edges to the same head form one loop."""
        dominators, order = self._find_dominators()
        spans = _number_dominator_tree(dominators, order)
        predecessors = self._find_predecessors(order)
        bodies: dict[int, set[int]] = {}
        for tail in order:
            for head in self.successors[tail]:
                if spans[head][0] <= spans[tail][0] < spans[head][1] and not self._is_trap(head, tail):
                    body = bodies.setdefault(head, {head})
                    pending = [tail]
                    while pending:
                        block = pending.pop()
                        if block not in body:
                            body.add(block)
                            pending += predecessors[block]
        return bodies

    def _is_trap(self, head: int, tail: int) -> bool:
        """Return whether this is the jump to itself that pads the space behind a function's end."""
        is_single = head == tail and len(self.list_positions(head)) == 1
        return is_single and self.code[self.starts[head]].mnemonic == "BRA"

    def _find_end(self, block: int) -> int:
        return self.starts[block + 1] if block + 1 < len(self.starts) else len(self.code)

    def _find_predecessors(self, order: list[int]) -> dict[int, list[int]]:
        predecessors: dict[int, list[int]] = defaultdict(list)
        for block in order:
            for successor in self.successors[block]:
                predecessors[successor].append(block)
        return predecessors

    def _find_dominators(self) -> tuple[dict[int, int], list[int]]:
        """Find the immediate dominators of the reachable blocks, and these blocks in reverse postorder.

        The algorithm is that of Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm. -1 is a virtual block
        before all roots.
        """
        order = self._sort_reverse_postorder()
        index_by_block = {-1: -1} | {block: index for index, block in enumerate(order)}
        predecessors = self._find_predecessors(order)
        for root in self.roots:
            predecessors[root].append(-1)
        dominators = {-1: -1}
        is_changing = True
        while is_changing:
            is_changing = False
            for block in order:
                candidates = [predecessor for predecessor in predecessors[block] if predecessor in dominators]
                dominator = candidates[0]
                for candidate in candidates[1:]:
                    while dominator != candidate:
                        if index_by_block[dominator] > index_by_block[candidate]:
                            dominator = dominators[dominator]
                        else:
                            candidate = dominators[candidate]  # noqa: PLW2901 - climbs
                if dominators.get(block) != dominator:
                    dominators[block], is_changing = dominator, True
        return dominators, order

    def _sort_reverse_postorder(self) -> list[int]:
        visited: set[int] = set()
        postorder: list[int] = []
        for root in self.roots:
            stack = [(root, False)]
            while stack:
                block, is_done = stack.pop()
                if is_done:
                    postorder.append(block)
                elif block not in visited:
                    visited.add(block)
                    stack.append((block, True))
                    stack += [
                        (successor, False) for successor in sorted(self.successors[block]) if successor not in visited
                    ]
        return postorder[::-1]


def _number_dominator_tree(dominators: dict[int, int], order: list[int]) -> dict[int, tuple[int, int]]:
    """Assign numbers in the dominator tree. A block dominates the blocks whose number is in its span."""
    children: dict[int, list[int]] = defaultdict(list)
    for block in order:
        children[dominators[block]].append(block)
    spans: dict[int, tuple[int, int]] = {}
    count, stack = 0, [(block, False) for block in children[-1]]
    while stack:
        block, is_done = stack.pop()
        if is_done:
            spans[block] = (spans[block][0], count)
        else:
            spans[block] = (count, count)
            count += 1
            stack += [(block, True), *((child, False) for child in children[block])]
    return spans


def _is_conditional(instruction: Instruction) -> bool:
    """Return whether a jump without a leading predicate may fall through.

    It depends on a condition of the warp (DIV, CONV, ANY) or on a predicate as operand.
    """
    words = instruction.operands.replace("!", "").split(",")
    return bool({"DIV", "CONV", "ANY"} & set(instruction.modifiers)) or (
        instruction.mnemonic == "BRA" and len(words) > 1 and words[0].lstrip("~").startswith(("P", "UP"))
    )


def _find_reconvergence(code: list[Instruction], position_by_address: dict[int, int]) -> dict[int, list[int]]:
    """Find where threads continue after a BSYNC: at the target of the last BSSY of its register before it."""
    target_by_register: dict[str, int] = {}
    reconvergence: dict[int, list[int]] = {}
    for position, instruction in enumerate(code):
        register = instruction.operands.partition(",")[0].strip()
        if instruction.mnemonic == "BSSY" and instruction.targets and instruction.targets[0] in position_by_address:
            target_by_register[register] = position_by_address[instruction.targets[0]]
        elif instruction.mnemonic == "BSYNC" and register in target_by_register:
            reconvergence[position] = [target_by_register[register]]
    return reconvergence
