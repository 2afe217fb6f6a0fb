"""Read disassembly as cuobjdump and nvdisasm print it. Functions are read one by one, so the text may be long."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from nsys_insight.kernel_code.instructions import Kernel, decode_control, parse_instruction

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
INSTRUCTION_BYTES = 16
# Mnemonics that can end a function, before the NOPs that pad it.
_END_MNEMONICS = {"BRA", "EXIT", "RET", "JMP", "JMX", "JMXU", "BRX", "BRXU", "BPT", "KILL", "CALL"}


def read_kernels(lines: Iterable[str]) -> Iterator[Kernel]:
    """Yield the functions of a disassembly one by one, in printed order.

    Control bits need printed encodings (cuobjdump, `nvdisasm -hex`); source lines need `-g`.
    """
    reader = _Reader()
    for line in lines:
        yield from reader.read(line)
    yield from reader.finish_function()


class _Reader:
    """The state of the reader between lines: the architecture, the function, and its labels."""

    def __init__(self) -> None:
        self.architecture = ""
        self.kernel: Kernel | None = None
        self.labels: dict[str, int] = {}
        self.pending_labels: list[str] = []
        self.source_line: tuple[str, int] | None = None
        self.can_set_line = True
        self.unread_lines = 0

    def read(self, line: str) -> Iterator[Kernel]:
        """Read one line. Yield the function that it ends, if any."""
        if "/*" in line:
            self._read_code(line)
        elif match := _LINE.match(line):
            if self.can_set_line:  # of inlined functions, the innermost line comes first
                self.source_line, self.can_set_line = (match[1], int(match[2])), False
        elif match := _FUNCTION.fullmatch(line.rstrip("\r\n")):
            yield from self._start_function(match[1].strip())
        elif match := _SECTION.match(line):
            section = match[1] or match[2]
            if section.startswith(_TEXT):
                yield from self._start_function(section.removeprefix(_TEXT))
            else:
                yield from self.finish_function()
        elif match := _LABEL.match(line):
            self.pending_labels.append(match[1])
        elif match := _ARCHITECTURE.search(line):
            yield from self.finish_function()
            self.architecture = match[1]
        elif self.kernel:
            self._read_property(line, self.kernel)

    def finish_function(self) -> Iterator[Kernel]:
        """Finish the current function, and yield it if it has instructions."""
        if self.kernel and self.kernel.instructions:
            for instruction in self.kernel.instructions:
                addresses = map(self._find_address, instruction.labels)
                instruction.targets = tuple(address for address in addresses if address is not None)
            self.kernel.gap_note = _describe_missing_lines(self.kernel, self.unread_lines)
            yield self.kernel
        self.kernel = None

    def _start_function(self, name: str) -> Iterator[Kernel]:
        yield from self.finish_function()
        self.kernel = Kernel(name, self.architecture)
        self.labels, self.pending_labels, self.source_line, self.can_set_line, self.unread_lines = {}, [], None, True, 0

    def _read_code(self, line: str) -> None:
        """Read a line with an instruction, or with the upper half of its encoding."""
        if self.kernel is None:
            return
        if match := _INSTRUCTION.match(line):
            self._read_instruction(int(match[1], 16), match[2])
        elif self.kernel.instructions and (word := _ENCODING.search(line)):
            # The lower half is on the line of the instruction, the upper half on the next line.
            self.kernel.instructions[-1].control = decode_control(int(word[1], 16))

    def _read_instruction(self, address: int, code: str) -> None:
        text, semicolon, _ = code.partition(";")
        parsed = parse_instruction(address, text.strip(" \t{}\r\n"))
        for label in self.pending_labels:
            self.labels[label] = address
        self.pending_labels, self.can_set_line = [], True
        if parsed is None or not semicolon:
            self.unread_lines += 1
        elif self.kernel:
            parsed.source_line = self.source_line
            self.kernel.instructions.append(parsed)

    def _read_property(self, line: str, kernel: Kernel) -> None:
        if not kernel.architecture and (match := _FLAGS.search(line)):
            kernel.architecture = f"sm_{match[1]}"
        if match := _REGISTERS.search(line):
            kernel.registers = int(match[1])

    def _find_address(self, label: str) -> int | None:
        if label in self.labels:
            return self.labels[label]
        try:
            return int(label, 16)
        except ValueError:
            return None


def _describe_missing_lines(kernel: Kernel, unread_lines: int) -> str:
    """Describe what a function's text lacks; "" if it is complete."""
    code = kernel.instructions
    gaps = sum(after.address - before.address != INSTRUCTION_BYTES for before, after in pairwise(code))
    last = next((instruction for instruction in reversed(code) if instruction.mnemonic != "NOP"), None)
    if code[0].address or gaps or unread_lines:
        return "lines are missing in it"
    return "" if last and last.mnemonic in _END_MNEMONICS and not last.is_predicated else "its end is missing"
