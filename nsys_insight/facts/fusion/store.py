"""The tables of what is found about fusion: candidates, their kernels, and the step that they were found in."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.fusion.mine import layers_of
from nsys_insight.facts.fusion.patterns import NOVEL
from nsys_insight.facts.fusion.simulate import Change
from nsys_insight.facts.fusion.verdict import complexity
from nsys_insight.sql.rows import insert

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

    from nsys_insight.facts.fusion.mine import Layers
    from nsys_insight.facts.fusion.simulate import Timeline
    from nsys_insight.facts.fusion.stream import Chain, Op, OpStream
    from nsys_insight.facts.fusion.verdict import Candidate

GEMM_REMEDY = "the product's epilogue or prologue (cuBLASLt, CUTLASS), or torch.compile with max-autotune"


@dataclass(frozen=True)
class TypicalStep:
    """What is found in the typical step of a process: `typical` of the `sampled` steps are like it."""

    process: int
    sampled: int
    typical: int
    wall_ns: float
    timeline: Timeline
    streams: list[OpStream]
    candidates: list[Candidate]


def store(connection: duckdb.DuckDBPyConnection, found: TypicalStep) -> None:
    """Fill the tables of `queries/facts/fusion/tables.sql`."""
    candidates, timeline, streams = found.candidates, found.timeline, found.streams
    layers = {id(stream): layers_of([op.token for op in stream.ops]) for stream in streams}
    best = chosen(candidates)
    low, high = Change(), Change()
    for candidate in best:
        low, high = low.with_(candidate.gain.low), high.with_(candidate.gain.high)
    alone = timeline.period()
    together = sorted(alone - timeline.period(change) for change in (low, high))
    busiest = max(streams, key=lambda stream: len(stream.ops))
    main = max(layers[id(busiest)], key=lambda part: part.period * part.count, default=None)
    kernels = sum(op.kind == "kernel" for stream in streams for op in stream.ops)
    numbered = list(enumerate(candidates, 1))
    insert(
        connection,
        "facts.fusions",
        (
            _row(number, one, layers.get(id(one.chain.stream), []), found.process, is_chosen=one in best)
            for number, one in numbered
        ),
    )
    insert(
        connection,
        "facts.fusion_kernels",
        (row for number, one in numbered for row in _kernel_rows(number, one.chain, timeline, found.process)),
    )
    low_ns, high_ns = together
    insert(
        connection,
        "facts.fusion_step",
        [
            {
                "wall_ns": found.wall_ns, "replayed_ns": alone, "together_low_ns": low_ns, "together_high_ns": high_ns,
                "fixed_ns": timeline.fixed_ns, "layer_period": main and main.period, "layers": main and main.count,
                "typical_steps": found.typical, "sampled_steps": found.sampled, "kernels": kernels,
                "process_id": found.process,
            }
        ],
    )  # fmt: skip


def chosen(candidates: list[Candidate]) -> list[Candidate]:
    """Those that can be fused together: from the best on, each that has no kernel of one before it."""
    taken: set[Op] = set()
    best = []
    for candidate in candidates:
        ops = {op for ops in candidate.chain.ops for op in ops}
        if candidate.verdict == "YES" and taken.isdisjoint(ops):
            best.append(candidate)
            taken |= ops
    return best


def _row(number: int, candidate: Candidate, layers: list[Layers], process: int, *, is_chosen: bool) -> dict[str, Any]:
    chain, gained = candidate.chain, candidate.gain
    first = chain.stream.ops[chain.places[0][0]]
    times, count = len(chain.places), len(chain.places[0])
    firsts = sum(op.token == first.token for op in chain.stream.ops)
    part, inside = _layer_of(chain, layers)
    launches = sum(not op.in_graph and op.call_ns is not None for ops in chain.ops for op in ops[:-1])
    pattern = chain.pattern.name if chain.pattern else f"GEMM {chain.edge}" if chain.edge else None
    remedy = chain.pattern.remedy if chain.pattern else GEMM_REMEDY if chain.edge else NOVEL
    return {
        "candidate": number, "verdict": candidate.verdict, "reason": candidate.reason, "pattern": pattern,
        "chain": _text(chain), "kernel_count": count, "per_step": times,
        "per_layer": inside / part.count if part else None, "layers": part.count if part else None,
        "proximity_ratio": min(1.0, times / firsts), "recurrence_ratio": candidate.recurrence, "shapes": _shapes(chain),
        "gemm_edge": chain.edge, "complexity": complexity(chain),
        "remedy": remedy if candidate.verdict != "NO" else None,
        "kernels_saved": times * (count - 1), "launches_saved": launches,
        "host_low_ns": gained.host_low_ns, "host_high_ns": gained.host_high_ns, "gap_ns": gained.gap_ns,
        "kernel_low_ns": gained.kernel_low_ns, "kernel_high_ns": gained.kernel_high_ns, "chain_ns": gained.chain_ns,
        "saved_low_ns": candidate.saved_low_ns, "saved_high_ns": candidate.saved_high_ns, "is_chosen": is_chosen,
        "process_id": process, "device_id": first.device, "stream_id": first.stream,
    }  # fmt: skip


def _layer_of(chain: Chain, layers: list[Layers]) -> tuple[Layers | None, int]:
    """The layers in which a chain comes most often, and how often it does."""
    best: tuple[Layers | None, int] = (None, 0)
    for part in layers:
        inside = sum(0 <= places[0] - part.start < part.period * part.count for places in chain.places)
        if inside > best[1]:
            best = (part, inside)
    return best


def _shapes(chain: Chain) -> str:
    """How the grids and blocks of a chain's kernels agree."""
    shapes = [[(op.grid, op.block) for op in ops] for ops in chain.ops]
    if len({shape for one in shapes for shape in one}) == 1:
        return "same"
    return "by place" if all(one == shapes[0] for one in shapes) else "differ"


