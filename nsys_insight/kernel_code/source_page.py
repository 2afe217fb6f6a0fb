"""The source page of ncu (`ncu --import FILE.ncu-rep --csv --page source`): machine code, with what each line cost."""

from __future__ import annotations

import csv
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from nsys_insight.ingest.ncu.cells import number
from nsys_insight.kernel_code.disassembly import STEP
from nsys_insight.kernel_code.instructions import Kernel, instruction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EXECUTED, THREADS, SAMPLES, STALL = "executed", "threads", "samples", "stall_"
# What ncu's versions call what is read here, the newest first.
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
_MOST = 1e15  # more than a GPU executes in a day: damaged
_NOT_ISSUED = re.compile(r"not.?issued", re.IGNORECASE)


def is_header(line: str) -> bool:
    """Tell whether a line is the header of a source page, or the line before that, which names a kernel."""
    cells = next(csv.reader([line]), [])
    return ("Address" in cells and "Source" in cells) or cells[:1] == ["Kernel Name"]


def kernels(lines: Iterable[str]) -> Iterator[Kernel]:
    """Yield the kernels of a source page, their instructions with counts: those of `_COLUMNS`, and samples by stall."""
    kernel: Kernel | None = None
    header: list[str] = []
    for row in csv.reader(line.replace("\0", "") for line in lines):
        if row[:1] == ["Kernel Name"] and len(row) >= 2:
            yield from _finished(kernel)
            kernel, header = Kernel(row[1], ""), []
        elif "Address" in row and "Source" in row:
            if header:  # another kernel, of which ncu does not say the name
                yield from _finished(kernel)
                kernel = None
            kernel, header = kernel or Kernel("", ""), row
        elif kernel and header and len(row) >= len(header) - 1:
            cells = dict(zip(header, row, strict=False))
            try:
                address = int(cells["Address"], 16)
            except ValueError:
                continue
            one = instruction(address, cells["Source"].strip().rstrip(";").rstrip())
            if one is None:
                kernel.missing = "lines are missing in it"
                continue
            one.counts = _counts(cells)
            kernel.instructions.append(one)
    yield from _finished(kernel)


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


def _finished(kernel: Kernel | None) -> Iterator[Kernel]:
    """Yield a kernel, its addresses counted from its first instruction: ncu prints where it lay in memory."""
    if kernel is None or not kernel.instructions:
        return
    code = kernel.instructions
    base = code[0].address
    known = {one.address for one in code}
    for one in code:
        places = [int(label, 16) for label in one.labels if re.fullmatch(r"(?:0x)?[0-9a-f]+", label)]
        one.targets = tuple(at - base if at in known else at for at in places)
        one.address -= base
    if any(after.address - before.address != STEP for before, after in pairwise(code)):
        kernel.missing = "lines are missing in it"
    yield kernel
