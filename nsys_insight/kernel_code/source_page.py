"""The source page of ncu (`ncu --import FILE.ncu-rep --csv --page source`): machine code, with what each line cost."""

from __future__ import annotations

import csv
import re
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from nsys_insight.ingest.ncu.pages import number
from nsys_insight.kernel_code.disassembly import STEP
from nsys_insight.kernel_code.instructions import Kernel, instruction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EXECUTED, THREADS, SAMPLES, STALL = "executed", "threads", "samples", "stall_"
# Names of the columns that are read, by version of ncu, the newest first.
_COLUMNS = {
    EXECUTED: ("Instructions Executed", "# Inst Executed", "inst_executed"),
    THREADS: ("Predicated-On Thread Instructions Executed", "thread_inst_executed_true"),
    SAMPLES: (
        "Warp Stall Sampling (All Samples)",
        "Warp Stall Sampling (All Cycles)",
        "Sampling Data (All)",
        "# Samples",
    ),
}
# The cells before a kernel's name and a source file's name, and the column of line numbers.
_NAMES, _FILE, _LINE = ("Kernel Name", "Function Name"), "File Path", "Line No"
_MOST = 1e15  # more than a GPU executes in a day: damaged
_NOT_ISSUED = re.compile(r"not.?issued", re.IGNORECASE)


def is_header(line: str) -> bool:
    """Tell whether a line is the header of a source page, or the line before that, which names a kernel."""
    cells = next(csv.reader([line]), [])
    return ("Address" in cells and "Source" in cells) or (cells[:1] != [] and cells[0] in (*_NAMES, _FILE))


def kernels(lines: Iterable[str]) -> Iterator[Kernel]:
    """Yield the kernels of a source page, their instructions with counts: those of `_COLUMNS`, and samples by stall.

    With `--print-source cuda,sass` an instruction stands below its line of the source. ncu prints a kernel twice.
    """
    reader, last = _Reader(), None
    for row in chain(csv.reader(line.replace("\0", "") for line in lines), [[_NAMES[0], ""]]):
        for kernel in reader.read(row):
            if kernel != last:
                yield kernel
            last = kernel


class _Reader:
    """State while rows are read: the kernel, the columns, and the current line of the source."""

    def __init__(self) -> None:
        self.kernel: Kernel | None = None
        self.header: list[str] = []
        self.file, self.line = "", 0
        self.files: set[str] = set()
        self.seen: set[int] = set()

    def read(self, row: list[str]) -> Iterator[Kernel]:
        """Read one row; yields the kernel that it ends."""
        if row[:1] == [_FILE]:
            self.file = "".join(row[1:2])
        elif row and row[0] in _NAMES and len(row) >= 2:
            if not (self.kernel and self.kernel.name == row[1] and self.file not in self.files):
                yield from self._begin(row[1])
            self.header = []
            self.files.add(self.file)
        elif "Address" in row and "Source" in row:
            if self.header or not self.kernel:  # another kernel, of which ncu does not say the name
                yield from self._begin("")
            self.header, self.line = row, 0
        elif self.kernel and self.header and len(row) >= len(self.header) - 1:
            # Of two columns Source, the last is machine code.
            self._row(dict(zip(self.header, row, strict=False)), self.kernel)

    def _begin(self, name: str) -> Iterator[Kernel]:
        if self.kernel and self.kernel.instructions:
            yield _finished(self.kernel)
        self.kernel, self.files, self.seen = Kernel(name, ""), set(), set()

    def _row(self, cells: dict[str, str], kernel: Kernel) -> None:
        if cells.get(_LINE, "").isdigit():
            self.line = int(cells[_LINE])
        try:
            address = int(cells["Address"], 16)
        except ValueError:
            return
        if _LINE in cells and address in self.seen:
            return
        self.seen.add(address)
        one = instruction(address, cells["Source"].strip().rstrip(";").rstrip())
        if one is None:
            kernel.missing = "lines are missing in it"
            return
        one.line = (self.file, self.line) if self.line else None
        one.counts = _counts(cells)
        kernel.instructions.append(one)


def _counts(cells: dict[str, str]) -> dict[str, float]:
    found = {}
    for key, names in _COLUMNS.items():
        value = next((value for name in names if (value := number(cells.get(name, ""))) is not None), None)
        if value is not None and 0 <= value < _MOST:
            found[key] = value
    for name, cell in cells.items():
        if name.startswith(STALL) and not _NOT_ISSUED.search(name) and 0 < (number(cell) or 0) < _MOST:
            found[name] = number(cell) or 0
    return found


def _finished(kernel: Kernel) -> Kernel:
    """Make addresses relative to the first instruction. ncu prints absolute ones, by source line if it has lines."""
    if any(one.line for one in kernel.instructions):
        kernel.instructions.sort(key=lambda one: one.address)
    code = kernel.instructions
    base = code[0].address
    known = {one.address for one in code}
    for one in code:
        places = [int(label, 16) for label in one.labels if re.fullmatch(r"(?:0x)?[0-9a-f]+", label)]
        one.targets = tuple(at - base if at in known else at for at in places)
        one.address -= base
    if any(after.address - before.address != STEP for before, after in pairwise(code)):
        kernel.missing = "lines are missing in it"
    return kernel
