"""Read ncu's source page (`ncu --import FILE.ncu-rep --csv --page source`): machine code with counts by line."""

from __future__ import annotations

import csv
import re
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from nsys_insight.ingest.ncu.pages import parse_number
from nsys_insight.kernel_code.disassembly import INSTRUCTION_BYTES
from nsys_insight.kernel_code.instructions import Kernel, parse_instruction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EXECUTED, THREADS, SAMPLES, STALL = "executed", "threads", "samples", "stall_"
# Names of each column in different versions of ncu, the newest first.
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
# Labels before a kernel's name and before a source file's name, and the column of line numbers.
_NAMES, _FILE, _LINE = ("Kernel Name", "Function Name"), "File Path", "Line No"
_MAX_COUNT = 1e15  # more than a GPU executes in a day: damaged
_NOT_ISSUED = re.compile(r"not.?issued", re.IGNORECASE)


def is_header(line: str) -> bool:
    """Return whether a line is the header of a source page, or the line before it, which names a kernel or file."""
    cells = next(csv.reader([line]), [])
    return ("Address" in cells and "Source" in cells) or (cells[:1] != [] and cells[0] in (*_NAMES, _FILE))


def read_kernels(lines: Iterable[str]) -> Iterator[Kernel]:
    """Yield the kernels of a source page. Instructions have the counts of `_COLUMNS`, and samples by stall reason.

    With `--print-source cuda,sass`, an instruction is below its source line. If ncu prints a kernel twice in a row,
    it is yielded once.
    """
    reader, last = _Reader(), None
    for row in chain(csv.reader(line.replace("\0", "") for line in lines), [[_NAMES[0], ""]]):
        for kernel in reader.read(row):
            if kernel != last:
                yield kernel
            last = kernel


class _Reader:
    """The state of the reader between rows: the kernel, the columns, and the current source line."""

    def __init__(self) -> None:
        self.kernel: Kernel | None = None
        self.header: list[str] = []
        self.source_file, self.source_line = "", 0
        self.source_files: set[str] = set()
        self.known_addresses: set[int] = set()

    def read(self, row: list[str]) -> Iterator[Kernel]:
        """Read one row. Yield the kernel that it ends, if any."""
        if row[:1] == [_FILE]:
            self.source_file = "".join(row[1:2])
        elif row and row[0] in _NAMES and len(row) >= 2:
            if not (self.kernel and self.kernel.name == row[1] and self.source_file not in self.source_files):
                yield from self._start_kernel(row[1])
            self.header = []
            self.source_files.add(self.source_file)
        elif "Address" in row and "Source" in row:
            if self.header or not self.kernel:  # another kernel, which ncu does not name
                yield from self._start_kernel("")
            self.header, self.source_line = row, 0
        elif self.kernel and self.header and len(row) >= len(self.header) - 1:
            # If there are two columns Source, the last one is machine code.
            self._read_row(dict(zip(self.header, row, strict=False)), self.kernel)

    def _start_kernel(self, name: str) -> Iterator[Kernel]:
        if self.kernel and self.kernel.instructions:
            yield _finish_kernel(self.kernel)
        self.kernel, self.source_files, self.known_addresses = Kernel(name, ""), set(), set()

    def _read_row(self, cells: dict[str, str], kernel: Kernel) -> None:
        if cells.get(_LINE, "").isdigit():
            self.source_line = int(cells[_LINE])
        try:
            address = int(cells["Address"], 16)
        except ValueError:
            return
        if _LINE in cells and address in self.known_addresses:
            return
        self.known_addresses.add(address)
        parsed = parse_instruction(address, cells["Source"].strip().rstrip(";").rstrip())
        if parsed is None:
            kernel.gap_note = "lines are missing in it"
            return
        parsed.source_line = (self.source_file, self.source_line) if self.source_line else None
        parsed.counts = _read_counts(cells)
        kernel.instructions.append(parsed)


def _read_counts(cells: dict[str, str]) -> dict[str, float]:
    counts = {}
    for key, names in _COLUMNS.items():
        count = next((count for name in names if (count := parse_number(cells.get(name, ""))) is not None), None)
        if count is not None and 0 <= count < _MAX_COUNT:
            counts[key] = count
    for name, cell in cells.items():
        if name.startswith(STALL) and not _NOT_ISSUED.search(name) and 0 < (parse_number(cell) or 0) < _MAX_COUNT:
            counts[name] = parse_number(cell) or 0
    return counts


def _finish_kernel(kernel: Kernel) -> Kernel:
    """Sort the instructions, and make addresses relative to the first one.

    ncu prints absolute addresses, and sorts by source line if there are source lines.
    """
    if any(instruction.source_line for instruction in kernel.instructions):
        kernel.instructions.sort(key=lambda instruction: instruction.address)
    code = kernel.instructions
    base = code[0].address
    known_addresses = {instruction.address for instruction in code}
    for instruction in code:
        target_addresses = [int(label, 16) for label in instruction.labels if re.fullmatch(r"(?:0x)?[0-9a-f]+", label)]
        instruction.targets = tuple(
            address - base if address in known_addresses else address for address in target_addresses
        )
        instruction.address -= base
    if any(after.address - before.address != INSTRUCTION_BYTES for before, after in pairwise(code)):
        kernel.gap_note = "lines are missing in it"
    return kernel
