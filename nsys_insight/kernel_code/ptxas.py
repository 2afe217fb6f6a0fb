"""What compilers say of the resources of kernels: `ptxas -v`, `nvcc --resource-usage`, `cuobjdump -res-usage`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_ENTRY = re.compile(r"Compiling entry function '([^']*)' for '([^']*)'")
_PROPERTIES = re.compile(r"Function properties for '?([^\s']+)'?")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"((?:\d+\+)?\d+) bytes smem")
_CONSTANT = re.compile(r"(\d+) bytes cmem\[\d+\]")
_STACK = re.compile(r"(\d+) bytes cumulative stack size")
_REMARK = re.compile(r"ptxas (?:warning|info)\s*:\s*(\(C\d+\)|Potential Performance Loss|.*out of range)(.*)")
_OF_FUNCTION = re.compile(r"(?:function|entry) '?([\w$.]+)'?")
_ARCHITECTURE = re.compile(r"arch\s*=\s*(sm_\d+\w?)")
_FUNCTION = re.compile(r"\s*Function\s+([^\s:]+)\s*:")
_RESOURCES = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)(.*)")
_IMPOSSIBLE = re.compile(r"\d{13}")  # no number of registers or bytes
_BANK = re.compile(r"CONSTANT\[\d+\]:(\d+)")


@dataclass
class Usage:
    """What one kernel needs on one architecture; None is what the text does not say.

    `remark` is a warning of ptxas about it, such as that multiply-adds of warp groups are serialized.
    """

    name: str
    architecture: str
    registers: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    stack_bytes: int | None = None
    barriers: int | None = None
    shared_bytes: int | None = None
    constant_bytes: int | None = None
    remark: str = ""


def usages(lines: Iterable[str]) -> list[Usage]:
    """Read the kernels in what was printed, whatever a build printed between; of one that comes twice, the last counts.

    Functions that are no kernels have no registers of their own, and are left out.
    """
    reader = _Reader()
    for line in lines:
        reader.read(line)
    return [usage for usage in reader.found.values() if usage.registers is not None]


class _Reader:
    """What is known while lines are read: of which kernel, and of which function, the next numbers are."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], Usage] = {}
        self.kernel: Usage | None = None
        self.function = ""
        self.architecture = ""
        self.remarks: dict[str, str] = {}

    def read(self, line: str) -> None:
        """Read one line."""
        if said := _ENTRY.search(line):
            self._begin(said[1], said[2])
        elif said := _PROPERTIES.search(line):
            self.function = said[1]
        elif said := _ARCHITECTURE.search(line):
            self.architecture = said[1]
        elif said := _RESOURCES.search(line):
            self._resources(said)
        elif said := _FUNCTION.fullmatch(line.rstrip()):
            self._begin(said[1], self.architecture)
        elif said := _REMARK.search(line):
            if about := _OF_FUNCTION.search(said[2]) or _OF_FUNCTION.search(said[0]):
                self._remark(about[1], f"{said[1]}{said[2]}".strip())
        elif self.kernel and not _IMPOSSIBLE.search(line):
            self._numbers(line, self.kernel)

    def _begin(self, name: str, architecture: str) -> None:
        self.kernel = self.found[name, architecture] = Usage(name, architecture, remark=self.remarks.get(name, ""))
        self.function = name

    def _remark(self, name: str, text: str) -> None:
        """Keep a remark: it may stand before or behind what is said of its kernel."""
        self.remarks[name] = text
        for usage in self.found.values():
            if usage.name == name:
                usage.remark = text

    def _numbers(self, line: str, kernel: Usage) -> None:
        if (said := _FRAME.search(line)) and self.function == kernel.name:
            kernel.stack_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes = map(int, said.groups())
        elif said := _USED.search(line):
            kernel.registers = int(said[1])
            barriers, shared, stack = (pattern.search(said[2]) for pattern in (_BARRIERS, _SHARED, _STACK))
            kernel.barriers = int(barriers[1]) if barriers else None
            kernel.shared_bytes = sum(map(int, shared[1].split("+"))) if shared else 0
            kernel.constant_bytes = sum(map(int, _CONSTANT.findall(said[2]))) or None
            kernel.stack_bytes = int(stack[1]) if stack else kernel.stack_bytes

    def _resources(self, said: re.Match[str]) -> None:
        if self.kernel and not _IMPOSSIBLE.search(said[0]):
            self.kernel.registers, self.kernel.stack_bytes, self.kernel.shared_bytes, _ = map(int, said.groups()[:4])
            self.kernel.constant_bytes = sum(map(int, _BANK.findall(said[5]))) or None
