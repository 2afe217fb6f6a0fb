"""Measure, save and pool the runs of a comparison: the budget per step, kernels and phases of a trace or saved file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from nsys_insight.compare.direction import Better  # noqa: TC001 - a type of a field
from nsys_insight.compare.kernel_identity import RunKernel
from nsys_insight.compare.noise import Samples
from nsys_insight.errors import TraceError, UsageError
from nsys_insight.packs.notes import fill_note
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.paths import read_query
from nsys_insight.records import RecordError, make_record
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from nsys_insight.session.session import Session

SCHEMA = "nsys-insight-run/1"
HEADLINE = "wall_ns"
PEAK_MEMORY = "peak_memory_bytes"
# Maximum number of samples of a metric. With more steps, a sample is the mean of consecutive steps, so that a saved run
# stays small.
MAX_SAMPLES = 256
# Names of metrics in runs and budgets of earlier versions.
OLD_METRICS = {"idle_edge_ns": "idle_start_end_ns"}
# JSON keys of saved runs that differ from the fields of the dataclasses.
_JSON_KEYS = {"steps_per_value": "each"}
# By phase, or "requests": the samples of each metric.
Phases = dict[str, dict[str, Samples]]


@dataclass(frozen=True)
class Member:
    """A rank or process of a run of several.

    Attributes:
        process_id: Operating system's process id.
        rank: Number of the rank; None if the process is not known to be one.
        gpus: The GPUs that it used: "0", or "0, 1".
        command: Name of the executable; empty if unknown.
        metrics: Samples of its own steps, by metric.
    """

    process_id: int
    rank: int | None = None
    gpus: str = ""
    command: str = ""
    metrics: dict[str, Samples] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Return its name for people: "rank 0", or "process 123 (python3)"."""
        if self.rank is not None:
            return f"rank {self.rank}"
        return f"process {self.process_id}" + (f" ({self.command})" if self.command else "")


@dataclass(frozen=True)
class Run:
    """The measurements of one run, per unit of work.

    Attributes:
        label: Name of the file.
        unit: Unit of work: token, step, trace (no steps were found), or run (of a benchmark).
        count: Number of steps, or number of runs of the benchmark.
        method: How steps were detected, in words.
        metrics: Samples of each metric, in the order of a budget; None if the trace does not have the metric.
        kernels: Kernels of a step by name; None if CUDA graphs were captured without their kernels.
        kernel_ns: Samples of each kernel's time.
        sequence: Kernel names of a typical step, in order.
        peak_memory_bytes: Peak of allocated device memory; None if not captured.
        tokens_per_step: Number of tokens that a step produces.
        phases: Samples of each metric, for each phase that NVTX ranges name, and for requests.
        better: For metrics of a benchmark: whether "higher" or "lower" is better, if their names do not determine it.
        members: The measured ranks or processes; empty for a run of one process.
        collectives: Samples of each metric, for the collectives of each operation and size.
        is_mixed: Whether the members do different work. Then all else is of the first member.
        clock_hz: Mean clock of the SMs, as sampled; None if it was not.
        coverage: What the measurements are of, for a run of several processes; empty for one process.
        doubt: Which other level may be the step; empty if the level is clear.
    """

    label: str
    unit: str
    count: int
    method: str
    metrics: dict[str, Samples | None]
    kernels: dict[str, RunKernel] | None = None
    kernel_ns: dict[str, Samples] = field(default_factory=dict)
    sequence: tuple[str, ...] = ()
    peak_memory_bytes: int | None = None
    tokens_per_step: float = 1
    better: dict[str, Better] = field(default_factory=dict)
    phases: Phases = field(default_factory=dict)
    members: tuple[Member, ...] = ()
    collectives: Phases = field(default_factory=dict)
    is_mixed: bool = False
    coverage: str = ""
    doubt: str = ""
    clock_hz: float | None = None

    def with_directions(self, directions: dict[str, Better]) -> Run:
        """Return the run with the user's directions. The user may name a metric without its unit."""
        better_by_metric = {
            name: direction
            for user_name, direction in directions.items()
            for name in self.metrics
            if _is_named(name, user_name)
        }
        return replace(self, better={**self.better, **better_by_metric})


def _is_named(name: str, user_name: str) -> bool:
    return user_name in (name, name.partition(" [")[0], name.removesuffix("_ns"))


