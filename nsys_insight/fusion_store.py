"""The tables of what is found about fusion: candidates, their kernels, and the step that they were found in."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from nsys_insight.fusion_layers import layers_of
from nsys_insight.fusion_patterns import NOVEL
from nsys_insight.fusion_replay import Change
from nsys_insight.fusion_verdict import complexity
from nsys_insight.sqltext import literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

    from nsys_insight.fusion import Candidate, Found
    from nsys_insight.fusion_layers import Layers
    from nsys_insight.fusion_replay import Timeline
    from nsys_insight.fusion_stream import Chain, Op

GEMM_REMEDY = "the product's epilogue or prologue (cuBLASLt, CUTLASS), or torch.compile with max-autotune"


def store(connection: duckdb.DuckDBPyConnection, found: Found) -> None:
    """Fill the tables of `queries/fusion/tables.sql`."""
    candidates, timeline, streams = found.candidates, found.timeline, found.streams
    layers = {id(stream): layers_of([op.token for op in stream.ops]) for stream in streams}
    best = chosen(candidates)
    low, high = Change(), Change()
    for candidate in best:
        low, high = low.with_(candidate.gain.low), high.with_(candidate.gain.high)
    alone = timeline.period()
    together = sorted(max(0.0, alone - timeline.period(change)) for change in (low, high))
    busiest = max(streams, key=lambda stream: len(stream.ops))
    main = max(layers[id(busiest)], key=lambda part: part.period * part.count, default=None)
    kernels = sum(op.kind == "kernel" for stream in streams for op in stream.ops)
    _insert(
        connection,
        "found_fusions",
        (
            _row(
                number,
                candidate,
                layers.get(id(candidate.chain.stream), []),
                found.process,
                is_chosen=candidate in best,
            )
            for number, candidate in enumerate(candidates, 1)
        ),
    )
    _insert(
        connection,
        "found_fusion_kernels",
        (
            row
            for number, candidate in enumerate(candidates, 1)
            for row in _kernel_rows(number, candidate.chain, timeline, found.process)
        ),
    )
    step = (found.wall_ns, alone, *together, timeline.fixed_ns, main and main.period, main and main.count)
    _insert(connection, "found_fusion_step", [(*step, found.typical, found.sampled, kernels, found.process)])


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


def _row(number: int, candidate: Candidate, layers: list[Layers], process: int, *, is_chosen: bool) -> tuple[Any, ...]:
    chain, gained = candidate.chain, candidate.gain
    first = chain.stream.ops[chain.places[0][0]]
    times, count = len(chain.places), len(chain.places[0])
    firsts = sum(op.token == first.token for op in chain.stream.ops)
    part, inside = _layer_of(chain, layers)
    launches = sum(not op.in_graph and op.call_ns is not None for ops in chain.ops for op in ops[:-1])
    pattern = chain.pattern.name if chain.pattern else f"GEMM {chain.edge}" if chain.edge else None
    remedy = chain.pattern.remedy if chain.pattern else GEMM_REMEDY if chain.edge else NOVEL
    return (
        number, candidate.verdict, candidate.reason, pattern, _text(chain), count, times,
        inside / part.count if part else None, part.count if part else None, min(1.0, times / firsts),
        candidate.recurrence, _shapes(chain),
        chain.edge, complexity(chain), remedy if candidate.verdict != "NO" else None, times * (count - 1), launches,
        gained.host_low_ns, gained.host_high_ns, gained.gap_ns, gained.kernel_low_ns, gained.kernel_high_ns,
        gained.chain_ns, candidate.saved_low_ns, candidate.saved_high_ns, is_chosen,
        process, first.device, first.stream,
    )  # fmt: skip


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


def _kernel_rows(number: int, chain: Chain, timeline: Timeline, process: int) -> Iterable[tuple[Any, ...]]:
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
        yield (
            number, position, "fused" if at in chain.places[0] else "stays", kernel.word if kernel else op.kind,
            op.name_id, op.grid, op.block, len({(one.grid, one.block) for one in same}),
            sum(one.duration_ns for one in same) / len(same), sum(gaps) / len(gaps),
            sum(host) / len(host) if host else None, sum(api) / len(api) if api and not op.in_graph else None,
            process, op.device, op.stream, op.correlation, op.first_ns,
        )  # fmt: skip


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    values = ", ".join("(" + ", ".join(map(literal, row)) + ")" for row in rows)
    if values:
        connection.execute(f"INSERT INTO {table} VALUES {values}")
