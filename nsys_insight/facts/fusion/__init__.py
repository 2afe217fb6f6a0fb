"""Which chains of kernels to fuse: candidates in the typical step of a trace, ranked by what they save.

SQL reduces the trace to the typical step, some thousand operations. The modules then find chains (`mine`), measure
their savings (`gain`, `simulate`), judge them (`verdict`), and fill the tables (`store`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from nsys_insight.facts.fusion.gain import measure_gain
from nsys_insight.facts.fusion.mine import find_chains
from nsys_insight.facts.fusion.patterns import load_catalog
from nsys_insight.facts.fusion.simulate import Timeline
from nsys_insight.facts.fusion.store import TypicalStep, store
from nsys_insight.facts.fusion.stream import Chain, NamedKernel, Op, OpStream, Wait, find_boundaries
from nsys_insight.facts.fusion.verdict import Candidate, judge_chain, measure_recurrence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsys_insight.facts.context import Context, Run

# The typical step is the mean of at most this number of steps, and of this number of operations in total.
STEPS, OPERATIONS = 32, 100_000
# Simulate at most this number of chains; fewer if that is more events than this number.
CHAINS, EVENTS = 60, 1_500_000
# Longer runs across streams are two programs, not a chain.
MAX_LENGTH_ACROSS = 16


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
        step = _analyze_typical_step(run, window.process_id, window.step_count)
        if step:
            store(connection, step)
    for name in ("steps", "operations", "sequences"):
        connection.execute(f"DROP TABLE IF EXISTS internal.fusion_{name}")


def _analyze_typical_step(run: Run, process: int, sampled_count: int) -> TypicalStep | None:
    """Find the candidates of a process in the tables of its sampled steps; None if the step has no kernels."""
    ops = [Op(**row._asdict()) for row in run("typical")]
    if not any(op.kind == "kernel" for op in ops):
        return None
    waits = [Wait(**row._asdict()) for row in run("waits", process=process)]
    (mean,) = run("durations")
    timeline = Timeline(ops, waits, mean.host_ns, mean.wall_ns)
    streams = _build_streams(ops, waits, _read_kernels(run))
    other_steps: dict[int, dict[tuple[int, int], list[int]]] = defaultdict(dict)
    for row in run("others"):
        other_steps[row.step][row.device_id, row.stream_id] = row.tokens
    chains = [chain for stream in streams for chain in find_chains(stream)] + _find_chains_across(streams, timeline)
    candidates = _judge_chains(chains, timeline, mean.wall_ns, list(other_steps.values()), mean.step_count)
    return TypicalStep(process, sampled_count, mean.step_count, mean.wall_ns, timeline, streams, candidates)


def _read_kernels(run: Run) -> dict[int | None, NamedKernel]:
    """Read the kernels of the sampled steps, by the ids of their names."""
    find_operation = load_catalog().find_operation
    return {
        row.name_id: NamedKernel(row.name, row.family, row.provenance, find_operation(row.name, row.family))
        for row in run("names")
    }


def _build_streams(ops: list[Op], waits: list[Wait], kernels: dict[int | None, NamedKernel]) -> list[OpStream]:
    """Group the operations by stream, and find the boundaries in each stream."""
    ops_by_stream: dict[tuple[int, int], list[Op]] = defaultdict(list)
    for op in ops:
        ops_by_stream[op.device, op.stream].append(op)
    return [
        OpStream(stream_ops, [kernels.get(op.name_id) for op in stream_ops], find_boundaries(stream_ops, waits))
        for stream_ops in ops_by_stream.values()
    ]


def _find_chains_across(streams: list[OpStream], timeline: Timeline) -> list[Chain]:
    """Find runs of consecutive launches on different streams, with that as veto."""
    kernels = {op: kernel for stream in streams for op, kernel in zip(stream.ops, stream.kernels, strict=True)}
    events = [event.op for event in timeline.events]
    runs_by_tokens: dict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
    launched_ops: list[Op] = [op for op in events if op is not None]
    merged = OpStream(launched_ops, [kernels[op] for op in launched_ops])
    index_of = {op: index for index, op in enumerate(launched_ops)}
    run: list[int] = []
    for op in [*events, None]:
        index = index_of[op] if op is not None else -1
        is_fusable = op is not None and op.call_ns is not None and not op.is_in_graph and merged.is_fusable(index)
        if is_fusable and (not run or launched_ops[run[-1]].device == launched_ops[index].device):
            run.append(index)
            continue
        if 2 <= len(run) <= MAX_LENGTH_ACROSS and len({launched_ops[member].stream for member in run}) > 1:
            runs_by_tokens[
                tuple(hash((launched_ops[member].token, launched_ops[member].stream)) for member in run)
            ].append(tuple(run))
        run = [index] if is_fusable else []
    return [
        Chain(merged, tuple(runs), veto=_explain_streams(launched_ops[index].stream for index in runs[0]))
        for runs in runs_by_tokens.values()
    ]


def _explain_streams(streams: Iterable[int]) -> str:
    return f"they run on different streams ({', '.join(map(str, sorted(set(streams))))})"


def _judge_chains(
    chains: list[Chain],
    timeline: Timeline,
    wall_ns: float,
    other_steps: list[dict[tuple[int, int], list[int]]],
    typical_count: int,
) -> list[Candidate]:
    """Simulate the step with each chain fused, and judge the chains; best first. Only the best chains are simulated."""
    gains = sorted(((chain, measure_gain(chain, timeline)) for chain in chains), key=lambda pair: -pair[1].bound_ns)
    unchanged_ns = timeline.simulate_period()
    candidates = []
    for chain, gain in gains[: max(10, min(CHAINS, EVENTS // len(timeline.events)))]:
        low, high = sorted(unchanged_ns - timeline.simulate_period(change) for change in (gain.low, gain.high))
        recurrence = measure_recurrence(chain, other_steps, typical_count)
        verdict, reason = judge_chain(chain, wall_ns, (low, high), recurrence)
        candidates.append(Candidate(chain, gain, verdict, reason, recurrence, low, max(0.0, high)))
    return sorted(candidates, key=lambda candidate: candidate.order)
