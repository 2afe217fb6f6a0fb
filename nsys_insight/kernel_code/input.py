"""Whatever a user has of a kernel's machine code: a binary file, its disassembly, ncu's source page."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING

from nsys_insight.errors import TraceError
from nsys_insight.kernel_code import disassembly, source_page, tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nsys_insight.kernel_code.instructions import Kernel

_GIVE = (
    "give a cubin, an executable or a library; what cuobjdump -sass or nvdisasm printed; or ncu's source page: "
    "ncu --import FILE.ncu-rep --csv --page source > FILE.source.csv"
)
# How many lines may stand before the first of a source page: what the program printed.
_LINES = 200


@contextmanager
def opened(file: Path) -> Iterator[Iterator[Kernel]]:
    """Give the functions of a file one by one; `-` is a text on stdin.

    Raises:
        TraceError: It cannot be read, or is a report of ncu, or PTX.
        ToolError: It is a binary file, and no disassembler is here, or it failed.
    """
    if str(file) == "-":
        yield _of_text(sys.stdin)
        return
    try:
        with file.open("rb") as stream:
            head = stream.read(64)
    except OSError as error:
        raise TraceError(f"{file} cannot be read: {error.strerror}", _GIVE) from None
    if head.startswith(b"NVR\0") or file.suffix == ".ncu-rep":
        raise TraceError(
            f"{file} is a report of ncu, whose source page is read as CSV",
            f"ncu --import {file.name} --csv --page source > {file.stem}.source.csv",
        )
    if tools.is_binary(head):
        with tools.disassembled(file, head) as lines:
            yield disassembly.kernels(lines)
        return
    with file.open(encoding="utf-8-sig", errors="backslashreplace", newline=None) as text:
        yield _of_text(text)


def _of_text(lines: Iterator[str]) -> Iterator[Kernel]:
    """Tell by its first lines which text it is."""
    first = list(islice(lines, _LINES))
    at = next((number for number, line in enumerate(first) if source_page.is_header(line)), None)
    if at is not None:
        return source_page.kernels(chain(first[at:], lines))
    if any(line.lstrip().startswith((".version", ".address_size")) for line in first):
        raise TraceError("the text is PTX, not machine code; ptxas compiles it", "nvcc -cubin -lineinfo FILE.cu")
    return disassembly.kernels(chain(first, lines))


def nothing(file: Path) -> TraceError:
    """The error of a file in which there is no machine code."""
    return TraceError(f"there is no machine code for sm_70 or newer in {file}", _GIVE)
