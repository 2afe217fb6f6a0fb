"""Which chains of kernels to fuse: found in the typical step of a trace, and ranked by what they would save.

The views `fusion_candidates`, `fusion_kernels` and `fusion_step` read three tables that are filled here when a query
needs them, after the steps were found. SQL brings the typical step as some thousand operations; what follows is done on
those: chains (`nsys_insight.fusion_mine`), what they save (`fusion_gain`, `fusion_replay`), verdicts (`fusion_verdict`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight import model
from nsys_insight.packs import bind
from nsys_insight.paths import queries_folder
from nsys_insight.sqltext import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import duckdb

    from nsys_insight.fusion_gain import Gain
    from nsys_insight.fusion_mine import Chain, Kernel, Layers, Op, Stream
    from nsys_insight.fusion_replay import Timeline

# The typical step is the mean of at most so many steps, or fewer if they have more operations than that.
STEPS, OPERATIONS = 32, 100_000
# So many chains are played again, or fewer in a step of many operations.
CHAINS, PLAYED = 60, 1_500_000
# Longer runs across streams are two programs, not a chain.
LONGEST_ACROSS = 16
GEMM_REMEDY = "the product's epilogue or prologue (cuBLASLt, CUTLASS), or torch.compile with max-autotune"


@dataclass(frozen=True)
class Candidate:
    """A chain with what it saves."""

    chain: Chain
    gain: Gain
    verdict: str
    reason: str | None
    recurrence: float
    saved_low_ns: float
    saved_high_ns: float

    @property
    def order(self) -> tuple[Any, ...]:
        """Those that can be fused first, each by what they save."""
        first = self.chain.stream.ops[self.chain.places[0][0]]
        saved = self.saved_low_ns + self.saved_high_ns
        return (("YES", "UNKNOWN", "NO").index(self.verdict), -round(saved), first.device, first.stream, first.place)


def needed(sql: str) -> bool:
    """Tell whether a query reads what is found about fusion."""
    return any("found_fusion" in view.create for view in model.needed(sql))


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables that the views read, without rows."""
    connection.execute((queries_folder() / "fusion" / "tables.sql").read_text(encoding="utf-8"))


def find(connection: duckdb.DuckDBPyConnection, prepare: Callable[[str], None]) -> None:
    """Fill the tables; `prepare` creates the views that a statement names."""

    def run(name: str, **values: Any) -> list[Any]:
        sql = (queries_folder() / "fusion" / f"{name}.sql").read_text(encoding="utf-8")
        prepare(sql)
        return connection.execute(bind(sql, values)).fetchall()

    create_tables(connection)
    run("steps", operations=OPERATIONS, most=STEPS)
    for process, host_from, host_to, begin, sampled in run("window"):
        run("operations", **{"process": process, "host_from": host_from, "host_to": host_to, "from": begin})
        run("sequences")
        found = _candidates(run, process)
        if found:
            timeline, streams, candidates, (wall, typical) = found
            _store(connection, timeline, streams, candidates, wall, typical, sampled, process)
    for name in ("steps", "operations", "sequences"):
        connection.execute(f"DROP TABLE IF EXISTS fusion_{name}")


def _candidates(
    run: Callable[..., list[Any]], process: int
) -> tuple[Timeline, list[Stream], list[Candidate], tuple[float, int]] | None:
    from nsys_insight.fusion_mine import Op, chains
    from nsys_insight.fusion_replay import Timeline, Wait

    ops = [Op(*row) for row in run("typical")]
    if not any(op.kind == "kernel" for op in ops):
        return None
    waits = [Wait(*row) for row in run("waits", process=process)]
    ((wall, host, typical),) = run("durations")
    timeline = Timeline(ops, waits, host, wall)
    streams = _streams(ops, waits, _kernels(run))
    steps: dict[int, dict[tuple[int, int], list[int]]] = defaultdict(dict)
    for step, device, stream, tokens in run("others"):
        steps[step][device, stream] = tokens
    found = [chain for stream in streams for chain in chains(stream)] + _across_streams(ops, streams, timeline)
    candidates = _judged(found, timeline, wall, list(steps.values()), typical)
    return timeline, streams, candidates, (wall, typical)


