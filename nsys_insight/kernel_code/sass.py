"""Machine code as answers: a row a kernel and loop, a class of instructions, or a line that stalls."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError
from nsys_insight.kernel_code import columns, rows
from nsys_insight.kernel_code.demangle import demangled
from nsys_insight.kernel_code.input import nothing, opened
from nsys_insight.session.answer import Answer, of_rows
from nsys_insight.text.kernel_names import readable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nsys_insight.kernel_code.instructions import Kernel
    from nsys_insight.kernel_code.reading import Limits

# Older ones encode and schedule otherwise; newer ones are read, and what is unknown of them is counted as such.
_OLDEST, _NEWEST = 70, 121
ANSWERS = {
    "loop": ("Kernels and their loops", columns.LOOPS, rows.by_loop),
    "class": ("Instructions by class", columns.CLASSES, rows.by_class),
    "line": ("Lines that stall most", columns.LINES, rows.by_line),
}
BY = tuple(ANSWERS)


@dataclass
class _Read:
    """What was read from a file: rows, and what is to be known of it."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    kernels: int = 0
    old: set[str] = field(default_factory=set)
    new: set[str] = field(default_factory=set)
    cut: list[str] = field(default_factory=list)


def answer(
    file: Path, *, by: str = "loop", kernel: str | None = None, architecture: str | None = None, limits: Limits
) -> Answer:
    """Read a file of machine code, and answer by loop, class or line.

    Args:
        file: A binary file, a disassembly, or ncu's source page; `-` is a text on stdin.
        by: One of `BY`.
        kernel: Only kernels whose name, or the linker's, contains this.
        architecture: Only this one, such as sm_90.
        limits: Where ratios begin to say something.

    Raises:
        TraceError: There is no machine code in it, or none of this kernel.
        ToolError: It is a binary file, and no disassembler is here.
    """
    read, seen = _Read(), 0
    title, made, make = ANSWERS[by]
    with opened(file) as found:
        for one in found:
            seen += 1
            one.architecture = one.architecture or architecture or ""
            if not _is_meant(one, architecture, read):
                continue
            name = demangled(one.name) or "(no name)"
            read.names.append(name)
            if kernel is None or kernel.lower() in name.lower() or kernel in one.name:
                read.kernels += 1
                read.cut += [f"{name}: {one.missing}"] if one.missing else []
                read.rows += make(one, name, limits)
    if not seen:
        raise nothing(file)
    if architecture and not read.names:
        raise UsageError(f"there is no code for {architecture} in {file}", "omit --arch to see all of it")
    empty = "nothing"
    if kernel and not read.kernels:
        empty = f"no kernel is named {kernel!r}; there are: {', '.join(map(readable, read.names[:8]))}"
    return of_rows(made, read.rows, report="sass", title=title, notes=tuple(_notes(read, by)), empty=empty)


def _is_meant(one: Kernel, architecture: str | None, read: _Read) -> bool:
    """Tell whether a function is of an architecture that is read, and of the one that is asked for."""
    number = int(re.sub(r"\D", "", one.architecture) or _OLDEST)
    if number < _OLDEST:
        read.old.add(one.architecture)
        return False
    if number > _NEWEST:
        read.new.add(one.architecture)
    own = _bare(one.architecture)
    return architecture is None or _bare(architecture) in (own, own.rstrip("af"))


def _bare(architecture: str) -> str:
    """Write 9.0, 90, sm_90 and compute_90 alike; 90a stays what it is."""
    return re.sub(r"^(sm_?|compute_)|\.", "", architecture.strip().lower())


def _notes(read: _Read, by: str) -> Iterator[str]:
    if read.old:
        yield f"left out: code for {', '.join(sorted(read.old))}; sm_{_OLDEST} and newer is read"
    if read.new:
        names = ", ".join(sorted(read.new))
        yield f"{names} is newer than the catalog of instructions: instructions that are not in it count as unknown"
    if read.cut:
        more = f", and of {len(read.cut) - 3} more" if len(read.cut) > 3 else ""
        yield f"the text is incomplete, and counts cover only what is there: {'; '.join(read.cut[:3])}{more}"
    if by == "line" and read.kernels and not read.rows:
        yield "no stall samples in this file: give ncu's source page (ncu --import FILE.ncu-rep --csv --page source)"
    if read.kernels < len(read.names):
        yield f"{read.kernels} of {len(read.names)} functions"