def measure(trace: Session, steps: StepOptions = AUTO) -> Run | None:
    """Measure a run per token or step; None if it has no steps.

    Args:
        trace: The trace, limited to the scope of the comparison.
        steps: How to detect steps.

    Raises:
        TraceError: The trace has no CUDA events.
        UsageError: The steps are defined by an NVTX range that the trace does not have.
    """
    return _measure_scope(trace, steps, "token" if steps.tokens or steps.tokens_per_step or steps.batch else "step")


def measure_full_scope(trace: Session) -> Run:
    """Measure the full scope as if it were one step.

    Raises:
        TraceError: The trace has no CUDA events.
    """
    run = _measure_scope(trace, StepOptions(step_method="count", tokens=1), "trace")
    if run is None:
        raise _no_gpu_work_error(trace)
    return run


def _no_gpu_work_error(trace: Session) -> TraceError:
    return TraceError(f"no GPU work is in {trace.path.name}", "capture CUDA events with: nsys profile -t cuda,nvtx")


def _measure_scope(trace: Session, steps: StepOptions, unit: str) -> Run | None:
    def rows(name: str) -> list[Any]:
        query = bind(read_query(f"internal/compare/{name}"), {"most": MAX_SAMPLES})
        return trace.rows(query, steps, is_built_in=True)

    method_rows = trace.rows(read_query("internal/compare/method"), steps, is_built_in=True)
    if not method_rows:
        raise _no_gpu_work_error(trace)
    (method,) = method_rows
    if not method.steady_count:
        return None
    samples: dict[str, list[float | None]] = {}
    for row in rows("metrics"):
        samples.setdefault(row.metric, []).append(row.value)
    value_count = max(map(len, samples.values()), default=0)
    steps_per_value = method.steady_count / value_count if value_count else 1

    def samples_of(values: list[float | None]) -> Samples | None:
        known_values = [value for value in values if value is not None]
        return Samples(tuple(known_values), steps_per_value) if len(known_values) == len(values) else None

    metrics = {metric: samples_of(values) for metric, values in samples.items()}
    kernels: dict[str, RunKernel] | None = None
    times: dict[str, Samples] = {}
    sequence: tuple[str, ...] = ()
    if metrics.get("kernels"):
        registers = {row.name: row.registers_per_thread for row in rows("registers")}
        threads = {row.name: row.threads for row in rows("threads")}
        tokens = method.steady_count * method.tokens_per_step
        kernels, times = _collect_kernels(rows("kernels"), value_count, steps_per_value)
        kernels = {
            name: replace(kernel, calls=kernel.calls / tokens, registers=registers.get(name), threads=threads.get(name))
            for name, kernel in kernels.items()
        }
        sequence = tuple(row.name for row in rows("sequence")) if unit != "trace" else ()
    (memory,) = rows("peak_memory")
    (clock,) = rows("clock")
    return Run(
        label=trace.path.name,
        unit=unit,
        count=method.steady_count,
        method="the whole" if method.method == "count" else fill_note("step_marks", method._asdict()),
        metrics=metrics,
        kernels=kernels,
        kernel_ns=times,
        sequence=sequence,
        peak_memory_bytes=memory.peak_memory_bytes,
        tokens_per_step=method.tokens_per_step,
        doubt=fill_note("step_doubt", method._asdict()),
        clock_hz=clock.clock_hz,
        phases=_measure_phases(trace) if unit != "trace" else {},
    )


def _collect_kernels(
    rows: list[Any], value_count: int, steps_per_value: float
) -> tuple[dict[str, RunKernel], dict[str, Samples]]:
    values: dict[str, list[float]] = {}
    families, calls = {}, dict.fromkeys((row.name for row in rows), 0)
    for row in rows:
        values.setdefault(row.name, [0.0] * value_count)[row.piece] = row.kernel_ns
        families[row.name] = row.family
        calls[row.name] += row.calls
    kernels = {name: RunKernel(families[name], calls[name]) for name in values}
    return kernels, {name: Samples(tuple(series), steps_per_value) for name, series in values.items()}


def to_json(run: Run) -> str:
    """Return a run as JSON. `from_json` reads it."""

    def rename_fields(fields: list[tuple[str, Any]]) -> dict[str, Any]:
        return {_JSON_KEYS.get(name, name): value for name, value in fields}

    return json.dumps({"schema": SCHEMA, **asdict(run, dict_factory=rename_fields)}, allow_nan=False) + "\n"