def _text(chain: Chain) -> str:
    """The operations in order; those that stay in brackets; equal neighbours counted."""
    places = chain.places[0]
    words = chain.stream.words
    shown = [words[at] if at in places else f"[{words[at]}]" for at in sorted({*places, *chain.around})]
    parts: list[str] = []
    for word, times in _counted(shown):
        parts.append(f"{times} \N{MULTIPLICATION SIGN} {word}" if times > 1 else word)
    return " → ".join(parts)


def _counted(words: list[str]) -> list[tuple[str, int]]:
    return [(word, len(list(group))) for word, group in groupby(words)]


def _kernel_rows(number: int, chain: Chain, timeline: Timeline, process: int) -> Iterable[dict[str, Any]]:
    """The kernels of a chain in order, and those that stay between them, with means over the times that it comes."""
    stream = chain.stream
    begin = chain.places[0][0]
    for position, at in enumerate(sorted({*chain.places[0], *chain.around}), 1):
        op, kernel = stream.ops[at], stream.kernels[at]
        offset = at - begin
        same = [stream.ops[places[0] + offset] for places in chain.places]
        host = [timeline.advance_ns[one] for one in same if one.call_ns is not None and not one.in_graph]
        api = [one.returned_ns - one.call_ns for one in same if one.call_ns is not None and one.returned_ns is not None]
        gaps = [max(0.0, one.start_ns - timeline.before[one]) for one in same]
        yield {
            "candidate": number, "position": position, "role": "fused" if at in chain.places[0] else "stays",
            "operation": kernel.word if kernel else op.kind, "name_id": op.name_id, "grid": op.grid, "block": op.block,
            "shapes": len({(one.grid, one.block) for one in same}),
            "duration_ns": sum(one.duration_ns for one in same) / len(same), "gap_ns": sum(gaps) / len(gaps),
            "host_ns": sum(host) / len(host) if host else None,
            "api_ns": sum(api) / len(api) if api and not op.in_graph else None,
            "process_id": process, "device_id": op.device, "stream_id": op.stream, "correlation_id": op.correlation,
            "start_ns": op.first_ns,
        }  # fmt: skip
