"""Instructions of a kernel as disassemblers print them, their control bits, and their classes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from nsys_insight.paths import catalog

_TEXT = re.compile(r"(?:@(!?U?P(?:\d+|T))\s+)?([A-Z][A-Z0-9_]*)((?:\.[\w:]+)*)\s*(.*)", re.DOTALL)
_LABEL = re.compile(r"`\(([^)]+)\)")
_ADDRESS = re.compile(r"\b0x([0-9a-f]+)\b(?!\])")
_INDIRECT = re.compile(r'\(\*"(?:BRANCH_TARGETS|INDIRECT_\w+)\s+([^"]*)"')
_REGISTER = re.compile(r"\bR\d+\b")
_MEMORY = re.compile(r"\[(R\d+)(?:\.64|\.U32|\.X\d+)*(?:\+UR\d+)?(?:\+(-?0x[0-9a-f]+))?\]")
# Bits that an access moves for one thread; without one of these words it is 32.
_WIDTHS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}
# Instructions with a label or an address as operand.
_JUMPS = {"BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "CALL", "BSSY", "RET", "WARPSYNC"}
# The class of mnemonics that the catalog does not have.
UNKNOWN = "unknown"


class Control(NamedTuple):
    """Control bits of an instruction, which every one has since sm_70 (bits 105 to 125 of its 128).

    `stall` is how many cycles the warp issues nothing after it; `waits` on which of six scoreboards it waits before it.
    """

    stall: int
    waits: tuple[int, ...]


@dataclass(slots=True)
class Instruction:
    """One instruction.

    `mnemonic` is without modifiers: LDG of LDG.E.128. `labels` are the jump targets as printed, `targets` their
    addresses. `line` is the source's, `counts` what ncu counted.
    """

    address: int
    text: str
    predicate: str
    mnemonic: str
    modifiers: tuple[str, ...]
    operands: str
    labels: tuple[str, ...] = ()
    targets: tuple[int, ...] = ()
    control: Control | None = None
    line: tuple[str, int] | None = None
    counts: dict[str, float] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """The bits that an access to memory moves for one thread; 32 unless a modifier says otherwise."""
        return next((_WIDTHS[word] for word in self.modifiers if word in _WIDTHS), 32)

    @property
    def is_move(self) -> bool:
        """Whether arithmetic only fills a register, as IMAD.MOV R0, RZ, RZ, R1 and HFMA2 R0, -RZ, RZ, 0, 0 do."""
        return (self.mnemonic == "HFMA2" and "-RZ, RZ" in self.operands) or (
            self.mnemonic == "IMAD" and "MOV" in self.modifiers
        )

    @property
    def is_predicated(self) -> bool:
        """Whether it runs only where a predicate holds."""
        return self.predicate not in ("", "PT", "UPT")

    @property
    def destination(self) -> str | None:
        """The first register that a load writes."""
        found = _REGISTER.match(self.operands)
        return found[0] if found else None

    @property
    def stored(self) -> list[str]:
        """The registers whose values a store writes: those after the address."""
        return _REGISTER.findall(self.operands.rpartition("]")[2])

    @property
    def place(self) -> tuple[str, int] | None:
        """The base register and offset of a memory access; None for other forms of addresses."""
        found = _MEMORY.search(self.operands)
        return (found[1], int(found[2] or "0", 16)) if found else None


@dataclass(slots=True)
class Kernel:
    """A kernel, or another function of the device's code.

    `architecture` is as printed (sm_90a), "" if unknown. `missing` says what the text lacks, "" if nothing.
    """

    name: str
    architecture: str
    instructions: list[Instruction] = field(default_factory=list)
    registers: int | None = None
    missing: str = ""


def instruction(address: int, text: str) -> Instruction | None:
    """Read one instruction, without the semicolon at its end; None if that is none."""
    found = _TEXT.fullmatch(text)
    if not found:
        return None
    predicate, mnemonic, modifiers, operands = found.groups()
    labels: tuple[str, ...] = ()
    if mnemonic in _JUMPS:
        places = _INDIRECT.search(operands)
        if places:
            labels = tuple(word.strip() for word in places[1].split(",") if word.strip().startswith("."))
        elif mnemonic not in ("BRX", "BRXU", "JMX", "JMXU", "RET"):
            named = _LABEL.findall(operands) or _ADDRESS.findall(operands)
            labels = tuple(named[-1:])
    return Instruction(address, text, predicate or "", mnemonic, tuple(modifiers.split(".")[1:]), operands, labels)


def control(high_word: int) -> Control:
    """Read the control bits from the upper 64 bits of an instruction."""
    mask = high_word >> 52 & 0x3F
    return Control(high_word >> 41 & 0xF, tuple(at for at in range(6) if mask >> at & 1))


def class_of(one: Instruction) -> str:
    """The class of an instruction (`queries/catalog/sass_classes.toml`); `UNKNOWN` if its mnemonic is not there."""
    return "move" if one.is_move else _class_by_mnemonic().get(one.mnemonic, UNKNOWN)


@cache
def multiply_add_classes() -> frozenset[str]:
    """The classes that count as computing where computing is compared with loading."""
    return frozenset(one["class"] for one in _classes() if one.get("multiply_add"))


@cache
def class_descriptions() -> dict[str, str]:
    """What each class does, in the order of the catalog."""
    return {one["class"]: one["about"] for one in _classes()} | {UNKNOWN: "Mnemonics that are not in the catalog"}


@cache
def _class_by_mnemonic() -> dict[str, str]:
    return {mnemonic: one["class"] for one in _classes() for mnemonic in one["mnemonics"]}


def _classes() -> list[dict[str, Any]]:
    return catalog("sass_classes")["classes"]  # type: ignore[no-any-return]
