"""The tables about fusion: candidates, their kernels, and the typical step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.fusion.mine import Layers, find_layers
from nsys_insight.facts.fusion.patterns import NOVEL
from nsys_insight.facts.fusion.simulate import Change, Timeline
from nsys_insight.facts.fusion.verdict import Candidate, rate_complexity
from nsys_insight.sql.rows import insert_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

    from nsys_insight.facts.fusion.stream import Chain, Op, OpStream

# The longest sequence whose repetitions the text of a chain counts, and the operations that it has at most.
_MAX_PERIOD = 16
_MAX_OPERATIONS = 24
GEMM_REMEDY = "the product's epilogue or prologue (cuBLASLt, CUTLASS), or torch.compile with max-autotune"


@dataclass(frozen=True)
class TypicalStep:
    """The typical step of a process, and its candidates. `typical_count` of the `sampled_count` steps are typical."""

    process: int
    sampled_count: int
    typical_count: int
    wall_ns: float
    timeline: Timeline
    streams: list[OpStream]
    candidates: list[Candidate]


def store(connection: duckdb.DuckDBPyConnection, step: TypicalStep) -> None:
    """Fill the tables of `tables.toml`."""
    candidates, timeline, streams = step.candidates, step.timeline, step.streams
    layers = {id(stream): find_layers([op.token for op in stream.ops]) for stream in streams}
    compatible = select_compatible(candidates)
    low, high = Change(), Change()
    for candidate in compatible:
        low, high = low.merge(candidate.gain.low), high.merge(candidate.gain.high)
    unchanged_ns = timeline.simulate_period()
    low_ns, high_ns = sorted(unchanged_ns - timeline.simulate_period(change) for change in (low, high))
    busiest = max(streams, key=lambda stream: len(stream.ops))
    main = max(layers[id(busiest)], key=lambda section: section.period * section.count, default=None)
    kernels = sum(op.kind == "kernel" for stream in streams for op in stream.ops)
    with_numbers = list(enumerate(candidates, 1))
    insert_rows(
        connection,
        "facts.fusions",
        (
            _build_row(
                number,
                candidate,
                layers.get(id(candidate.chain.stream), []),
                step.process,
                is_chosen=candidate in compatible,
            )
            for number, candidate in with_numbers
        ),
    )
    insert_rows(
        connection,
        "facts.fusion_kernels",
        (
            row
            for number, candidate in with_numbers
            for row in _build_kernel_rows(number, candidate.chain, timeline, step.process)
        ),
    )
    insert_rows(
        connection,
        "facts.fusion_step",
        [
            {
                "wall_ns": step.wall_ns, "replayed_ns": unchanged_ns, "together_low_ns": low_ns,
                "together_high_ns": high_ns, "fixed_ns": timeline.fixed_ns, "layer_period": main and main.period,
                "layers": main and main.count, "typical_steps": step.typical_count,
                "sampled_steps": step.sampled_count, "kernels": kernels, "process_id": step.process,
            }
        ],
    )  # fmt: skip


def select_compatible(candidates: list[Candidate]) -> list[Candidate]:
    """Select candidates that can be fused together: in order, each that shares no kernel with one before it."""
    fused: set[Op] = set()
    compatible = []
    for candidate in candidates:
        ops = {op for ops in candidate.chain.ops for op in ops}
        if candidate.verdict == "YES" and fused.isdisjoint(ops):
            compatible.append(candidate)
            fused |= ops
    return compatible


def _build_row(
    number: int, candidate: Candidate, layers: list[Layers], process: int, *, is_chosen: bool
) -> dict[str, Any]:
    chain, gain = candidate.chain, candidate.gain
    first = chain.stream.ops[chain.occurrences[0][0]]
    per_step, kernel_count = len(chain.occurrences), len(chain.occurrences[0])
    first_kernels = sum(op.token == first.token for op in chain.stream.ops)
    section, in_section = _find_main_layers(chain, layers)
    launches = sum(not op.is_in_graph and op.call_ns is not None for ops in chain.ops for op in ops[:-1])
    pattern = chain.pattern.name if chain.pattern else f"GEMM {chain.edge}" if chain.edge else None
    remedy = chain.pattern.remedy if chain.pattern else GEMM_REMEDY if chain.edge else NOVEL
    return {
        "candidate": number, "verdict": candidate.verdict, "reason": candidate.reason, "pattern": pattern,
        "chain": _format_chain(chain), "kernel_count": kernel_count, "per_step": per_step,
        "per_layer": in_section / section.count if section else None, "layers": section.count if section else None,
        "proximity_ratio": min(1.0, per_step / first_kernels), "recurrence_ratio": candidate.recurrence,
        "shapes": _compare_shapes(chain),
        "gemm_edge": chain.edge, "complexity": rate_complexity(chain),
        "remedy": remedy if candidate.verdict != "NO" else None,
        "kernels_saved": per_step * (kernel_count - 1), "launches_saved": launches,
        "host_low_ns": gain.host_low_ns, "host_high_ns": gain.host_high_ns, "gap_ns": gain.gap_ns,
        "kernel_low_ns": gain.kernel_low_ns, "kernel_high_ns": gain.kernel_high_ns, "chain_ns": gain.chain_ns,
        "saved_low_ns": candidate.saved_low_ns, "saved_high_ns": candidate.saved_high_ns, "is_chosen": is_chosen,
        "process_id": process, "device_id": first.device, "stream_id": first.stream,
    }  # fmt: skip


def _find_main_layers(chain: Chain, layers: list[Layers]) -> tuple[Layers | None, int]:
    """Return the section of layers in which a chain occurs most often, and its number of occurrences there."""
    best: tuple[Layers | None, int] = (None, 0)
    for section in layers:
        length = section.period * section.count
        count = sum(0 <= indices[0] - section.start < length for indices in chain.occurrences)
        if count > best[1]:
            best = (section, count)
    return best


def _compare_shapes(chain: Chain) -> str:
    """Return how the grids and blocks of a chain's kernels agree: same, by place or differ."""
    shapes = [[(op.grid, op.block) for op in ops] for ops in chain.ops]
    if len({shape for occurrence in shapes for shape in occurrence}) == 1:
        return "same"
    return "by place" if all(occurrence == shapes[0] for occurrence in shapes) else "differ"


