"""Answers about machine code, with one row per kernel and loop, class of instructions, or stalling line."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError
from nsys_insight.kernel_code.demangle import demangle
from nsys_insight.kernel_code.files import build_no_code_error, open_kernels
from nsys_insight.kernel_code.instructions import Kernel, describe_classes
from nsys_insight.kernel_code.reading import describe_region
from nsys_insight.kernel_code.regions import Region, find_hottest_loop, sort_by_samples, split_regions
from nsys_insight.kernel_code.source_page import EXECUTED, SAMPLES, STALL, THREADS
from nsys_insight.session.answer import Answer, build_answer, read_columns
from nsys_insight.text.kernel_names import make_readable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_MAX_LINES = 10  # lines shown per kernel
# Older architectures have another encoding. Newer ones are read; instructions not in the catalog count as unknown.
_OLDEST_SM, _NEWEST_SM = 70, 121
GROUPINGS = ("loop", "class", "line")


def _list_loops(kernel: Kernel, name: str) -> list[tuple[Any, ...]]:
    """List the rows of a kernel: one for the kernel, and one for each loop."""
    regions = split_regions(kernel)
    hottest_loop = find_hottest_loop(regions)
    complete = regions[0]
    rows = []
    for region in regions:
        count = region.class_counts
        sentences = describe_region(region)
        if region is hottest_loop and len([other for other in regions if other.loop]) > 1:
            sentences.insert(0, "most of the executed instructions are here")
        rows.append((
            name, region.name, region.source_lines, region.instruction_count, region.multiply_add_count,
            region.load_count, region.compute_per_load,
            _format_counts(region.count_widths("global_load", "async_copy")),
            _format_counts(region.count_widths("global_store")), count["async_copy"], count["tma"],
            count["shared_load"], count["shared_store"], region.count_bytes("local_load"),
            region.count_bytes("local_store"), count["barrier"], count["shuffle"], count["special"], count["branch"],
            sum(instruction.is_predicated for instruction in region.code), sum(region.unknown_mnemonics.values()),
            region.issue_cycles, _format_stalls(region), _to_integer(region.sum_counts(EXECUTED)),
            _compute_pct(region, complete, EXECUTED), _compute_pct(region, complete, SAMPLES),
            f"{region.code[0].address:#06x}-{region.code[-1].address:#06x}", kernel.architecture or None,
            kernel.name if kernel.name != name else None, "; ".join(sentences) or None,
        ))  # fmt: skip
    return rows


def _list_classes(kernel: Kernel, name: str) -> list[tuple[Any, ...]]:
    """List the classes of instructions in the kernel and in each loop, one row per class."""
    rows = []
    for region in split_regions(kernel):
        for class_name, description in describe_classes().items():
            code = region.select(class_name)
            if code:
                executed, threads = (
                    [instruction.counts[key] for instruction in code if key in instruction.counts]
                    for key in (EXECUTED, THREADS)
                )
                mnemonics = Counter(instruction.mnemonic for instruction in code)
                rows.append((
                    name, region.name, class_name, len(code), sum(instruction.is_predicated for instruction in code),
                    _to_integer(sum(executed)) if executed else None, _to_integer(sum(threads)) if threads else None,
                    _format_counts(mnemonics, "{} x{}"), description, kernel.architecture or None,
                ))  # fmt: skip
    return rows


def _list_lines(kernel: Kernel, name: str) -> list[tuple[Any, ...]]:
    """List the instructions at which warps waited most, one row each; the list is empty without samples."""
    regions = split_regions(kernel)
    total = regions[0].sum_counts(SAMPLES)
    if total is None:
        return []
    rows = []
    # An inner loop comes after the loops around it, so each instruction gets its innermost region.
    region_names = {id(instruction): region.name for region in regions for instruction in region.code}
    for instruction in sort_by_samples(kernel.instructions)[:_MAX_LINES]:
        counts, line = instruction.counts, instruction.source_line
        stalls = {key.removeprefix(STALL): value for key, value in counts.items() if key.startswith(STALL)}
        waits = {reason: value for reason, value in stalls.items() if reason != "selected"}
        top_reason = max(waits, key=lambda reason: waits[reason], default=None)
        rows.append((
            name, 100 * counts[SAMPLES] / total, top_reason,
            100 * waits[top_reason] / sum(stalls.values()) if top_reason else None, region_names[id(instruction)],
            f"{line[0]}:{line[1]}" if line else None, f"{instruction.address:#06x}", instruction.text,
            _to_integer(counts.get(EXECUTED)), _to_integer(counts[SAMPLES]),
        ))  # fmt: skip
    return rows


def _format_counts(counts: Counter[Any], template: str = "{}: {}") -> str | None:
    """Format counts in one cell: 32: 8, 128: 2."""
    return ", ".join(template.format(key, count) for key, count in sorted(counts.items())) or None


def _format_stalls(region: Region) -> str | None:
    """Format stall counts in one cell: FFMA S01 x12 S04 x4."""
    return (
        ", ".join(
            f"{name} " + " ".join(f"S{stall:02d} x{count}" for stall, count in sorted(counts.items()))
            for name, counts in sorted(region.stall_codes.items())
        )
        or None
    )


def _compute_pct(region: Region, complete: Region, key: str) -> float | None:
    count, total = region.sum_counts(key), complete.sum_counts(key)
    return 100 * count / total if count is not None and total else None


def _to_integer(value: float | None) -> int | None:
    return None if value is None else int(value)


ANSWERS_BY_GROUPING = {
    "loop": ("Kernels and their loops", read_columns("kernel_code/loops"), _list_loops),
    "class": ("Instructions by class", read_columns("kernel_code/classes"), _list_classes),
    "line": ("Lines that stall most", read_columns("kernel_code/lines"), _list_lines),
}


@dataclass
class _FileSummary:
    """What was read from a file: the rows, and the data for the notes.

    Attributes:
        names: The names of all functions of the selected architecture.
        kernel_count: The number of kernels that are shown.
        old_architectures: Architectures that are too old to be read.
        new_architectures: Architectures that are newer than the catalog of instructions.
        gap_notes: What the text of a kernel lacks, with the kernel's name.
        left_out: What the disassembler could not read, as sentences.
    """

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    kernel_count: int = 0
    old_architectures: set[str] = field(default_factory=set)
    new_architectures: set[str] = field(default_factory=set)
    gap_notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def answer(file: Path, *, grouping: str = "loop", kernel: str | None = None, architecture: str | None = None) -> Answer:
    """Read a file of machine code, and answer by loop, class or line.

    Args:
        file: A binary file, a disassembly, or ncu's source page; `-` is a text on stdin.
        grouping: One of `GROUPINGS`.
        kernel: Show only kernels whose name, or linker's name, contains this text.
        architecture: Show only code for this architecture, such as sm_90.

    Raises:
        TraceError: The file has no machine code.
        UsageError: The file has no code for this architecture.
        ToolError: The file is binary, and no disassembler is installed.
    """
    summary, function_count = _FileSummary(), 0
    title, columns, list_rows = ANSWERS_BY_GROUPING[grouping]
    with open_kernels(file, architecture, summary.left_out) as functions:
        for function in functions:
            function_count += 1
            function.architecture = function.architecture or architecture or ""
            if not _is_selected(function, architecture, summary):
                continue
            name = demangle(function.name) or "(no name)"
            summary.names.append(name)
            if kernel is None or kernel.lower() in name.lower() or kernel in function.name:
                summary.kernel_count += 1
                summary.gap_notes += [f"{name}: {function.gap_note}"] if function.gap_note else []
                summary.rows += list_rows(function, name)
    if not function_count:
        raise build_no_code_error(file)
    if architecture and not summary.names:
        raise UsageError(f"there is no code for {architecture} in {file}", "omit --arch to see all of it")
    empty = "nothing"
    if kernel and not summary.kernel_count:
        empty = f"no kernel is named {kernel!r}; there are: {', '.join(map(make_readable, summary.names[:8]))}"
    notes = tuple(_list_notes(summary, grouping))
    return build_answer(columns, summary.rows, report="sass", title=title, notes=notes, empty=empty)


def _is_selected(function: Kernel, architecture: str | None, summary: _FileSummary) -> bool:
    """Return whether a function's architecture can be read and is the requested one. Note old and new ones."""
    number = int(re.sub(r"\D", "", function.architecture) or _OLDEST_SM)
    if number < _OLDEST_SM:
        summary.old_architectures.add(function.architecture)
        return False
    if number > _NEWEST_SM:
        summary.new_architectures.add(function.architecture)
    normalized = _normalize_architecture(function.architecture)
    return architecture is None or _normalize_architecture(architecture) in (normalized, normalized.rstrip("af"))


def _normalize_architecture(architecture: str) -> str:
    """Return 90 for 9.0, 90, sm_90 and compute_90; 90a keeps its suffix."""
    return re.sub(r"^(sm_?|compute_)|\.", "", architecture.strip().lower())


def _list_notes(summary: _FileSummary, grouping: str) -> Iterator[str]:
    yield from summary.left_out
    if summary.old_architectures:
        names = ", ".join(sorted(summary.old_architectures))
        yield f"left out: code for {names}; sm_{_OLDEST_SM} and newer is read"
    if summary.new_architectures:
        names = ", ".join(sorted(summary.new_architectures))
        yield f"{names} is newer than the catalog of instructions: instructions that are not in it count as unknown"
    if summary.gap_notes:
        ending = f", and of {len(summary.gap_notes) - 3} more" if len(summary.gap_notes) > 3 else ""
        yield f"the text is incomplete, and counts cover only what is there: {'; '.join(summary.gap_notes[:3])}{ending}"
    if grouping == "line" and summary.kernel_count and not summary.rows:
        yield "no stall samples in this file: give ncu's source page (ncu --import FILE.ncu-rep --csv --page source)"
    if summary.kernel_count < len(summary.names):
        yield f"{summary.kernel_count} of {len(summary.names)} functions"
