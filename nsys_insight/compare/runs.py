"""A run as comparisons see it: budget per step, kernels and phases, from a trace or a saved file; runs of one side."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from nsys_insight.compare.kernel_identity import KernelOfRun
from nsys_insight.compare.noise import Samples
from nsys_insight.errors import TraceError, UsageError
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind
from nsys_insight.text.kernel_names import fit, readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from nsys_insight.compare.direction import Better
    from nsys_insight.session.session import Session

SCHEMA = "nsys-insight-run/1"
HEADLINE = "wall_ns"
PEAK_MEMORY = "peak_memory_bytes"
# Most samples of a metric. Of more steps, the means of several in a row are kept, so that a saved run stays small.
MOST_SAMPLES = 256
# By phase, or "requests", the samples of each metric.
Phases = dict[str, dict[str, Samples]]


@dataclass(frozen=True)
class Run:
    """What one run measured, per unit of work.

    Attributes:
        label: The file's name.
        unit: What the numbers are per: token, step, trace (no steps were found), or run (of a benchmark).
        count: How many steps they are of, or how often the benchmark ran.
        method: How steps were told, in words.
        metrics: The samples of each metric, in the order of a budget; None where the trace does not say.
        kernels: The kernels of a step by name; None where CUDA graphs ran as a whole, which hides them.
        kernel_ns: The samples of each kernel's time.
        sequence: The names of the kernels of a typical step, in order.
        peak_memory_bytes: The most device memory held at once; None if not captured.
        tokens_per_step: How many tokens a step makes.
        phases: Of each phase that NVTX ranges name, and of requests, the samples of each metric.
        better: Of metrics of a benchmark whether "higher" or "lower" is better, where their names alone do not tell.
    """

    label: str
    unit: str
    count: int
    method: str
    metrics: dict[str, Samples | None]
    kernels: dict[str, KernelOfRun] | None = None
    kernel_ns: dict[str, Samples] = field(default_factory=dict)
    sequence: tuple[str, ...] = ()
    peak_memory_bytes: int | None = None
    tokens_per_step: float = 1
    better: dict[str, Better] = field(default_factory=dict)
    phases: Phases = field(default_factory=dict)

    def preferring(self, told: dict[str, Better]) -> Run:
        """The same run with what the user says is better; a metric may be named without its unit."""
        names = {name: way for wanted, way in told.items() for name in self.metrics if _is_named(name, wanted)}
        return replace(self, better={**self.better, **names})


def _is_named(name: str, wanted: str) -> bool:
    return wanted in (name, name.partition(" [")[0], name.removesuffix("_ns"))


def measure(trace: Session, steps: StepOptions = AUTO) -> Run | None:
    """Measure a run per token; None if no steps are found in it.

    Args:
        trace: The trace, narrowed to what is to be compared.
        steps: How steps are found.

    Raises:
        TraceError: There are no CUDA events at all.
        UsageError: Steps are to be found by an NVTX range that is not there.
    """
    return _measure(trace, steps, "token" if steps.tokens or steps.tokens_per_step or steps.batch else "step")


def whole(trace: Session) -> Run:
    """Measure all that is in scope as if it were one step.

    Raises:
        TraceError: There are no CUDA events at all.
    """
    run = _measure(trace, StepOptions(step_method="count", tokens=1), "trace")
    if run is None:
        raise _nothing(trace)
    return run


def _nothing(trace: Session) -> TraceError:
    return TraceError(f"no GPU work is in {trace.path.name}", "capture CUDA events with: nsys profile -t cuda,nvtx")


def _measure(trace: Session, steps: StepOptions, unit: str) -> Run | None:
    def rows(name: str) -> list[Any]:
        return trace.rows(bind(query(f"internal/compare/{name}"), {"most": MOST_SAMPLES}), steps)

    found = trace.rows(query("internal/compare/method"), steps)
    if not found:
        raise _nothing(trace)
    (method,) = found
    if not method.steady_count:
        return None
    samples: dict[str, list[float | None]] = {}
    for row in rows("metrics"):
        samples.setdefault(row.metric, []).append(row.value)
    length = max(map(len, samples.values()), default=0)
    each = method.steady_count / length if length else 1

    def samples_of(values: list[float | None]) -> Samples | None:
        known = [value for value in values if value is not None]
        return Samples(tuple(known), each) if len(known) == len(values) else None

    metrics = {metric: samples_of(values) for metric, values in samples.items()}
    kernels: dict[str, KernelOfRun] | None = None
    times: dict[str, Samples] = {}
    sequence: tuple[str, ...] = ()
    if metrics.get("kernels"):
        registers = {row.name: row.registers_per_thread for row in rows("registers")}
        tokens = method.steady_count * method.tokens_per_step
        kernels, times = _kernels(rows("kernels"), registers, length, each, tokens)
        sequence = tuple(row.name for row in rows("sequence")) if unit != "trace" else ()
    (memory,) = rows("peak_memory")
    return Run(
        label=trace.path.name,
        unit=unit,
        count=method.steady_count,
        method=_method_text(method),
        metrics=metrics,
        kernels=kernels,
        kernel_ns=times,
        sequence=sequence,
        peak_memory_bytes=memory.peak_memory_bytes,
        tokens_per_step=method.tokens_per_step,
        phases=_measure_phases(trace) if unit != "trace" else {},
    )


def _method_text(found: Any) -> str:
    """How steps were found; a kernel's name at the end is shortened."""
    if found.method == "count":
        return "the whole"
    words = str(found.marked_by)
    if found.method == "sequence":
        words = words.removesuffix(found.mark_name) + fit(readable(found.mark_name), 60)
    return words


