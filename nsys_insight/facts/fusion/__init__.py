"""Which chains of kernels to fuse: found in the typical step of a trace, and ranked by what they would save.

SQL brings the typical step as some thousand operations; what follows is done on those: chains (`mine`), what they save
(`gain`, `simulate`), verdicts (`verdict`), tables (`store`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsys_insight.facts.context import Context, Run
    from nsys_insight.facts.fusion.simulate import Timeline
    from nsys_insight.facts.fusion.store import TypicalStep
    from nsys_insight.facts.fusion.stream import Chain, NamedKernel, Op, OpStream, Wait
    from nsys_insight.facts.fusion.verdict import Candidate


# The typical step is the mean of at most so many steps, or fewer if they have more operations than that.
STEPS, OPERATIONS = 32, 100_000
# So many chains are simulated, or fewer in a step of many operations.
CHAINS, SIMULATED = 60, 1_500_000
# Longer runs across streams are two programs, not a chain.
LONGEST_ACROSS = 16


def fill(context: Context) -> None:
    """Fill `facts.fusions`, `facts.fusion_kernels` and `facts.fusion_step`."""
    connection, run = context.connection, context.runner("fusion")
    run("steps", operations=OPERATIONS, most=STEPS)
    for window in run("window"):
        run(
            "operations",
            process=window.process_id, host_from=window.host_from_ns, host_to=window.host_to_ns,
            gpu_from=window.gpu_from_ns, gpu_to=window.gpu_to_ns,
        )  # fmt: skip
        run("sequences")
        found = _typical_step(run, window.process_id, window.step_count)
        if found:
            from nsys_insight.facts.fusion.store import store

            store(connection, found)
    for name in ("steps", "operations", "sequences"):
        connection.execute(f"DROP TABLE IF EXISTS internal.fusion_{name}")


def _typical_step(run: Run, process: int, sampled: int) -> TypicalStep | None:
    """Find the candidates of a process in the tables of its sampled steps; None if no kernels are known."""
    from nsys_insight.facts.fusion.mine import chains
    from nsys_insight.facts.fusion.simulate import Timeline
    from nsys_insight.facts.fusion.store import TypicalStep
    from nsys_insight.facts.fusion.stream import Op, Wait

    ops = [Op(**row._asdict()) for row in run("typical")]
    if not any(op.kind == "kernel" for op in ops):
        return None
    waits = [Wait(**row._asdict()) for row in run("waits", process=process)]
    (mean,) = run("durations")
    timeline = Timeline(ops, waits, mean.host_ns, mean.wall_ns)
    streams = _streams(ops, waits, _kernels(run))
    steps: dict[int, dict[tuple[int, int], list[int]]] = defaultdict(dict)
    for other in run("others"):
        steps[other.step][other.device_id, other.stream_id] = other.tokens
    mined = [chain for stream in streams for chain in chains(stream)] + _across_streams(streams, timeline)
    candidates = _judged(mined, timeline, mean.wall_ns, list(steps.values()), mean.step_count)
    return TypicalStep(process, sampled, mean.step_count, mean.wall_ns, timeline, streams, candidates)


def _kernels(run: Run) -> dict[int | None, NamedKernel]:
    """What the kernels of these steps are, by the ids of their names."""
    from nsys_insight.facts.fusion.patterns import catalog
    from nsys_insight.facts.fusion.stream import NamedKernel

    return {
        row.name_id: NamedKernel(row.name, row.family, row.provenance, catalog().operation(row.name, row.family))
        for row in run("names")
    }


def _streams(ops: list[Op], waits: list[Wait], kernels: dict[int | None, NamedKernel]) -> list[OpStream]:
    """The operations stream by stream, with what parts them."""
    from nsys_insight.facts.fusion.stream import OpStream, parted

    lines: dict[tuple[int, int], list[Op]] = defaultdict(list)
    for op in ops:
        lines[op.device, op.stream].append(op)
    return [OpStream(line, [kernels.get(op.name_id) for op in line], parted(line, waits)) for line in lines.values()]


def _across_streams(streams: list[OpStream], timeline: Timeline) -> list[Chain]:
    """Kernels that are launched one after the other on different streams."""
    from nsys_insight.facts.fusion.stream import Chain, OpStream

    kernels = {op: kernel for stream in streams for op, kernel in zip(stream.ops, stream.kernels, strict=True)}
    events = [event.op for event in timeline.events]
    found: dict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
    line: list[Op] = [op for op in events if op is not None]
    merged = OpStream(line, [kernels[op] for op in line])
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
    """Simulate the step with each chain fused, unless it cannot save enough, and judge the chains; the best first."""
    from nsys_insight.facts.fusion.gain import gain
    from nsys_insight.facts.fusion.verdict import Candidate, recurrence, verdict

    gains = sorted(((chain, gain(chain, timeline)) for chain in chains), key=lambda pair: -pair[1].most_ns)
    alone = timeline.period()
    found = []
    for chain, gained in gains[: max(10, min(CHAINS, SIMULATED // len(timeline.events)))]:
        low, high = sorted(alone - timeline.period(change) for change in (gained.low, gained.high))
        recurs = recurrence(chain, others, typical)
        word, reason = verdict(chain, wall, (low, high), recurs)
        found.append(Candidate(chain, gained, word, reason, recurs, low, max(0.0, high)))
    return sorted(found, key=lambda candidate: candidate.order)
