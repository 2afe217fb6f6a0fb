"""Describe in sentences what stands out in a region of a kernel's code."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from nsys_insight.text.kernel_names import make_readable
from nsys_insight.text.units import count_noun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_insight.kernel_code.instructions import Instruction
    from nsys_insight.kernel_code.regions import Region
    from nsys_insight.session.answer import Answer

# Asynchronous copies exist since sm_80.
_FIRST_ASYNC_SM = 80
_VECTOR_BITS = 64  # an access from this width counts as vectorized
# Classes of instructions that write no register.
_NO_WRITE_CLASSES = ("global_store", "shared_store", "local_store", "branch")


# Multiply-adds per global load below which asynchronous copies pay, and above which they do not. Common practice: an
# int8 GEMM below 5 gained 35%, flash attention above 20 lost 5%.
_LOW_RATIO, _HIGH_RATIO = 5, 20


def describe_region(region: Region) -> list[str]:
    """Describe what stands out in a kernel or loop; the list is empty if nothing does.

    Ratios and widths are described for innermost loops only, because code that runs once costs little.
    """
    sentences = []
    if region.loop is not None and region.loop.is_innermost and not region.is_waiting_loop:
        sentences += [*_describe_ratio(region), *_describe_widths(region)]
    return [*sentences, *_describe_local_memory(region), *_describe_unknown(region)]


def format_readings(answer: Answer) -> Iterator[str]:
    """Format the sentences in an answer, each with the kernel and region that it is about."""
    for row in answer.dicts():
        if row["reading"]:
            subject = ", ".join(filter(None, [make_readable(row["name"]), row.get("part") or row.get("architecture")]))
            source = f" ({row['source']})" if row.get("source") else ""
            yield f"{subject}{source}: {row['reading']}"


def find_staged_loads(region: Region) -> list[Instruction]:
    """Find the loads from global memory whose value a store in the same region writes to shared memory."""
    stored_registers = {register for store in region.select("shared_store") for register in store.stored_registers}
    return [load for load in region.select("global_load") if _list_written_registers(load) & stored_registers]


def count_neighbor_loads(region: Region) -> int:
    """Count the 32-bit loads from neighboring addresses: the same unchanged base register, offsets 4 bytes apart.

    One wider load can replace several of these if the address is aligned.
    """
    count = 0
    offsets_by_register: dict[str, set[int]] = defaultdict(set)
    for instruction, kind in zip(region.code, region.classes, strict=True):
        if kind == "global_load" and instruction.width_bits == 32 and (operand := instruction.address_operand):
            offsets_by_register[operand[0]].add(operand[1])
        written_registers = _list_written_registers(instruction) if kind not in _NO_WRITE_CLASSES else set()
        # An address takes two registers, so a write to the next one changes it too.
        for base in list(offsets_by_register):
            if not written_registers.isdisjoint((base, f"R{int(base[1:]) + 1}")):
                count += _count_adjacent(offsets_by_register.pop(base))
    return count + sum(map(_count_adjacent, offsets_by_register.values()))


def _describe_ratio(region: Region) -> list[str]:
    """Describe the ratio of multiply-adds to loads: asynchronous copies, staged loads, other loads."""
    ratio = region.compute_per_load
    if ratio is None:
        return []
    multiply_adds = count_noun(region.multiply_add_count, "multiply-add")
    counts = f"{multiply_adds} for {count_noun(region.load_count, 'global load')}, {ratio:.3g} per load"
    if copies := region.class_counts["async_copy"]:
        advice = f"above {_HIGH_RATIO}, plain loads can be faster; measure both"
        return [f"{counts}, {copies} of them asynchronous: {advice}"] if ratio > _HIGH_RATIO else []
    staged_count = len(find_staged_loads(region))
    if not staged_count or _parse_sm_number(region.kernel.architecture) < _FIRST_ASYNC_SM:
        sentence = f"{counts} (below {_LOW_RATIO}): such a loop is usually memory-bound; reuse loaded values more often"
        return [sentence] if region.multiply_add_count and ratio < _LOW_RATIO else []
    if ratio < _LOW_RATIO:
        advice = f"asynchronous copies (cp.async) pay below {_LOW_RATIO}; a second buffer doubles the shared memory"
    elif ratio > _HIGH_RATIO:
        advice = f"above {_HIGH_RATIO}, asynchronous copies cost more than they hide; change the algorithm instead"
    else:
        advice = f"between {_LOW_RATIO} and {_HIGH_RATIO}, asynchronous copies (cp.async) may pay; measure both"
    loads = region.class_counts["global_load"]
    return [f"{counts}; {staged_count} of {loads} loads go through registers into shared memory: {advice}"]


def _describe_widths(region: Region) -> list[str]:
    if neighbor_count := count_neighbor_loads(region):
        loads = (
            f"{neighbor_count} of {region.class_counts['global_load']} loads are of neighboring addresses, 32 bits each"
        )
        return [f"{loads}: one 64- or 128-bit load replaces two or four of them where the address is aligned"]
    ratio = region.compute_per_load
    widths = region.count_widths("global_load", "global_store", "async_copy")
    if ratio is None or ratio >= _LOW_RATIO or not widths or max(widths) >= _VECTOR_BITS:
        return []
    access = f"global access is {max(widths)} bits wide at most ({count_noun(sum(widths.values()), 'instruction')})"
    return [f"{access}: 128-bit access (float4) moves the same bytes with fewer instructions"]


def _describe_local_memory(region: Region) -> list[str]:
    loads, stores = region.class_counts["local_load"], region.class_counts["local_store"]
    if not loads + stores:
        return []
    access = f"{count_noun(loads, 'load')} and {count_noun(stores, 'store')} of local memory"
    rate = " per iteration" if region.loop else ""
    size = f"{region.count_bytes('local_load')} and {region.count_bytes('local_store')} bytes per thread"
    return [f"{access}{rate} ({size}): spilled registers, or an array indexed at run time"]


def _describe_unknown(region: Region) -> list[str]:
    if region.loop or not region.unknown_mnemonics:
        return []
    names = ", ".join(f"{name} x{count}" for name, count in region.unknown_mnemonics.items())
    return [f"not in the instruction catalog: {names}"]


def _count_adjacent(offsets: set[int]) -> int:
    """Count the offsets that have a neighbor 4 bytes away."""
    return sum(offset - 4 in offsets or offset + 4 in offsets for offset in offsets)


def _list_written_registers(instruction: Instruction) -> set[str]:
    """List the registers that an instruction writes. Two are assumed unless it is a load."""
    first = instruction.destination
    if first is None:
        return set()
    count = max(1, instruction.width_bits // 32) if instruction.mnemonic.startswith("LD") else 2
    return {f"R{int(first[1:]) + offset}" for offset in range(count)}


def _parse_sm_number(architecture: str) -> int:
    match = re.search(r"\d+", architecture)
    return int(match[0]) if match else 0
