"""Regions of a kernel's code: the kernel itself and its loops, each with counts of its instructions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from nsys_insight.kernel_code.instructions import UNKNOWN, Instruction, Kernel, classify, list_multiply_add_classes
from nsys_insight.kernel_code.loops import Loop, find_loops
from nsys_insight.kernel_code.source_page import EXECUTED, SAMPLES

# Modifiers of instructions that poll a barrier.
_POLL_MODIFIERS = {"TRYWAIT"}
_LOAD_CLASSES = ("global_load", "async_copy")


@dataclass
class Region:
    """A complete kernel, or one of its loops with the loops nested in it: the column `part` of answers.

    `code` are its instructions in the order of their addresses.
    """

    kernel: Kernel
    code: list[Instruction]
    loop: Loop | None = None
    classes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Look up the class of each instruction once."""
        self.classes = [classify(instruction) for instruction in self.code]

    @property
    def name(self) -> str:
        """Return the name: kernel, loop 1, inner loop 1.1, waiting loop 2."""
        if self.loop is None:
            return "kernel"
        is_inner_loop = self.loop.is_innermost and self.loop.depth > 1
        kind = "waiting loop" if self.is_waiting_loop else "inner loop" if is_inner_loop else "loop"
        return f"{kind} {self.loop.number}"

    @property
    def is_waiting_loop(self) -> bool:
        """Return whether this is a loop that only waits: it polls until something arrives."""
        has_poll = any(
            _POLL_MODIFIERS & set(instruction.modifiers) or instruction.mnemonic == "NANOSLEEP"
            for instruction in self.code
        )
        return self.loop is not None and has_poll and not (self.multiply_add_count or self.load_count)

    @cached_property
    def class_counts(self) -> Counter[str]:
        """Return the number of instructions of each class."""
        return Counter(self.classes)

    @property
    def instruction_count(self) -> int:
        """Return the number of instructions, without the NOPs that pad the end."""
        return len(self.code) - sum(instruction.mnemonic == "NOP" for instruction in self.code)

    @property
    def multiply_add_count(self) -> int:
        """Return the number of multiply-adds, on tensor cores or elsewhere."""
        return sum(self.class_counts[name] for name in list_multiply_add_classes())

    @property
    def load_count(self) -> int:
        """Return the number of loads from global memory, into registers or asynchronously into shared memory."""
        return sum(self.class_counts[name] for name in _LOAD_CLASSES)

    @property
    def compute_per_load(self) -> float | None:
        """Return the multiply-adds per load from global memory; None without loads and with TMA copies.

        One instruction of the TMA loads a full tile.
        """
        return self.multiply_add_count / self.load_count if self.load_count and not self.class_counts["tma"] else None

    def select(self, *classes: str) -> list[Instruction]:
        """Return the instructions of these classes."""
        return [
            instruction
            for instruction, class_name in zip(self.code, self.classes, strict=True)
            if class_name in classes
        ]

    def count_widths(self, *classes: str) -> Counter[int]:
        """Count the accesses of these classes by their width in bits."""
        return Counter(instruction.width_bits for instruction in self.select(*classes))

    def count_bytes(self, class_name: str) -> int:
        """Count the bytes that accesses of a class move for one thread, each instruction taken once."""
        return sum(instruction.width_bits // 8 for instruction in self.select(class_name))

    @property
    def unknown_mnemonics(self) -> Counter[str]:
        """Return the number of instructions of each mnemonic that is not in the catalog."""
        return Counter(instruction.mnemonic for instruction in self.select(UNKNOWN))

    @property
    def issue_cycles(self) -> int | None:
        """Return the sum of the stall counts: the fewest cycles in which a warp can issue all instructions once."""
        stalls = [
            instruction.control.stall
            for instruction in self.code
            if instruction.control and instruction.mnemonic != "NOP"
        ]
        return sum(stalls) if stalls else None

    @property
    def stall_codes(self) -> dict[str, Counter[int]]:
        """Return the number of multiply-adds by mnemonic and stall count, the cycles without issue after each."""
        counts_by_mnemonic: dict[str, Counter[int]] = {}
        for instruction in self.select(*list_multiply_add_classes()):
            if instruction.control:
                counts_by_mnemonic.setdefault(instruction.mnemonic, Counter())[instruction.control.stall] += 1
        return counts_by_mnemonic

    @property
    def source_lines(self) -> str | None:
        """Return the lines of the source that most of the code comes from: gemm.cu:12-19."""
        lines = [instruction.source_line for instruction in self.code if instruction.source_line]
        if not lines:
            return None
        file = Counter(file for file, _ in lines).most_common(1)[0][0]
        numbers = [number for name, number in lines if name == file]
        first, last = min(numbers), max(numbers)
        return f"{file.replace(chr(92), '/').rpartition('/')[2]}:{first}" + (f"-{last}" if last > first else "")

    def sum_counts(self, key: str) -> float | None:
        """Sum one of ncu's counts over the instructions; None if ncu has no such count."""
        counts = [instruction.counts[key] for instruction in self.code if key in instruction.counts]
        return sum(counts) if counts else None


def split_regions(kernel: Kernel) -> list[Region]:
    """Split a kernel into regions: the kernel first, then its loops, each before the loops in it."""
    loops = [
        Region(kernel, [kernel.instructions[position] for position in loop.positions], loop)
        for loop in find_loops(kernel)
    ]
    return [Region(kernel, kernel.instructions), *loops]


def find_hottest_loop(regions: list[Region]) -> Region | None:
    """Find the innermost loop with most executed instructions, by ncu's counts; None without counts."""
    inner_loops = [
        region for region in regions if region.loop and region.loop.is_innermost and region.sum_counts(EXECUTED)
    ]
    return max(inner_loops, key=lambda region: region.sum_counts(EXECUTED) or 0, default=None)


def sort_by_samples(code: list[Instruction]) -> list[Instruction]:
    """Return the instructions with stall samples, those with most samples first."""
    return sorted(
        (instruction for instruction in code if instruction.counts.get(SAMPLES)),
        key=lambda instruction: (-instruction.counts[SAMPLES], instruction.address),
    )
