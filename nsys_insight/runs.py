"""A run as comparisons see it: its budget per step and its kernels, measured in a trace, or saved as a baseline."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import TraceError, UsageError
from nsys_insight.kernel_identity import Kernel
from nsys_insight.kernel_text import fit, readable
from nsys_insight.noise import Samples
from nsys_insight.packs import bind
from nsys_insight.paths import query

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_insight.trace import Trace

SCHEMA = "nsys-insight-run/1"
# Of more steps than this, the means of several in a row are kept: a saved run stays small.
MOST_SAMPLES = 256


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
    """

    label: str
    unit: str
    count: int
    method: str
    metrics: dict[str, Samples | None]
    kernels: dict[str, Kernel] | None = None
    kernel_ns: dict[str, Samples] = field(default_factory=dict)
    sequence: tuple[str, ...] = ()
    peak_memory_bytes: int | None = None
    tokens_per_step: float = 1


def measure(trace: Trace, asked: dict[str, Any] | None = None) -> Run | None:
    """Measure a run per token; None if no steps are found in it.

    Args:
        trace: The trace, narrowed to what is to be compared.
        asked: What the user says about steps: the options of `nsys_insight.steps.StepOptions`.

    Raises:
        TraceError: There are no CUDA events at all.
        UsageError: Steps are to be told by an NVTX range that is not there.
    """
    asked = asked or {}
    return _measure(trace, asked, "token" if asked.keys() & {"tokens", "tokens_per_step", "batch"} else "step")


def whole(trace: Trace) -> Run:
    """Measure all that is in scope as if it were one step.

    Raises:
        TraceError: There are no CUDA events at all.
    """
    run = _measure(trace, {"step_method": "count", "tokens": 1}, "trace")
    if run is None:
        raise _nothing(trace)
    return run


def _nothing(trace: Trace) -> TraceError:
    return TraceError(
        f"nothing ran on a GPU in {trace.path.name}", "capture CUDA events with: nsys profile -t cuda,nvtx"
    )


def _measure(trace: Trace, options: dict[str, Any], unit: str) -> Run | None:
    def rows(name: str) -> list[tuple[Any, ...]]:
        sql = query(f"compare/{name}")
        return trace.rows(bind(sql, {"most": MOST_SAMPLES}), **options)

    method = trace.rows("SELECT method, pattern, steady_count, tokens_per_step FROM step_method", **options)
    if not method:
        raise _nothing(trace)
    ((how, pattern, count, tokens_per_step),) = method
    if not count:
        return None
    samples: dict[str, list[float | None]] = {}
    for _, metric, _, value in rows("metrics"):
        samples.setdefault(metric, []).append(value)
    length = max(map(len, samples.values()), default=0)
    each = count / length if length else 1

    def settled(values: list[float | None]) -> Samples | None:
        known = [value for value in values if value is not None]
        return Samples(tuple(known), each) if len(known) == len(values) else None

    metrics = {metric: settled(values) for metric, values in samples.items()}
    kernels: dict[str, Kernel] | None = None
    times: dict[str, Samples] = {}
    sequence: tuple[str, ...] = ()
    if metrics.get("kernels"):
        kernels, times = _kernels(rows("kernels"), dict(rows("registers")), length, each, count * tokens_per_step)
        sequence = tuple(name for (name,) in rows("sequence")) if unit != "trace" else ()
    ((peak,),) = rows("peak_memory")
    words = {
        "nvtx": f"the NVTX ranges {pattern}",
        "graph": f"CUDA graphs, {pattern}",
        "sequence": f"the sequence of operations, {_shortened(pattern)}",
    }
    return Run(
        trace.path.name, unit, count, words.get(how, "the whole"), metrics, kernels, times, sequence, peak,
        tokens_per_step,
    )  # fmt: skip


def _shortened(mark: str | None) -> str:
    """Shorten the kernel's name in `from each NAME`."""
    when, each, name = (mark or "").partition(" each ")
    return when + each + fit(readable(name), 60)


def _kernels(
    rows: list[tuple[Any, ...]], registers: dict[str, int | None], length: int, each: float, tokens: float
) -> tuple[dict[str, Kernel], dict[str, Samples]]:
    values: dict[str, list[float]] = {}
    families, calls = {}, dict.fromkeys((name for name, *_ in rows), 0)
    for name, family, at, kernel_ns, called in rows:
        values.setdefault(name, [0.0] * length)[at] = kernel_ns
        families[name] = family
        calls[name] += called
    kernels = {name: Kernel(families[name], calls[name] / tokens, registers.get(name)) for name in values}
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
                **{name: value for name, value in found.items() if name != "schema"},
                "metrics": {name: _samples(value) for name, value in found["metrics"].items()},
                "kernels": None if kernels is None else {name: Kernel(**value) for name, value in kernels.items()},
                "kernel_ns": {name: Samples(**_tuple(value)) for name, value in found["kernel_ns"].items()},
                "sequence": tuple(found["sequence"]),
            }
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is not a run as this version saves it: {error}",
            f"save it anew: nsys-insight baseline save TRACE -o {path}",
        ) from None


def _samples(value: dict[str, Any] | None) -> Samples | None:
    return None if value is None else Samples(**_tuple(value))


def _tuple(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "values": tuple(value["values"])}