def _format_chain(chain: Chain) -> str:
    """Return the operations in order, repetitions once with their count. Skipped operations are in brackets."""
    indices = chain.occurrences[0]
    words = chain.stream.words
    labels = [words[index] if index in indices else f"[{words[index]}]" for index in sorted({*indices, *chain.skipped})]
    texts = _write_repeats(labels)
    if len(texts) > _MAX_OPERATIONS:
        texts = [*texts[:_MAX_OPERATIONS], f"… ({len(texts) - _MAX_OPERATIONS} more)"]
    return " → ".join(texts)


def _write_repeats(words: list[str]) -> list[str]:
    """Return the words in order, where a repetition is one text with its count, also of several words."""
    texts: list[str] = []
    start = 0
    while start < len(words):
        period, count = _find_repeats(words, start)
        unit = words[start] if period == 1 else f"({' → '.join(_write_repeats(words[start : start + period]))})"
        texts.append(f"{count} \N{MULTIPLICATION SIGN} {unit}" if count > 1 else unit)
        start += period * count
    return texts


def _find_repeats(words: list[str], start: int) -> tuple[int, int]:
    """Return the period and count of the longest repetition that starts at a word: (1, 1) without one.

    A sequence counts from three times on: twice is easier to read in full.
    """
    longest = (1, 1)
    for period in range(1, _MAX_PERIOD + 1):
        unit, count = words[start : start + period], 1
        while words[start + period * count : start + period * (count + 1)] == unit:
            count += 1
        if count >= (2 if period == 1 else 3) and period * count > longest[0] * longest[1]:
            longest = (period, count)
    return longest


def _build_kernel_rows(number: int, chain: Chain, timeline: Timeline, process: int) -> Iterable[dict[str, Any]]:
    """Yield the kernels of a chain and the skipped kernels, in order, with means over the occurrences."""
    stream = chain.stream
    begin = chain.occurrences[0][0]
    for position, index in enumerate(sorted({*chain.occurrences[0], *chain.skipped}), 1):
        op, kernel = stream.ops[index], stream.kernels[index]
        offset = index - begin
        repeats = [stream.ops[indices[0] + offset] for indices in chain.occurrences]
        host = [
            timeline.advance_ns[repeat] for repeat in repeats if repeat.call_ns is not None and not repeat.is_in_graph
        ]
        api = [
            repeat.returned_ns - repeat.call_ns
            for repeat in repeats
            if repeat.call_ns is not None and repeat.returned_ns is not None
        ]
        gaps = [max(0.0, repeat.start_ns - timeline.previous_end[repeat]) for repeat in repeats]
        yield {
            "candidate": number, "position": position, "role": "fused" if index in chain.occurrences[0] else "stays",
            "operation": kernel.word if kernel else op.kind, "name_id": op.name_id, "grid": op.grid, "block": op.block,
            "shapes": len({(repeat.grid, repeat.block) for repeat in repeats}),
            "duration_ns": sum(repeat.duration_ns for repeat in repeats) / len(repeats),
            "gap_ns": sum(gaps) / len(gaps),
            "host_ns": sum(host) / len(host) if host else None,
            "api_ns": sum(api) / len(api) if api and not op.is_in_graph else None,
            "process_id": process, "device_id": op.device, "stream_id": op.stream, "correlation_id": op.correlation,
            "start_ns": op.first_ns,
        }  # fmt: skip
