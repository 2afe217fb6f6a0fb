"""Machine code as answers: a row a kernel and loop, a class of instructions, or a line that stalls."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError
from nsys_insight.kernel_code.demangle import demangled
from nsys_insight.kernel_code.files import no_code, open_kernels
from nsys_insight.kernel_code.instructions import class_descriptions
from nsys_insight.kernel_code.parts import hottest, parts_of, sampled
from nsys_insight.kernel_code.reading import Limits, sentences
from nsys_insight.kernel_code.source_page import EXECUTED, SAMPLES, STALL, THREADS
from nsys_insight.session.answer import Answer, Column, of_rows
from nsys_insight.text.kernel_names import readable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nsys_insight.kernel_code.instructions import Kernel
    from nsys_insight.kernel_code.parts import Part

LOOPS = (
    Column("name", "VARCHAR", "The kernel"),
    Column("part", "VARCHAR", "The kernel as a whole, or a loop in it: 1.2 is the second loop in the first"),
    Column("source", "VARCHAR", "Source lines that most of it comes from, if compiled with -lineinfo"),
    Column("instructions", "BIGINT", "Instructions in the code"),
    Column("multiply_adds", "BIGINT", "Multiply-adds among them: FFMA, HFMA2, DFMA, IDP and all tensor core "
        "instructions"),
    Column("global_loads", "BIGINT", "Loads from global memory, asynchronous copies (LDGSTS) included"),
    Column("compute_per_load_ratio", "DOUBLE", "Multiply-adds per load; NULL without loads, and where TMA loads tiles"),
    Column("load_bits", "VARCHAR", "Widths of the loads from global memory, in bits, and the number of each"),
    Column("store_bits", "VARCHAR", "The same for the stores to global memory"),
    Column("async_copies", "BIGINT", "Asynchronous copies to shared memory: LDGSTS", detail=True),
    Column("tma_copies", "BIGINT", "Copies by the tensor memory accelerator", detail=True),
    Column("shared_loads", "BIGINT", "Loads from shared memory (LDS, LDSM)", detail=True),
    Column("shared_stores", "BIGINT", "Stores to shared memory (STS, STSM)", detail=True),
    Column("local_load_bytes", "BIGINT", "Bytes per thread that its loads from local memory move: spills, arrays"),
    Column("local_store_bytes", "BIGINT", "Bytes per thread that its stores to local memory move"),
    Column("barriers", "BIGINT", "Barriers of the block or cluster; for a loop, in one iteration"),
    Column("shuffles", "BIGINT", "Exchanges between threads of a warp", detail=True),
    Column("special", "BIGINT", "Special functions: MUFU", detail=True),
    Column("branches", "BIGINT", "Jumps and what belongs to them", detail=True),
    Column("predicated", "BIGINT", "Instructions that run under a predicate", detail=True),
    Column("unknown", "BIGINT", "Instructions whose mnemonic is not in the catalog", detail=True),
    Column("issue_cycles", "BIGINT", "Sum of the stall counts, in cycles", detail=True),
    Column("stall_codes", "VARCHAR", "Stall counts of multiply-adds: S04 is four cycles", detail=True),
    Column("executed", "BIGINT", "Instructions that warps executed, as ncu counted", detail=True),
    Column("executed_pct", "DOUBLE", "Share of the kernel's executed instructions"),
    Column("samples_pct", "DOUBLE", "Share of the kernel's stall samples"),
    Column("address", "VARCHAR", "Addresses of its first and last instruction", detail=True),
    Column("architecture", "VARCHAR", "What it was compiled for", detail=True),
    Column("mangled_name", "VARCHAR", "The linker's name", detail=True),
    Column("reading", "VARCHAR", "What stands out"),
)  # fmt: skip
CLASSES = (
    Column("name", "VARCHAR", "The kernel"),
    Column("part", "VARCHAR", "The kernel as a whole, or a loop in it"),
    Column("class", "VARCHAR", "What the instructions do"),
    Column("instructions", "BIGINT", "How many are in the code"),
    Column("predicated", "BIGINT", "How many of them run under a predicate"),
    Column("executed", "BIGINT", "How many warps executed, as ncu counted"),
    Column("threads_executed", "BIGINT", "The same for threads whose predicate was true"),
    Column("mnemonics", "VARCHAR", "The instructions, with the number of each"),
    Column("about", "VARCHAR", "What the class is", detail=True),
    Column("architecture", "VARCHAR", "What it was compiled for", detail=True),
)
LINES = (
    Column("name", "VARCHAR", "The kernel"),
    Column("samples_pct", "DOUBLE", "Share of the kernel's stall samples"),
    Column("stall", "VARCHAR", "The most frequent stall reason of its warps"),
    Column("stall_pct", "DOUBLE", "Share of this reason in the line's samples"),
    Column("part", "VARCHAR", "The innermost loop that it is in"),
    Column("source", "VARCHAR", "Line of the source"),
    Column("address", "VARCHAR", "Address in the kernel"),
    Column("instruction", "VARCHAR", "The instruction that waited, often for the result of an earlier one"),
    Column("executed", "BIGINT", "How often warps executed it"),
    Column("samples", "BIGINT", "Stall samples at it", detail=True),
)


_STALLING_LINES = 10  # lines shown per kernel
# Older architectures have another encoding. Newer ones are read; instructions not in the catalog count as unknown.
_OLDEST, _NEWEST = 70, 121
BY = ("loop", "class", "line")


def _by_loop(kernel: Kernel, name: str, limits: Limits) -> list[tuple[Any, ...]]:
    """A row for the kernel, and one for each loop."""
    parts = parts_of(kernel)
    best = hottest(parts)
    whole = parts[0]
    rows = []
    for part in parts:
        count = part.counted
        reading = sentences(part, limits)
        if part is best and len([one for one in parts if one.loop]) > 1:
            reading.insert(0, "most of the executed instructions are here")
        rows.append((
            name, part.name, part.place, part.instructions, part.multiply_adds, part.loads, part.compute_per_load,
            _texts(part.widths("global_load", "async_copy")), _texts(part.widths("global_store")),
            count["async_copy"], count["tma"], count["shared_load"], count["shared_store"],
            part.bytes_of("local_load"), part.bytes_of("local_store"), count["barrier"], count["shuffle"],
            count["special"], count["branch"], sum(one.is_predicated for one in part.code), sum(part.unknown.values()),
            part.issue_cycles, _stalls(part), _whole(part.counts(EXECUTED)), _pct(part, whole, EXECUTED),
            _pct(part, whole, SAMPLES), f"{part.code[0].address:#06x}-{part.code[-1].address:#06x}",
            kernel.architecture or None, kernel.name if kernel.name != name else None, "; ".join(reading) or None,
        ))  # fmt: skip
    return rows


def _by_class(kernel: Kernel, name: str, _limits: Limits) -> list[tuple[Any, ...]]:
    """A row for each class of instructions in the kernel, and in each loop."""
    rows = []
    for part in parts_of(kernel):
        for kind, text in class_descriptions().items():
            found = part.of(kind)
            if found:
                executed, threads = (
                    [one.counts[key] for one in found if key in one.counts] for key in (EXECUTED, THREADS)
                )
                rows.append((
                    name, part.name, kind, len(found), sum(one.is_predicated for one in found),
                    _whole(sum(executed)) if executed else None, _whole(sum(threads)) if threads else None,
                    _texts(Counter(one.mnemonic for one in found), "{} x{}"), text, kernel.architecture or None,
                ))  # fmt: skip
    return rows


def _by_line(kernel: Kernel, name: str, _limits: Limits) -> list[tuple[Any, ...]]:
    """A row for each of the lines at which warps waited most; none without samples."""
    parts = parts_of(kernel)
    total = parts[0].counts(SAMPLES)
    if total is None:
        return []
    rows = []
    inside = {id(one): part.name for part in parts for one in part.code}  # an inner loop comes after those around it
    for one in sampled(kernel.instructions)[:_STALLING_LINES]:
        stalls = {key.removeprefix(STALL): value for key, value in one.counts.items() if key.startswith(STALL)}
        waits = {reason: value for reason, value in stalls.items() if reason != "selected"}
        top = max(waits, key=lambda reason: waits[reason], default=None)
        rows.append((
            name, 100 * one.counts[SAMPLES] / total, top, 100 * waits[top] / sum(stalls.values()) if top else None,
            inside[id(one)], f"{one.line[0]}:{one.line[1]}" if one.line else None,
            f"{one.address:#06x}", one.text, _whole(one.counts.get(EXECUTED)), _whole(one.counts[SAMPLES]),
        ))  # fmt: skip
    return rows


def _texts(counted: Counter[Any], form: str = "{}: {}") -> str | None:
    """Write counts in one cell: 32: 8, 128: 2."""
    return ", ".join(form.format(what, count) for what, count in sorted(counted.items())) or None


def _stalls(part: Part) -> str | None:
    """Write stall counts in one cell: FFMA S01 x12 S04 x4."""
    return (
        ", ".join(
            f"{name} " + " ".join(f"S{stall:02d} x{count}" for stall, count in sorted(counted.items()))
            for name, counted in sorted(part.stall_codes.items())
        )
        or None
    )


def _pct(part: Part, whole: Part, key: str) -> float | None:
    own, of = part.counts(key), whole.counts(key)
    return 100 * own / of if own is not None and of else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


ANSWERS = {
    "loop": ("Kernels and their loops", LOOPS, _by_loop),
    "class": ("Instructions by class", CLASSES, _by_class),
    "line": ("Lines that stall most", LINES, _by_line),
}


@dataclass
class _Read:
    """What was read from a file: rows, and what its notes say."""

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
    title, columns, make_rows = ANSWERS[by]
    with open_kernels(file) as found:
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
                read.rows += make_rows(one, name, limits)
    if not seen:
        raise no_code(file)
    if architecture and not read.names:
        raise UsageError(f"there is no code for {architecture} in {file}", "omit --arch to see all of it")
    empty = "nothing"
    if kernel and not read.kernels:
        empty = f"no kernel is named {kernel!r}; there are: {', '.join(map(readable, read.names[:8]))}"
    return of_rows(columns, read.rows, report="sass", title=title, notes=tuple(_notes(read, by)), empty=empty)


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
