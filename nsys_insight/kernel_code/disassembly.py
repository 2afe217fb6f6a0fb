"""Disassembly as cuobjdump and nvdisasm print it, function by function, however long the text is."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from nsys_insight.kernel_code.instructions import Kernel, control, instruction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*)", re.DOTALL)
_ENCODING = re.compile(r"/\*\s*0x([0-9a-f]{16})\s*\*/")
_FUNCTION = re.compile(r"\s*Function\s*:\s*(.*)")
_SECTION = re.compile(r"""\s*\.section\s+(?:"([^"]+)"|([^\s,]+))""")
_ARCHITECTURE = re.compile(r"(?:code for |\.target\s+)(sm_\d+\w?)")
_FLAGS = re.compile(r"\bEF_CUDA_SM(\d+)")
_REGISTERS = re.compile(r"SHI_REGISTERS=(\d+)")
_LABEL = re.compile(r"\s*([.$\w]+):\s*$")
_LINE = re.compile(r'\s*//## File "([^"]*)", line (\d+)')
_TEXT = ".text."
# An instruction takes 16 bytes since sm_70.
STEP = 16
# What may be the last instruction of a function, before the NOPs that fill it up.
_ENDS = {"BRA", "EXIT", "RET", "JMP", "JMX", "JMXU", "BRX", "BRXU", "BPT", "KILL", "CALL"}


def kernels(lines: Iterable[str]) -> Iterator[Kernel]:
    """Yield the functions of a disassembly one by one, in the order in which they are printed.

    Control bits are known where encodings are printed (cuobjdump, `nvdisasm -hex`), lines of the source with `-g`.
    """
    reader = _Reader()
    for line in lines:
        yield from reader.read(line)
    yield from reader.end()


class _Reader:
    """State while lines are read: the architecture, the function, the labels in it."""

    def __init__(self) -> None:
        self.architecture = ""
        self.kernel: Kernel | None = None
        self.labels: dict[str, int] = {}
        self.waiting: list[str] = []
        self.line: tuple[str, int] | None = None
        self.takes_line = True
        self.unread = 0

    def read(self, line: str) -> Iterator[Kernel]:
        """Read one line; yields the function that it ends."""
        if "/*" in line:
            self._code(line)
        elif found := _LINE.match(line):
            if self.takes_line:  # the innermost comes first
                self.line, self.takes_line = (found[1], int(found[2])), False
        elif found := _FUNCTION.fullmatch(line.rstrip("\r\n")):
            yield from self._begin(found[1].strip())
        elif found := _SECTION.match(line):
            section = found[1] or found[2]
            yield from self._begin(section.removeprefix(_TEXT)) if section.startswith(_TEXT) else self.end()
        elif found := _LABEL.match(line):
            self.waiting.append(found[1])
        elif found := _ARCHITECTURE.search(line):
            yield from self.end()
            self.architecture = found[1]
        elif self.kernel:
            self._about(line, self.kernel)

    def end(self) -> Iterator[Kernel]:
        """Yield the function that has been read, if it has instructions."""
        if self.kernel and self.kernel.instructions:
            for one in self.kernel.instructions:
                one.targets = tuple(at for label in one.labels if (at := self._address(label)) is not None)
            self.kernel.missing = _missing(self.kernel, self.unread)
            yield self.kernel
        self.kernel = None

    def _begin(self, name: str) -> Iterator[Kernel]:
        yield from self.end()
        self.kernel = Kernel(name, self.architecture)
        self.labels, self.waiting, self.line, self.takes_line, self.unread = {}, [], None, True, 0

    def _code(self, line: str) -> None:
        """Read a line with an instruction, or with the second half of its encoding."""
        if self.kernel is None:
            return
        if found := _INSTRUCTION.match(line):
            self._instruction(int(found[1], 16), found[2])
        elif self.kernel.instructions and (word := _ENCODING.search(line)):
            # The lower half is on the line of the instruction, the upper one on the next line.
            self.kernel.instructions[-1].control = control(int(word[1], 16))

    def _instruction(self, address: int, rest: str) -> None:
        text, semicolon, _ = rest.partition(";")
        one = instruction(address, text.strip(" \t{}\r\n"))
        for label in self.waiting:
            self.labels[label] = address
        self.waiting, self.takes_line = [], True
        if one is None or not semicolon:
            self.unread += 1
        elif self.kernel:
            one.line = self.line
            self.kernel.instructions.append(one)

    def _about(self, line: str, kernel: Kernel) -> None:
        if not kernel.architecture and (found := _FLAGS.search(line)):
            kernel.architecture = f"sm_{found[1]}"
        if found := _REGISTERS.search(line):
            kernel.registers = int(found[1])

    def _address(self, label: str) -> int | None:
        if label in self.labels:
            return self.labels[label]
        try:
            return int(label, 16)
        except ValueError:
            return None


def _missing(kernel: Kernel, unread: int) -> str:
    """Say what a function's text lacks."""
    found = kernel.instructions
    gaps = sum(after.address - before.address != STEP for before, after in pairwise(found))
    last = next((one for one in reversed(found) if one.mnemonic != "NOP"), None)
    if found[0].address or gaps or unread:
        return "lines are missing in it"
    return "" if last and last.mnemonic in _ENDS and not last.is_predicated else "its end is missing"