def _kernels(
    rows: list[Any], registers: dict[str, int | None], length: int, each: float, tokens: float
) -> tuple[dict[str, KernelOfRun], dict[str, Samples]]:
    values: dict[str, list[float]] = {}
    families, calls = {}, dict.fromkeys((row.name for row in rows), 0)
    for row in rows:
        values.setdefault(row.name, [0.0] * length)[row.piece] = row.kernel_ns
        families[row.name] = row.family
        calls[row.name] += row.calls
    kernels = {name: KernelOfRun(families[name], calls[name] / tokens, registers.get(name)) for name in values}
    return kernels, {name: Samples(tuple(series), each) for name, series in values.items()}


def to_json(run: Run) -> str:
    """Write a run as JSON, to be read by `from_json`."""
    return json.dumps({"schema": SCHEMA, **asdict(run)}, allow_nan=False) + "\n"


def is_run(found: object) -> bool:
    """Tell whether JSON is a saved run, of whichever version."""
    return isinstance(found, dict) and str(found.get("schema", "")).startswith(SCHEMA.partition("/")[0])


def from_json(found: dict[str, Any], path: Path) -> Run:
    """Read what `to_json` wrote.

    Raises:
        UsageError: It is of another version, or damaged.
    """
    try:
        if found["schema"] != SCHEMA:
            raise KeyError(found["schema"])  # noqa: TRY301 - one sentence for all that may be wrong
        kernels = found["kernels"]
        return Run(
            **{
                **{name: value for name, value in found.items() if name not in ("schema", "about")},
                "metrics": {name: _samples(value) for name, value in found["metrics"].items()},
                "kernels": None if kernels is None else {name: KernelOfRun(**value) for name, value in kernels.items()},
                "kernel_ns": {name: Samples(**_tuple(value)) for name, value in found["kernel_ns"].items()},
                "sequence": tuple(found["sequence"]),
                "phases": {
                    name: {metric: Samples(**_tuple(value)) for metric, value in of.items()}
                    for name, of in found.get("phases", {}).items()
                },
            }
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is not a saved run of this version: {error}",
            f"save it again: nsys-insight baseline save TRACE -o {path}",
        ) from None


def _samples(value: dict[str, Any] | None) -> Samples | None:
    return None if value is None else Samples(**_tuple(value))


def _tuple(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "values": tuple(value["values"])}


def _measure_phases(trace: Session) -> Phases:
    """Measure what a step of each phase costs, as at most `MOST_SAMPLES` values of a metric."""
    values: dict[str, dict[str, list[float]]] = {}
    for row in trace.rows(query("internal/compare/phases")):
        values.setdefault(row.name, {}).setdefault(row.metric, []).append(float(row.value))
    return {name: {metric: _means(series) for metric, series in of.items()} for name, of in values.items()}


def _means(values: Sequence[float]) -> Samples:
    each = -(-len(values) // MOST_SAMPLES)
    means = tuple(fmean(values[at : at + each]) for at in range(0, len(values), each))
    return Samples(means, len(values) / len(means))


@dataclass(frozen=True)
class Side:
    """The runs before or after a change, pooled: the samples of all steps, or the mean of each run."""

    runs: Sequence[Run]
    by_run: bool
    kernels: dict[str, KernelOfRun] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Sequence[Run], *, by_run: bool) -> Side:
        """Put runs together; a kernel's calls are the mean over them."""
        found: dict[str, KernelOfRun] = {}
        for run in runs:
            for name, kernel in (run.kernels or {}).items():
                known = found.get(name, replace(kernel, calls=0.0))
                registers = max((known.registers, kernel.registers), key=lambda number: number or 0)
                found[name] = KernelOfRun(kernel.family, known.calls + kernel.calls / len(runs), registers)
        return cls(runs, by_run, found)

    def metric(self, name: str) -> Samples | None:
        """A metric; None where a run does not have it."""
        return self._pooled([run.metrics.get(name) for run in self.runs])

    def peak_memory(self) -> Samples | None:
        """The peak memory of each run."""
        peaks = [run.peak_memory_bytes for run in self.runs]
        return Samples(tuple(float(peak or 0) for peak in peaks), independent=True) if None not in peaks else None

    def time_of(self, names: Iterable[str]) -> Samples | None:
        """The time that kernels take together, 0 in a run that does not have them."""
        names = list(names)
        return self._pooled([_summed(run, names) for run in self.runs])

    def _pooled(self, parts: Sequence[Samples | None]) -> Samples | None:
        return pooled(parts, by_run=self.by_run)


def pooled(parts: Sequence[Samples | None], *, by_run: bool) -> Samples | None:
    """The samples of several runs, or of each run its mean; None if a run has none."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not all(part.values for part in known):
        return None
    if by_run:
        return Samples(tuple(part.mean for part in known), independent=True)
    return Samples(tuple(value for part in known for value in part.values), known[0].each)


def _summed(run: Run, names: list[str]) -> Samples | None:
    wall = run.metrics.get(HEADLINE)
    if wall is None:
        return None
    total = replace(wall, values=(0.0,) * len(wall.values))
    for name in names:
        if name in run.kernel_ns:
            total = total.plus(run.kernel_ns[name])
    return total
