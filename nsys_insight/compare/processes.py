"""Measure a run of several processes or ranks: each of them, and what stands for the run.

Ranks, and processes that do the same work, are averaged: a metric of the run is the mean over them, step by step.
Processes that do different work have no common step. Then the run's rows are those of the busiest process, and each
process decides by its own step time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING

from nsys_insight.compare.comparison import explain_different_work
from nsys_insight.compare.members import pair_members
from nsys_insight.compare.noise import Samples
from nsys_insight.compare.runs import HEADLINE, Member, Phases, Run, average_groups, measure, measure_full_scope
from nsys_insight.errors import UsageError
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.paths import read_query
from nsys_insight.session.ranks import RANKS_QUERY
from nsys_insight.text import units

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsys_insight.compare.kernel_identity import RunKernel
    from nsys_insight.session.session import Session

# Processes with less of the trace's GPU time are not measured.
MIN_GPU_PCT = 1.0
# Processes do the same work if kernels that both run have at least this share of the kernel time of each.
MIN_COMMON_SHARE = 0.8
# Metrics of each rank or process, and those of ranks that are known only where their collectives are matched.
MEMBER_METRICS = (HEADLINE, "gpu_busy_ns", "gpu_idle_ns", "kernel_ns", "launch_calls")
RANK_METRICS = ("waiting_ns", "transfer_ns", "late_ns")
COLLECTIVE_METRICS = ("calls", "kernel_ns", "waiting_ns", "transfer_ns")
# The steps that `rank_steps` found are those of a run if their mean wall times differ by at most this share.
SAME_STEPS_SHARE = 0.05


@dataclass(frozen=True)
class _Process:
    """A process with its measurements, or None if it has no steps."""

    member: Member
    run: Run | None


def list_members(trace: Session) -> list[tuple[Member, float]]:
    """List the processes that ran work on a GPU, the busiest first, with their shares of the GPU time in percent."""
    rows = trace.rows(read_query("internal/compare/processes"), is_built_in=True)
    ranks: dict[int, int] = {}
    for row in trace.rows(RANKS_QUERY) if len(rows) > 1 else ():
        if row.process_id is not None:
            ranks.setdefault(row.process_id, row.rank)
    return [
        (Member(row.process_id, ranks.get(row.process_id), row.gpus or "", row.command or ""), row.gpu_pct or 0.0)
        for row in rows
    ]


def measure_run(trace: Session, steps: StepOptions = AUTO) -> Run | None:
    """Measure all processes of a trace per step; None if none has steps.

    Args:
        trace: The trace, limited to the scope of the comparison.
        steps: How to detect steps.

    Raises:
        TraceError: The trace has no CUDA events.
        UsageError: The steps are defined by an NVTX range that the trace does not have.
    """
    members = list_members(trace)
    if len(members) < 2:
        run = measure(trace, steps)
        return replace(run, members=tuple(_with_metrics(member, run) for member, _ in members)) if run else None
    main_members = [(member, pct) for member, pct in members if pct >= MIN_GPU_PCT or member.rank is not None]
    processes = []
    for member, _ in main_members:
        with trace.scope(process=member.process_id) as session:
            processes.append(_Process(member, _measure_process(session, steps)))
    left_out = [
        f"{member.label} ({pct:.1g}% of the GPU time)" for member, pct in members if (member, pct) not in main_members
    ]
    return _combine(trace, processes, trace.path.name, left_out)


def _measure_process(session: Session, steps: StepOptions) -> Run | None:
    try:
        return measure(session, steps)
    except UsageError:  # this process lacks the range that defines the steps
        return None


def measure_ranks(
    traces: Session, sessions: Sequence[Session], steps: StepOptions = AUTO, *, is_full_scope: bool = False
) -> Run | None:
    """Measure traces that are the ranks of a run per step; None if none has steps.

    Args:
        traces: All traces, opened together.
        sessions: Each of them.
        steps: How to detect steps.
        is_full_scope: Measure the full scope of each trace as if it were one step.
    """
    rank_by_label = {row.trace: row.rank for row in traces.rows(RANKS_QUERY)}
    processes = []
    for label, session in zip(traces.labels, sessions, strict=True):
        (member, _), *_ = list_members(session) or [(Member(0), 0.0)]
        run = measure_full_scope(session) if is_full_scope else measure(session, steps)
        processes.append(_Process(replace(member, rank=rank_by_label[label]), run))
    first, *other_names = (session.path.name for session in sessions)
    return _combine(traces, processes, f"{first} and {len(other_names)} more" if other_names else first, [])


def are_ranks(traces: Session) -> bool:
    """Return whether these traces are known to be the ranks of one run, each a rank of its own."""
    rows = traces.rows(RANKS_QUERY)
    has_numbers = [row.trace for row in rows] and all(row.source in ("NCCL", "MPI", "the launcher") for row in rows)
    if sorted(row.trace for row in rows) != sorted(traces.labels) or len({row.rank for row in rows}) < len(rows):
        return False
    return bool(has_numbers) or bool(traces.rows("FROM rank_run WHERE verdict IS NOT NULL"))


def _combine(traces: Session, processes: Sequence[_Process], label: str, left_out: list[str]) -> Run | None:
    """Make one run of its processes; `traces` has all of them."""
    with_steps = [entry for entry in processes if entry.run is not None]
    left_out = [f"{entry.member.label}, which has no steps" for entry in processes if entry.run is None] + left_out
    left_out_text = f"; not measured: {'; '.join(left_out)}" if left_out else ""
    runs = [entry.run for entry in with_steps if entry.run]
    if not runs:
        return None
    members = [entry.member for entry in with_steps]
    if len(runs) == 1:
        member = _with_metrics(members[0], runs[0])
        return replace(
            runs[0], label=label, members=(member,), coverage=f"figures are of {member.label}{left_out_text}"
        )
    has_ranks = all(member.rank is not None for member in members)
    rank_metrics, collectives = _measure_rank_steps(traces, runs) if has_ranks else ({}, {})
    measured_members = tuple(
        _with_metrics(member, run, rank_metrics.get(member.rank, {})) for member, run in zip(members, runs, strict=True)
    )
    if has_ranks or all(_do_same_work(runs[0], run) for run in runs[1:]):
        kind = "ranks" if has_ranks else "processes, which do the same work"
        names = ", ".join(str(member.process_id if member.rank is None else member.rank) for member in members)
        coverage = f"figures are means over {len(runs)} {kind} ({names}){left_out_text}"
        return replace(
            _average_runs(runs), label=label, members=measured_members, collectives=collectives, coverage=coverage
        )
    coverage = (
        f"{len(runs)} processes do different work, so each decides by its own step time; all other figures are of "
        f"{members[0].label}{left_out_text}"
    )
    return replace(runs[0], label=label, members=measured_members, is_mixed=True, coverage=coverage)


def _with_metrics(member: Member, run: Run, rank_metrics: Mapping[str, Samples] = MappingProxyType({})) -> Member:
    metrics = {name: samples for name in MEMBER_METRICS if (samples := run.metrics.get(name))}
    return replace(member, metrics={**metrics, **rank_metrics})


def _do_same_work(old: Run, new: Run) -> bool:
    """Return whether two processes run the same kernels for most of their time, equally often in a step."""
    if not old.kernel_ns or not new.kernel_ns or explain_different_work([old], [new]):
        return False
    common = old.kernel_ns.keys() & new.kernel_ns.keys()
    shares = (
        sum(times[name].mean for name in common) / (sum(samples.mean for samples in times.values()) or 1)
        for times in (old.kernel_ns, new.kernel_ns)
    )
    return min(shares) >= MIN_COMMON_SHARE


def _average_runs(runs: Sequence[Run]) -> Run:
    """Return a run whose measurements are the means over several."""
    names = dict.fromkeys(name for run in runs for name in run.metrics)
    kernels: dict[str, RunKernel] | None = None
    kernel_ns = {}
    if all(run.kernels is not None for run in runs):
        kernels = {}
        for name in dict.fromkeys(name for run in runs for name in run.kernels or {}):
            of_name = [run.kernels[name] for run in runs if run.kernels and name in run.kernels]
            calls = sum(kernel.calls for kernel in of_name) / len(runs)
            registers = max(kernel.registers or 0 for kernel in of_name) or None
            kernels[name] = replace(of_name[0], calls=calls, registers=registers)
            times = [run.kernel_ns.get(name) or _zeros_like(run.metrics[HEADLINE]) for run in runs]
            if mean := average_samples(times):
                kernel_ns[name] = mean
    peaks = [run.peak_memory_bytes for run in runs]
    return replace(
        runs[0],
        count=min(run.count for run in runs),
        metrics={name: average_samples([run.metrics.get(name) for run in runs]) for name in names},
        kernels=kernels,
        kernel_ns=kernel_ns,
        peak_memory_bytes=max(peak or 0 for peak in peaks) if None not in peaks else None,
        phases=_average_phases(runs),
        clock_hz=fmean(clocks) if (clocks := [run.clock_hz for run in runs if run.clock_hz]) else None,
    )


def _average_phases(runs: Sequence[Run]) -> Phases:
    """Average each phase over the runs that have it: often only the first rank marks requests."""
    phases: Phases = {}
    for name in dict.fromkeys(name for run in runs for name in run.phases):
        of_name = [run.phases[name] for run in runs if name in run.phases]
        means = {metric: average_samples([metrics.get(metric) for metrics in of_name]) for metric in of_name[0]}
        phases[name] = {metric: mean for metric, mean in means.items() if mean}
    return phases


def _zeros_like(samples: Samples | None) -> Samples | None:
    return replace(samples, values=(0.0,) * len(samples.values)) if samples else None


def average_samples(samples_by_run: Sequence[Samples | None]) -> Samples | None:
    """Return the mean over runs, step by step; None if a run has no samples.

    If the runs have different numbers of samples, the longer ones are divided into as many groups of consecutive ones
    as the shortest has. The mean of the result is always the mean of the runs' means.
    """
    all_samples = [samples for samples in samples_by_run if samples is not None and samples.values]
    if not all_samples or len(all_samples) < len(samples_by_run):
        return None
    count = min(len(samples.values) for samples in all_samples)
    groups = [
        [
            fmean(samples.values[len(samples.values) * group // count : len(samples.values) * (group + 1) // count])
            for group in range(count)
        ]
        for samples in all_samples
    ]
    means = [fmean(values) for values in zip(*groups, strict=True)]
    shift = fmean(samples.mean for samples in all_samples) - fmean(means)
    steps = max(samples.steps_per_value * len(samples.values) for samples in all_samples) / count
    return Samples(tuple(mean + shift for mean in means), steps)


def _measure_rank_steps(traces: Session, runs: Sequence[Run]) -> tuple[dict[int | None, dict[str, Samples]], Phases]:
    """Return what each rank waits in a step, and what each kind of collective costs.

    Both are empty if the ranks are not matched, or if they are matched by other steps than those of the runs.
    """
    rows = traces.rows(read_query("internal/compare/rank_steps"), is_built_in=True)
    walls = [wall.mean for run in runs if (wall := run.metrics.get(HEADLINE))]
    mean_ns = fmean(row.wall_ns for row in rows) if rows else 0.0
    if not rows or not walls or abs(mean_ns - fmean(walls)) > SAME_STEPS_SHARE * fmean(walls):
        return {}, {}
    metrics = {
        rank: {
            name: average_groups([float(getattr(row, name)) for row in rows if row.rank == rank])
            for name in RANK_METRICS
        }
        for rank in dict.fromkeys(row.rank for row in rows)
    }
    series: dict[str, dict[str, list[float | None]]] = {}
    for row in traces.rows(read_query("internal/compare/collectives"), is_built_in=True):
        size = "" if row.bytes is None else f" {units.value('bytes', row.bytes)}"
        for metric in COLLECTIVE_METRICS:
            series.setdefault(f"{row.operation}{size}", {}).setdefault(metric, []).append(getattr(row, metric))
    collectives = {
        name: {
            metric: average_groups([float(value) for value in values if value is not None])
            for metric, values in by_metric.items()
            if None not in values
        }
        for name, by_metric in series.items()
    }
    return metrics, collectives


def find_process(trace: Session, process_id: int, reference: Sequence[Member]) -> tuple[int, str | None]:
    """Find the process with this id, else the process that is paired with it.

    Return its id, and how it was paired: by rank, GPU, command or order; None if it has the same id.

    Args:
        trace: The trace to search.
        process_id: The id, as a process among `reference` has it.
        reference: The processes of the trace that has a process with this id.

    Raises:
        UsageError: There is no such process, or several processes of the trace have this pid.
    """
    if process_id in trace.shared_pids.values():
        trace.scope(process=process_id).close()  # refuses it, and lists the candidates
    members = [member for member, _ in list_members(trace)]
    if any(member.process_id == process_id for member in members):
        return process_id, None
    pairs = pair_members(reference, members)
    for old, new in pairs.pairs:
        if old.process_id == process_id:
            return new.process_id, pairs.matched_by
    ids = ", ".join(str(member.process_id) for member in members)
    raise UsageError(f"no process {process_id} in {trace.path.name} runs work on a GPU", f"there are: {ids}")
