"""Which chains of kernels to fuse: found in the typical step of a trace, and ranked by what they would save.

The views `fusion_candidates`, `fusion_kernels` and `fusion_step` read three tables that are filled here when a query
needs them, after the steps were found. SQL brings the typical step as some thousand operations; what follows is done
on those: chains (`fusion_mine`), what they save (`fusion_gain`, `fusion_replay`), verdicts (`fusion_verdict`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nsys_insight import model
from nsys_insight.packs import bind
from nsys_insight.paths import query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import duckdb

    from nsys_insight.fusion_gain import Gain
    from nsys_insight.fusion_replay import Timeline, Wait
    from nsys_insight.fusion_stream import Chain, Kernel, Op, Stream

# The typical step is the mean of at most so many steps, or fewer if they have more operations than that.
STEPS, OPERATIONS = 32, 100_000
# So many chains are played again, or fewer in a step of many operations.
CHAINS, PLAYED = 60, 1_500_000
# Longer runs across streams are two programs, not a chain.
LONGEST_ACROSS = 16


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


@dataclass(frozen=True)
class Found:
    """What is found in the typical step of a process: `typical` of the `sampled` steps are like it."""

    process: int
    sampled: int
    typical: int
    wall_ns: float
    timeline: Timeline
    streams: list[Stream]
    candidates: list[Candidate]


def needed(sql: str) -> bool:
    """Tell whether a query reads what is found about fusion."""
    return any("found_fusion" in view.create for view in model.needed(sql))


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables that the views read, without rows."""
    connection.execute(query("fusion/tables"))


def find(connection: duckdb.DuckDBPyConnection, prepare: Callable[[str], None]) -> None:
    """Fill the tables; `prepare` creates the views that a statement names."""

    def run(name: str, **values: Any) -> list[Any]:
        sql = query(f"fusion/{name}")
        prepare(sql)
        return connection.execute(bind(sql, values)).fetchall()

    create_tables(connection)
    run("steps", operations=OPERATIONS, most=STEPS)
    for process, host_from, host_to, gpu_from, gpu_to, sampled in run("window"):
        run("operations", process=process, host_from=host_from, host_to=host_to, gpu_from=gpu_from, gpu_to=gpu_to)
        run("sequences")
        found = _found(run, process, sampled)
        if found:
            from nsys_insight.fusion_store import store

            store(connection, found)
    for name in ("steps", "operations", "sequences"):
        connection.execute(f"DROP TABLE IF EXISTS fusion_{name}")


def _found(run: Callable[..., list[Any]], process: int, sampled: int) -> Found | None:
    """Find the candidates of a process in the tables of its sampled steps; None if no kernels are known."""
    from nsys_insight.fusion_mine import chains
    from nsys_insight.fusion_replay import Timeline, Wait
    from nsys_insight.fusion_stream import Op

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
    mined = [chain for stream in streams for chain in chains(stream)] + _across_streams(streams, timeline)
    candidates = _judged(mined, timeline, wall, list(steps.values()), typical)
    return Found(process, sampled, typical, wall, timeline, streams, candidates)


def _kernels(run: Callable[..., list[Any]]) -> dict[int | None, Kernel]:
    """What the kernels of these steps are, by the ids of their names."""
    from nsys_insight.fusion_patterns import catalog
    from nsys_insight.fusion_stream import Kernel

    return {
        name_id: Kernel(name, family, provenance, catalog().operation(name, family))
        for name_id, name, family, provenance in run("names")
    }


def _streams(ops: list[Op], waits: list[Wait], kernels: dict[int | None, Kernel]) -> list[Stream]:
    """The operations stream by stream, parted where the host waits between two launch calls."""
    from bisect import bisect_left

    from nsys_insight.fusion_stream import Stream

    lines: dict[tuple[int, int], list[Op]] = defaultdict(list)
    for op in ops:
        lines[op.device, op.stream].append(op)
    streams = [Stream(line, [kernels.get(op.name_id) for op in line]) for line in lines.values()]
    waits = sorted(waits)
    begins = [wait.start_ns for wait in waits]
    for stream in streams:
        for at, (one, other) in enumerate(pairwise(stream.ops), 1):
            if one.call_ns is None or other.call_ns is None:
                continue
            following = bisect_left(begins, one.call_ns)
            if following < len(waits) and begins[following] < other.call_ns:
                stream.parted[at] = waits[following].name
    return streams


def _across_streams(streams: list[Stream], timeline: Timeline) -> list[Chain]:
    """Kernels that are launched one after the other on different streams."""
    from nsys_insight.fusion_stream import Chain, Stream

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
    return [Chain(merged, tuple(runs), veto=_different(line[at].stream for at in runs[0])) for runs in found.values()]


def _different(streams: Iterable[int]) -> str:
    return f"they run on different streams ({', '.join(map(str, sorted(set(streams))))})"


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
        word, reason = verdict(chain, wall, max(low, high), recurs)
        found.append(Candidate(chain, gained, word, reason, recurs, min(low, high), max(low, high)))
    return sorted(found, key=lambda candidate: candidate.order)