def _kernels(run: Callable[..., list[Any]]) -> dict[int, Kernel]:
    from nsys_insight.fusion_mine import Kernel
    from nsys_insight.fusion_patterns import catalog

    return {
        name_id: Kernel(name, family, provenance, catalog().operation(name, family))
        for name_id, name, family, provenance in run("names")
    }


def _streams(ops: list[Op], waits: Iterable[Any], kernels: dict[int, Kernel]) -> list[Stream]:
    from nsys_insight.fusion_mine import Stream

    lines: dict[tuple[int, int], list[Op]] = defaultdict(list)
    for op in ops:
        lines[op.device, op.stream].append(op)
    streams = [Stream(line, [_kernel(op, kernels) for op in line]) for line in lines.values()]
    for stream in streams:
        for at, (one, other) in enumerate(zip(stream.ops, stream.ops[1:], strict=False)):
            for wait in waits:
                if one.call_ns is not None and other.call_ns is not None and one.call_ns <= wait.start_ns < other.call_ns:
                    stream.parted[at + 1] = wait.name
    return streams


def _kernel(op: Op, kernels: dict[int, Kernel]) -> Kernel | None:
    return kernels.get(op.name_id) if op.kind == "kernel" and op.name_id is not None else None


def _across_streams(ops: list[Op], streams: list[Stream], timeline: Timeline) -> list[Chain]:
    """Kernels that are launched one after the other on different streams."""
    from nsys_insight.fusion_mine import Chain, Stream

    kernels = {op: kernel for stream in streams for op, kernel in zip(stream.ops, stream.kernels, strict=True)}
    events = [event.op for event in timeline.events]
    found: dict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
    line: list[Op] = [op for op in events if op is not None]
    merged = Stream(line, [kernels[op] for op in line])
    places = {op: at for at, op in enumerate(line)}
    run: list[int] = []
    for op in [*events, None]:
        at = places[op] if op is not None else -1
        joins = op is not None and op.call_ns is not None and not op.in_graph and merged.fusable(at)
        if joins and (not run or line[run[-1]].device == line[at].device):
            run.append(at)
            continue
        if 2 <= len(run) <= LONGEST_ACROSS and len({line[at].stream for at in run}) > 1:
            found[tuple(hash((line[at].token, line[at].stream)) for at in run)].append(tuple(run))
        run = [at] if joins else []
    return [
        Chain(merged, tuple(runs), veto=f"they run on different streams ({', '.join(map(str, _streams_of(merged, runs)))})")
        for runs in found.values()
    ]


def _streams_of(line: Stream, runs: list[tuple[int, ...]]) -> list[int]:
    return sorted({line.ops[at].stream for at in runs[0]})


