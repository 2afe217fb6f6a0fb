"""What is counted in kernels as rows: by loop, by class of instructions, by line that stalls."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from nsys_insight.kernel_code.classes import about
from nsys_insight.kernel_code.parts import hottest, parts_of, sampled
from nsys_insight.kernel_code.reading import Limits, sentences
from nsys_insight.kernel_code.source_page import EXECUTED, SAMPLES, STALL, THREADS

if TYPE_CHECKING:
    from nsys_insight.kernel_code.instructions import Kernel
    from nsys_insight.kernel_code.parts import Part

_STALLING = 10  # lines of a kernel that stall most


def by_loop(kernel: Kernel, name: str, limits: Limits) -> list[tuple[Any, ...]]:
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


def by_class(kernel: Kernel, name: str, _limits: Limits) -> list[tuple[Any, ...]]:
    """A row for each class of instructions in the kernel, and in each loop."""
    rows = []
    for part in parts_of(kernel):
        for kind, text in about().items():
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


def by_line(kernel: Kernel, name: str, _limits: Limits) -> list[tuple[Any, ...]]:
    """A row for each of the lines at which warps waited most; none without samples."""
    parts = parts_of(kernel)
    total = parts[0].counts(SAMPLES)
    if total is None:
        return []
    rows = []
    inside = {id(one): part.name for part in parts for one in part.code}  # an inner loop comes after those around it
    for one in sampled(kernel.instructions)[:_STALLING]:
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
