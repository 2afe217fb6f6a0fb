"""A kernel and its loops, each with what is counted in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from nsys_insight.kernel_code.instructions import UNKNOWN, class_of, multiply_add_classes
from nsys_insight.kernel_code.loops import loops_of
from nsys_insight.kernel_code.source_page import EXECUTED, SAMPLES

if TYPE_CHECKING:
    from nsys_insight.kernel_code.instructions import Instruction, Kernel
    from nsys_insight.kernel_code.loops import Loop

# Modifiers of instructions that poll a barrier.
_POLLS = {"TRYWAIT"}
_LOADS = ("global_load", "async_copy")


@dataclass
class Part:
    """A kernel as a whole, or one of its loops (with the loops in it).

    `code` are its instructions in the order of their addresses.
    """

    kernel: Kernel
    code: list[Instruction]
    loop: Loop | None = None
    classes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Look up the class of each instruction once."""
        self.classes = [class_of(one) for one in self.code]

    @property
    def name(self) -> str:
        """What it is called: kernel, loop 1, inner loop 1.1, waiting loop 2."""
        if self.loop is None:
            return "kernel"
        kind = (
            "waiting loop" if self.waits else "inner loop" if self.loop.is_innermost and self.loop.depth > 1 else "loop"
        )
        return f"{kind} {self.loop.number}"

    @property
    def waits(self) -> bool:
        """Whether it is a loop that does nothing but wait: it asks again and again whether something has arrived."""
        polls = any(_POLLS & set(one.modifiers) or one.mnemonic == "NANOSLEEP" for one in self.code)
        return self.loop is not None and polls and not (self.multiply_adds or self.loads)

    @cached_property
    def counted(self) -> Counter[str]:
        """How many instructions of each class there are."""
        return Counter(self.classes)

    @property
    def instructions(self) -> int:
        """How many there are, without the NOPs that fill up the end."""
        return len(self.code) - sum(one.mnemonic == "NOP" for one in self.code)

    @property
    def multiply_adds(self) -> int:
        """How many of them multiply and add, on tensor cores or elsewhere."""
        return sum(self.counted[name] for name in multiply_add_classes())

    @property
    def loads(self) -> int:
        """How many load from global memory, into registers or asynchronously into shared memory."""
        return sum(self.counted[name] for name in _LOADS)

    @property
    def compute_per_load(self) -> float | None:
        """Multiply-adds per load from global memory; None where one instruction of the TMA loads a whole tile."""
        return self.multiply_adds / self.loads if self.loads and not self.counted["tma"] else None

    def of(self, *names: str) -> list[Instruction]:
        """The instructions of some classes."""
        return [one for one, found in zip(self.code, self.classes, strict=True) if found in names]

    def widths(self, *names: str) -> Counter[int]:
        """How many accesses of these classes there are of each width in bits."""
        return Counter(one.width for one in self.of(*names))

    def bytes_of(self, name: str) -> int:
        """The bytes that the accesses of a class move for one thread, each instruction taken once."""
        return sum(one.width // 8 for one in self.of(name))

    @property
    def unknown(self) -> Counter[str]:
        """The mnemonics that the catalog does not have."""
        return Counter(one.mnemonic for one in self.of(UNKNOWN))

    @property
    def issue_cycles(self) -> int | None:
        """The sum of the stall counts: the least cycles that a warp needs to issue all instructions once."""
        known = [one.control.stall for one in self.code if one.control and one.mnemonic != "NOP"]
        return sum(known) if known else None

    @property
    def stall_codes(self) -> dict[str, Counter[int]]:
        """How many multiply-adds of each kind are followed by so many cycles without issue."""
        found: dict[str, Counter[int]] = {}
        for one in self.of(*multiply_add_classes()):
            if one.control:
                found.setdefault(one.mnemonic, Counter())[one.control.stall] += 1
        return found

    @property
    def place(self) -> str | None:
        """The lines of the source that most of it comes from: gemm.cu:12-19."""
        lines = [one.line for one in self.code if one.line]
        if not lines:
            return None
        file = Counter(file for file, _ in lines).most_common(1)[0][0]
        numbers = [number for name, number in lines if name == file]
        first, last = min(numbers), max(numbers)
        return f"{file.replace(chr(92), '/').rpartition('/')[2]}:{first}" + (f"-{last}" if last > first else "")

    def counts(self, key: str) -> float | None:
        """The sum of one of ncu's counts; None where ncu says nothing."""
        found = [one.counts[key] for one in self.code if key in one.counts]
        return sum(found) if found else None


def parts_of(kernel: Kernel) -> list[Part]:
    """A kernel and its loops: the kernel first, each loop before those in it."""
    loops = [Part(kernel, [kernel.instructions[at] for at in loop.positions], loop) for loop in loops_of(kernel)]
    return [Part(kernel, kernel.instructions), *loops]


def hottest(parts: list[Part]) -> Part | None:
    """The innermost loop with most instructions executed, where ncu counted them."""
    inner = [part for part in parts if part.loop and part.loop.is_innermost and part.counts(EXECUTED)]
    return max(inner, key=lambda part: part.counts(EXECUTED) or 0, default=None)


def sampled(code: list[Instruction]) -> list[Instruction]:
    """The instructions with stall samples, those with the most first."""
    return sorted((one for one in code if one.counts.get(SAMPLES)), key=lambda one: (-one.counts[SAMPLES], one.address))