def _judged(
    chains: list[Chain], timeline: Timeline, wall: float, others: list[dict[tuple[int, int], list[int]]], typical: int
) -> list[Candidate]:
    """Play the step with each chain fused, but for chains that cannot save enough, and judge them; the best first."""
    from nsys_insight.fusion_gain import gain
    from nsys_insight.fusion_verdict import recurrence, verdict

    gains = sorted(((chain, gain(chain, timeline)) for chain in chains), key=lambda pair: -pair[1].most_ns)
    alone = timeline.period()
    found = []
    for chain, gained in gains[: max(10, min(CHAINS, PLAYED // len(timeline.events)))]:
        low, high = (max(0.0, alone - timeline.period(change)) for change in (gained.low, gained.high))
        recurs = recurrence(chain, others, typical)
        word, reason = verdict(chain, gained, wall, max(low, high), recurs)
        found.append(Candidate(chain, gained, word, reason, recurs, min(low, high), max(low, high)))
    return sorted(found, key=lambda candidate: candidate.order)


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


def _store(  # noqa: PLR0913, PLR0917 - the facts of the step, one by one
    connection: duckdb.DuckDBPyConnection,
    timeline: Timeline,
    streams: list[Stream],
    candidates: list[Candidate],
    wall: float,
    typical: int,
    sampled: int,
    process: int,
) -> None:
    from nsys_insight.fusion_mine import layers_of
    from nsys_insight.fusion_replay import Change

    layers = {id(stream): layers_of([op.token for op in stream.ops]) for stream in streams}
    best = chosen(candidates)
    low, high = Change(), Change()
    for candidate in best:
        low, high = low.with_(candidate.gain.low), high.with_(candidate.gain.high)
    alone = timeline.period()
    together = sorted(max(0.0, alone - timeline.period(change)) for change in (low, high))
    busiest = max(streams, key=lambda stream: len(stream.ops))
    main = max(layers[id(busiest)], key=lambda part: part.period * part.count, default=None)
    _insert(connection, "found_fusions", [
        _row(number, candidate, layers.get(id(candidate.chain.stream), []), process, is_chosen=candidate in best)
        for number, candidate in enumerate(candidates, 1)
    ])  # fmt: skip
    _insert(connection, "found_fusion_kernels", [
        row for number, candidate in enumerate(candidates, 1) for row in _kernel_rows(number, candidate, timeline, process)
    ])  # fmt: skip
    kernels = sum(op.kind == "kernel" for stream in streams for op in stream.ops)
    _insert(connection, "found_fusion_step", [(
        wall, alone, *together, timeline.fixed_ns, main.period if main else None, main.count if main else None,
        typical, sampled, kernels, process,
    )])  # fmt: skip


def _row(number: int, candidate: Candidate, layers: list[Layers], process: int, *, is_chosen: bool) -> tuple[Any, ...]:
    from nsys_insight.fusion_patterns import NOVEL
    from nsys_insight.fusion_verdict import complexity

    chain, gained = candidate.chain, candidate.gain
    first = chain.stream.ops[chain.places[0][0]]
    times, count = len(chain.places), len(chain.places[0])
    firsts = sum(op.token == first.token for op in chain.stream.ops)
    part, inside = _layer_of(chain, layers)
    shapes = [{(op.grid, op.block) for op in ops} for ops in chain.ops]
    launches = sum(not op.in_graph and op.call_ns is not None for ops in chain.ops for op in ops[:-1])
    pattern = chain.pattern.name if chain.pattern else f"GEMM {chain.edge}" if chain.edge else None
    remedy = chain.pattern.remedy if chain.pattern else GEMM_REMEDY if chain.edge else NOVEL
    return (
        number, candidate.verdict, candidate.reason, pattern, _text(chain), count, times,
        inside / part.count if part else None, part.count if part else None, min(1.0, times / firsts),
        candidate.recurrence, "same" if len(set().union(*shapes)) == 1 else "by place" if _alike(chain) else "differ",
        chain.edge, complexity(chain), remedy if candidate.verdict != "NO" else None, times * (count - 1), launches,
        gained.host_low_ns, gained.host_high_ns, gained.gap_ns, gained.kernel_low_ns, gained.kernel_high_ns,
        gained.chain_ns, candidate.saved_low_ns, candidate.saved_high_ns, is_chosen, process, first.device, first.stream,
    )  # fmt: skip


def _layer_of(chain: Chain, layers: list[Layers]) -> tuple[Layers | None, int]:
    """The layers in which a chain comes most often, and how often it does."""
    best: tuple[Layers | None, int] = (None, 0)
    for part in layers:
        inside = sum(0 <= places[0] - part.start < part.period * part.count for places in chain.places)
        if inside > best[1]:
            best = (part, inside)
    return best


def _alike(chain: Chain) -> bool:
    """Whether each kernel of the chain has the same shape whenever it comes."""
    return all(len({(ops[at].grid, ops[at].block) for ops in chain.ops}) == 1 for at in range(len(chain.places[0])))


def _text(chain: Chain) -> str:
    """The operations in order; those that stay in brackets; equal neighbours counted."""
    places = chain.places[0]
    words = chain.stream.words
    shown = [words[at] if at in places else f"[{words[at]}]" for at in sorted({*places, *chain.around})]
    parts: list[str] = []
    for word, times in _counted(shown):
        parts.append(f"{times} × {word}" if times > 1 else word)
    return " → ".join(parts)


def _counted(words: list[str]) -> list[tuple[str, int]]:
    from itertools import groupby

    return [(word, len(list(group))) for word, group in groupby(words)]


def _kernel_rows(number: int, candidate: Candidate, timeline: Timeline, process: int) -> Iterable[tuple[Any, ...]]:
    """The kernels of a chain in order, and those that stay between them, with means over the times that it comes."""
    chain = candidate.chain
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


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        values = ", ".join("(" + ", ".join(map(literal, row)) + ")" for row in rows)
        connection.execute(f"INSERT INTO {table} VALUES {values}")
