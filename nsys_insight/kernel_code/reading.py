"""What a part of a kernel's code shows, in sentences; nothing where it shows nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_insight.text.kernel_names import readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_insight.kernel_code.instructions import Instruction
    from nsys_insight.kernel_code.parts import Part
    from nsys_insight.session.answer import Answer

# Since sm_80 there are asynchronous copies.
_ASYNC_SINCE = 80
_WIDE = 64  # bits from which an access counts as vectorized


@dataclass(frozen=True)
class Limits:
    """Multiply-adds per global load below which asynchronous copies pay, and above which they do not.

    Common practice: an int8 GEMM below 5 gained 35 %, flash attention above 20 lost 5 %.
    """

    few: float = 5
    many: float = 20


def sentences(part: Part, limits: Limits) -> list[str]:
    """Say what a kernel or loop shows. Ratios are read in innermost loops alone: what runs once costs little."""
    said = []
    if part.loop is not None and part.loop.is_innermost and not part.waits:
        said += [*_ratio(part, limits), *_widths(part, limits)]
    return [*said, *_local(part), *_unknown(part)]


def said(answer: Answer) -> Iterator[str]:
    """The sentences in an answer, each with the kernel and part that it is about."""
    for row in answer.dicts():
        if row["reading"]:
            where = ", ".join(filter(None, [readable(row["name"]), row.get("part") or row.get("architecture")]))
            source = f" ({row['source']})" if row.get("source") else ""
            yield f"{where}{source}: {row['reading']}"


def staged(part: Part) -> list[Instruction]:
    """The loads from global memory whose value a store puts into shared memory, both in this part."""
    stores = {register for one in part.of("shared_store") for register in one.stored}
    return [one for one in part.of("global_load") if _written(one) & stores]


def neighbors(part: Part) -> int:
    """How many 32-bit loads are of addresses next to each other: from one register, 4 bytes apart, without a break.

    These are what one wider load could do, where the address is aligned.
    """
    found = 0
    groups: dict[str, set[int]] = defaultdict(set)
    for one, kind in zip(part.code, part.classes, strict=True):
        if kind == "global_load" and one.width == 32 and (place := one.place):
            groups[place[0]].add(place[1])
        changed = _written(one) if kind not in ("global_store", "shared_store", "local_store", "branch") else set()
        for register in [base for base in groups if base in changed or _next(base) in changed]:
            found += _in_runs(groups.pop(register))
    return found + sum(map(_in_runs, groups.values()))


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + ("s" if count != 1 else "")


def _ratio(part: Part, limits: Limits) -> list[str]:
    """Read the ratio of multiply-adds to loads: of asynchronous copies, of loads that are staged, of other loads."""
    ratio = part.compute_per_load
    if ratio is None:
        return []
    few, many = f"{limits.few:g}", f"{limits.many:g}"
    per = f"{_many(part.multiply_adds, 'multiply-add')} for {_many(part.loads, 'global load')}, {ratio:.3g} per load"
    if copies := part.counted["async_copy"]:
        dear = f"{per}, {copies} of them asynchronous: above {many}, plain loads can be faster; measure both"
        return [dear] if ratio > limits.many else []
    through = len(staged(part))
    if not through or _number(part.kernel.architecture) < _ASYNC_SINCE:
        low = f"{per} (below {few}): such a loop is usually memory-bound; reuse loaded values more often"
        return [low] if part.multiply_adds and ratio < limits.few else []
    if ratio < limits.few:
        advice = f"asynchronous copies (cp.async) pay below {few}; a second buffer doubles the shared memory"
    elif ratio > limits.many:
        advice = f"above {many}, asynchronous copies cost more than they hide; change the algorithm instead"
    else:
        advice = f"between {few} and {many}, asynchronous copies (cp.async) may pay; measure both"
    return [
        f"{per}; {through} of {part.counted['global_load']} loads go through registers into shared memory: {advice}"
    ]


def _widths(part: Part, limits: Limits) -> list[str]:
    if beside := neighbors(part):
        where = f"{beside} of {part.counted['global_load']} loads are of neighboring addresses, 32 bits each"
        return [f"{where}: one 64- or 128-bit load replaces two or four of them where the address is aligned"]
    ratio = part.compute_per_load
    widths = part.widths("global_load", "global_store", "async_copy")
    if ratio is None or ratio >= limits.few or not widths or max(widths) >= _WIDE:
        return []
    what = f"global access is {max(widths)} bits wide at most ({_many(sum(widths.values()), 'instruction')})"
    return [f"{what}: 128-bit access (float4) moves the same bytes with fewer instructions"]


def _local(part: Part) -> list[str]:
    loads, stores = part.counted["local_load"], part.counted["local_store"]
    if not loads + stores:
        return []
    what = f"{_many(loads, 'load')} and {_many(stores, 'store')} of local memory{' per iteration' if part.loop else ''}"
    moved = f"{part.bytes_of('local_load')} and {part.bytes_of('local_store')} bytes per thread"
    return [f"{what} ({moved}): spilled registers, or an array indexed at run time"]


def _unknown(part: Part) -> list[str]:
    if part.loop or not part.unknown:
        return []
    names = ", ".join(f"{name} x{count}" for name, count in part.unknown.items())
    return [f"not in the instruction catalog: {names}"]


def _in_runs(offsets: set[int]) -> int:
    """How many offsets have a neighbor 4 bytes away."""
    return sum(at - 4 in offsets or at + 4 in offsets for at in offsets)


def _written(one: Instruction) -> set[str]:
    """The registers that an instruction writes; two are assumed unless it is a load."""
    first = one.destination
    if first is None:
        return set()
    many = max(1, one.width // 32) if one.mnemonic.startswith("LD") else 2
    return {f"R{int(first[1:]) + more}" for more in range(many)}


def _next(register: str) -> str:
    return f"R{int(register[1:]) + 1}"


def _number(architecture: str) -> int:
    found = re.search(r"\d+", architecture)
    return int(found[0]) if found else 0
