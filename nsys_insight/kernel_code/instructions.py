"""Instructions of a kernel as disassemblers print them, their control bits, and their classes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from nsys_insight.paths import read_catalog

_TEXT = re.compile(r"(?:@(!?U?P(?:\d+|T))\s+)?([A-Z][A-Z0-9_]*)((?:\.[\w:]+)*)\s*(.*)", re.DOTALL)
_LABEL = re.compile(r"`\(([^)]+)\)")
_ADDRESS = re.compile(r"\b0x([0-9a-f]+)\b(?!\])")
_INDIRECT = re.compile(r'\(\*"(?:BRANCH_TARGETS|INDIRECT_\w+)\s+([^"]*)"')
_REGISTER = re.compile(r"\bR\d+\b")
_MEMORY = re.compile(r"\[(R\d+)(?:\.64|\.U32|\.X\d+)*(?:\+UR\d+)?(?:\+(-?0x[0-9a-f]+))?\]")
# Bits that an access moves for one thread, by modifier. Without one of these modifiers, it is 32.
_WIDTH_BITS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}
# Instructions with a label or an address as operand.
_TARGET_MNEMONICS = {"BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "CALL", "BSSY", "RET", "WARPSYNC"}
# The class of mnemonics that are not in the catalog.
UNKNOWN = "unknown"


class Control(NamedTuple):
    """Control bits of an instruction: bits 105 to 125 of its 128, since sm_70.

    `stall` is the number of cycles in which the warp issues nothing after the instruction. `waits` lists the
    scoreboards, of six, that the warp waits for before it.
    """

    stall: int
    waits: tuple[int, ...]


@dataclass(slots=True)
class Instruction:
    """One instruction.

    `mnemonic` has no modifiers: LDG of LDG.E.128. `labels` are the jump targets as printed, `targets` their addresses.
    `source_line` is file and line of the source. `counts` are ncu's counts.
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
    source_line: tuple[str, int] | None = None
    counts: dict[str, float] = field(default_factory=dict)

    @property
    def width_bits(self) -> int:
        """Return the bits that a memory access moves for one thread; 32 without a width modifier."""
        return next((_WIDTH_BITS[word] for word in self.modifiers if word in _WIDTH_BITS), 32)

    @property
    def is_move(self) -> bool:
        """Return whether arithmetic only fills a register: IMAD.MOV R0, RZ, RZ, R1 or HFMA2 R0, -RZ, RZ, 0, 0."""
        return (self.mnemonic == "HFMA2" and "-RZ, RZ" in self.operands) or (
            self.mnemonic == "IMAD" and "MOV" in self.modifiers
        )

    @property
    def is_predicated(self) -> bool:
        """Return whether the instruction runs only if a predicate is true."""
        return self.predicate not in ("", "PT", "UPT")

    @property
    def destination(self) -> str | None:
        """Return the first register that a load writes."""
        match = _REGISTER.match(self.operands)
        return match[0] if match else None

    @property
    def stored_registers(self) -> list[str]:
        """Return the registers whose values a store writes: those after the address."""
        return _REGISTER.findall(self.operands.rpartition("]")[2])

    @property
    def address_operand(self) -> tuple[str, int] | None:
        """Return the base register and offset of a memory access; None for other forms of addresses."""
        match = _MEMORY.search(self.operands)
        return (match[1], int(match[2] or "0", 16)) if match else None


@dataclass(slots=True)
class Kernel:
    """A kernel, or another function of the device code.

    `architecture` is as printed (sm_90a), "" if unknown. `gap_note` describes what the text lacks, "" if it is
    complete.
    """

    name: str
    architecture: str
    instructions: list[Instruction] = field(default_factory=list)
    registers: int | None = None
    gap_note: str = ""


def parse_instruction(address: int, text: str) -> Instruction | None:
    """Parse one instruction, without the semicolon at its end; None if the text is not an instruction."""
    match = _TEXT.fullmatch(text)
    if not match:
        return None
    predicate, mnemonic, modifiers, operands = match.groups()
    labels: tuple[str, ...] = ()
    if mnemonic in _TARGET_MNEMONICS:
        target_match = _INDIRECT.search(operands)
        if target_match:
            labels = tuple(word.strip() for word in target_match[1].split(",") if word.strip().startswith("."))
        elif mnemonic not in ("BRX", "BRXU", "JMX", "JMXU", "RET"):
            targets = _LABEL.findall(operands) or _ADDRESS.findall(operands)
            labels = tuple(targets[-1:])
    return Instruction(address, text, predicate or "", mnemonic, tuple(modifiers.split(".")[1:]), operands, labels)


def decode_control(high_word: int) -> Control:
    """Decode the control bits in the upper 64 bits of an instruction."""
    mask = high_word >> 52 & 0x3F
    return Control(high_word >> 41 & 0xF, tuple(scoreboard for scoreboard in range(6) if mask >> scoreboard & 1))


def classify(instruction: Instruction) -> str:
    """Return the class of an instruction (`queries/catalog/sass_classes.toml`); `UNKNOWN` if it is not there."""
    return "move" if instruction.is_move else _read_class_by_mnemonic().get(instruction.mnemonic, UNKNOWN)


@cache
def list_multiply_add_classes() -> frozenset[str]:
    """List the classes that count as computation in the ratio of computation to loads."""
    return frozenset(entry["class"] for entry in _read_classes() if entry.get("multiply_add"))


@cache
def describe_classes() -> dict[str, str]:
    """Describe what each class does, in the order of the catalog."""
    descriptions = {entry["class"]: entry["about"] for entry in _read_classes()}
    return descriptions | {UNKNOWN: "Mnemonics that are not in the catalog"}


@cache
def _read_class_by_mnemonic() -> dict[str, str]:
    return {mnemonic: entry["class"] for entry in _read_classes() for mnemonic in entry["mnemonics"]}


def _read_classes() -> list[dict[str, Any]]:
    return read_catalog("sass_classes")["classes"]  # type: ignore[no-any-return]