def is_run(data: object) -> bool:
    """Return whether JSON data is a saved run, of any version."""
    return isinstance(data, dict) and str(data.get("schema", "")).startswith(SCHEMA.partition("/")[0])


def from_json(data: dict[str, Any], path: Path) -> Run:
    """Make a run from the JSON of `to_json`.

    Raises:
        UsageError: The data is of another version, or damaged.
    """
    try:
        if data.get("schema") != SCHEMA:
            raise RecordError(f"its schema is {data.get('schema')!r}")  # noqa: TRY301 - one message for all errors
        entries = {name: value for name, value in data.items() if name not in ("schema", "about")}
        run: Run = make_record(Run, entries, names=_JSON_KEYS)
        return replace(run, metrics={OLD_METRICS.get(name, name): samples for name, samples in run.metrics.items()})
    except RecordError as error:
        raise UsageError(
            f"{path} is not a saved run of this version: {error}",
            f"save it again: nsys-insight baseline save TRACE -o {path}",
        ) from None


def _measure_phases(trace: Session) -> Phases:
    """Measure the steps of each phase, with at most `MAX_SAMPLES` samples per metric."""
    values: dict[str, dict[str, list[float]]] = {}
    for row in trace.rows(read_query("internal/compare/phases"), is_built_in=True):
        values.setdefault(row.name, {}).setdefault(row.metric, []).append(float(row.value))
    return {
        name: {metric: average_groups(series) for metric, series in metrics.items()} for name, metrics in values.items()
    }


def average_groups(values: Sequence[float]) -> Samples:
    """Return values as samples: at most `MAX_SAMPLES`, each the mean of consecutive values."""
    group_size = -(-len(values) // MAX_SAMPLES)
    means = tuple(fmean(values[start : start + group_size]) for start in range(0, len(values), group_size))
    return Samples(means, len(values) / len(means))


@dataclass(frozen=True)
class Side:
    """The pooled runs before or after a change: the samples of all steps, or the mean of each run."""

    runs: Sequence[Run]
    by_run: bool
    kernels: dict[str, RunKernel] = field(default_factory=dict)

    @classmethod
    def pool(cls, runs: Sequence[Run], *, by_run: bool) -> Side:
        """Pool runs. The calls of a kernel are the mean over the runs."""
        pooled_kernels: dict[str, RunKernel] = {}
        for run in runs:
            for name, kernel in (run.kernels or {}).items():
                pooled_kernel = pooled_kernels.get(name, replace(kernel, calls=0.0))
                registers = max((pooled_kernel.registers, kernel.registers), key=lambda number: number or 0)
                pooled_kernels[name] = RunKernel(
                    kernel.family, pooled_kernel.calls + kernel.calls / len(runs), registers
                )
        return cls(runs, by_run, pooled_kernels)

    def metric(self, name: str) -> Samples | None:
        """Return the samples of a metric; None if a run does not have it."""
        return pool_samples([run.metrics.get(name) for run in self.runs], by_run=self.by_run)

    def peak_memory(self) -> Samples | None:
        """Return the peak memory of each run; None if a run does not have it."""
        peaks = [run.peak_memory_bytes for run in self.runs]
        return Samples(tuple(float(peak or 0) for peak in peaks), independent=True) if None not in peaks else None

    def sum_times(self, names: Iterable[str]) -> Samples | None:
        """Return the total time of kernels. It is 0 in a run that does not have them."""
        names = list(names)
        return pool_samples([_sum_kernel_times(run, names) for run in self.runs], by_run=self.by_run)


def pool_samples(samples_by_run: Sequence[Samples | None], *, by_run: bool) -> Samples | None:
    """Return the samples of several runs, or the mean of each run; None if a run has no samples."""
    known_samples = [samples for samples in samples_by_run if samples is not None]
    if len(known_samples) < len(samples_by_run) or not all(samples.values for samples in known_samples):
        return None
    if by_run:
        return Samples(tuple(samples.mean for samples in known_samples), independent=True)
    return Samples(
        tuple(value for samples in known_samples for value in samples.values), known_samples[0].steps_per_value
    )


def _sum_kernel_times(run: Run, names: list[str]) -> Samples | None:
    wall = run.metrics.get(HEADLINE)
    if wall is None:
        return None
    total = replace(wall, values=(0.0,) * len(wall.values))
    for name in names:
        if name in run.kernel_ns:
            total = total.add(run.kernel_ns[name])
    return total
