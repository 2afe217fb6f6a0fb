"""Formats of benchmark results: lines, regular expressions and the usual JSON, as readings or as a run to compare.

JSON: hyperfine, pytest-benchmark, Google Benchmark, nvbench, vLLM (serve, latency, throughput), SGLang, plain lists or
objects of numbers, and what `bench -o` saved. Text: lines `RESULT name value unit` and `PARAM name value`.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.compare.direction import direction
from nsys_insight.compare.noise import Samples
from nsys_insight.compare.runs import Run
from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from nsys_insight.compare.direction import Better

_NUMBER = r"(?:[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)\b)"
_RESULT = re.compile(rf"^RESULT[ \t]+(\S+)[ \t]+({_NUMBER})(?:[ \t]+(\S[^\r\n]*?))?[ \t]*\r?$", re.MULTILINE)
_PARAM = re.compile(r"^PARAM[ \t]+(\S+)[ \t]+(\S[^\r\n]*?)[ \t]*\r?$", re.MULTILINE)
# Keys of a flat object that describe the workload, not the result.
PARAMETERS = frozenset(
    """backend batch batch_size bs burstiness concurrency_limit dataset dataset_name device dtype hidden input_len isl
    layers max_concurrency model model_id num_prompts num_requests osl output_len precision prompt quantization
    random_input_len random_output_len random_range_ratio request_rate run_name seed seq seq_len sharegpt_output_len
    tensor_parallel_size tokenizer_id tokens tp""".split()  # noqa: SIM905
)
# nvbench's summaries that are results; others are spread, counts and clocks.
_NVBENCH = {
    "nv/cold/time/gpu/mean": ("gpu_time", "s"), "nv/cold/time/cpu/mean": ("cpu_time", "s"),
    "nv/batch/time/gpu/mean": ("batch_gpu_time", "s"), "nv/cold/bw/item_rate": ("item_rate", "items/s"),
    "nv/cold/bw/global/bytes_per_second": ("global_bandwidth", "bytes/s"),
}  # fmt: skip
_NS = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
BENCH_SCHEMA = "nsys-insight-bench"


@dataclass(frozen=True)
class Reading:
    """What one metric measured.

    Attributes:
        name: The metric.
        unit: Its unit as it was printed; empty where nobody said.
        values: The measurements, in their order.
    """

    name: str
    unit: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Printed:
    """What a benchmark printed: readings, and the parameters of its workload."""

    readings: tuple[Reading, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)


def parse_text(text: str, patterns: Mapping[str, tuple[str, str]] | None = None) -> Printed:
    """Read what a program printed: by regular expressions, else as RESULT lines, else as JSON.

    Args:
        text: What it printed.
        patterns: By metric a regular expression, whose first group is the number, and the unit.
    """
    parameters = {found[1]: found[2] for found in _PARAM.finditer(text)}
    if patterns:
        matched = ((name, unit, _matches(text, pattern)) for name, (pattern, unit) in patterns.items())
        return Printed(tuple(Reading(name, unit, values) for name, unit, values in matched if values), parameters)
    grouped = _grouped((found[1], found[3] or "", _number(found[2])) for found in _RESULT.finditer(text))
    if grouped:
        return Printed(grouped, parameters)
    found = _json_in(text)
    return parse_json(found) if found is not None else Printed((), parameters)


def parse_json(found: Any) -> Printed:
    """Read the JSON of a benchmark; what is not known has no readings."""
    try:
        if isinstance(found, list):
            return _of_list(found)
        if "results" in found and isinstance(found["results"], list):
            return Printed(
                tuple(
                    Reading(_benchmark_metric(one["command"], "time"), "s", _floats(one["times"]))
                    for one in found["results"]
                )
            )
        if "latencies" in found:
            return Printed((Reading("latency", "s", _floats(found["latencies"])),), _parameters(found))
        if "benchmarks" in found:
            return Printed(_grouped(_of_benchmarks(found["benchmarks"])))
        return _of_list([found])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return Printed()


def _of_list(found: list[Any]) -> Printed:
    """A list of numbers, or of one object for each run, whose numbers are metrics if they are no parameters."""
    if not found or not all(isinstance(run, dict) for run in found):
        return Printed((Reading("value", "", _floats(found)),)) if found and all(map(_is_number, found)) else Printed()
    numbers = [{name: value for name, value in run.items() if _is_metric(name, value)} for run in found]
    names = [name for name in numbers[0] if all(name in run for run in numbers)]
    if len(found) == 1 or any(direction(name) for name in names):
        # The object of a tool has many numbers that only count its input: keep the metrics with a known direction.
        names = [name for name in names if direction(name)] or names
    return Printed(
        tuple(Reading(name, "", tuple(float(run[name]) for run in numbers)) for name in names), _parameters(found[0])
    )


def _is_metric(name: str, value: object) -> bool:
    return _is_number(value) and name.lower() not in PARAMETERS and not name.lower().startswith(("std", "stddev"))


def _parameters(found: dict[str, Any]) -> dict[str, str]:
    return {
        name: str(value)
        for name, value in found.items()
        if name.lower() in PARAMETERS and isinstance(value, str | int | float)
    }


def _of_benchmarks(found: list[dict[str, Any]]) -> Iterator[tuple[str, str, float]]:
    """Yield the measurements of pytest-benchmark, Google Benchmark and nvbench, which all call them benchmarks."""
    for one in found:
        name = one["name"]
        if "stats" in one:
            stats = one["stats"]
            for value in stats.get("data") or [stats["mean"]]:
                yield _benchmark_metric(name, "time"), "s", float(value)
        elif "states" in one:
            yield from _of_states(name, one["states"])
        elif one.get("run_type") != "aggregate" and not one.get("error_occurred"):
            name = one.get("run_name", name)
            yield _benchmark_metric(name, "real_time"), one.get("time_unit", "ns"), float(one["real_time"])
            yield _benchmark_metric(name, "cpu_time"), one.get("time_unit", "ns"), float(one["cpu_time"])
            for rate in ("items_per_second", "bytes_per_second"):
                if rate in one:
                    yield _benchmark_metric(name, rate), "", float(one[rate])


def _of_states(name: str, states: list[dict[str, Any]]) -> Iterator[tuple[str, str, float]]:
    for state in states:
        for summary in state.get("summaries") or () if not state.get("is_skipped") else ():
            metric, unit = _NVBENCH.get(summary.get("tag", ""), ("", ""))
            value = next((data["value"] for data in summary.get("data", ()) if data.get("name") == "value"), None)
            if metric and value is not None:
                yield _benchmark_metric(f"{name} {state.get('name', '')}".strip(), metric), unit, float(value)


def _grouped(found: Iterable[tuple[str, str, float]]) -> tuple[Reading, ...]:
    """The measurements by metric, in the order of their first ones."""
    values: dict[tuple[str, str], list[float]] = {}
    for name, unit, value in found:
        values.setdefault((name, unit), []).append(value)
    return tuple(Reading(name, unit, tuple(of)) for (name, unit), of in values.items())


def _json_in(text: str) -> Any:
    """The JSON that a text is or that its last lines are: one object, a list, or one object a line."""
    stripped = text.strip()
    at = re.search(r"^[\[{]", stripped, re.MULTILINE)
    if not at:
        return None
    try:
        return json.loads(stripped[at.start() :])
    except ValueError:
        pass
    lines = []
    for line in stripped.splitlines():
        if line.startswith("{"):
            try:
                lines.append(json.loads(line))
            except ValueError:
                return None
    return lines or None


def _matches(text: str, pattern: str) -> tuple[float, ...]:
    found = re.finditer(pattern, text, re.MULTILINE)
    return tuple(_number(match[1] if match.re.groups else match[0]) for match in found)


def _benchmark_metric(name: str, metric: str) -> str:
    return f"{name}: {metric}"


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _floats(values: Iterable[Any]) -> tuple[float, ...]:
    return tuple(map(float, values))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def run_of_json(found: Any, path: Path) -> Run:
    """Read a benchmark's measurements from JSON. Times become `…_ns`; other metrics keep their unit in brackets.

    Raises:
        UsageError: It is none of them, or has no measurements.
    """
    if isinstance(found, dict) and str(found.get("schema", "")).startswith(BENCH_SCHEMA):
        return _run_of_bench(found, path)
    return run_of_readings(parse_json(found).readings, path)


def run_of_file(path: Path) -> Run:
    """Read what a benchmark printed, as text.

    Raises:
        UsageError: It cannot be read, or has no measurements.
    """
    try:
        return run_of_readings(parse_text(path.read_text(encoding="utf-8", errors="replace")).readings, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "name what a benchmark printed") from None


def run_of_readings(readings: Iterable[Reading], path: Path, better: dict[str, Better] | None = None) -> Run:
    """Make a run of readings; `better` says of metrics by name which way they should go.

    Raises:
        UsageError: There are none.
    """
    metrics: dict[str, Samples | None] = {}
    directions: dict[str, Better] = {}
    for one in readings:
        scale = _NS.get(one.unit)
        name = f"{one.name}_ns" if scale else f"{one.name} [{one.unit}]" if one.unit else one.name
        if one.values and all(map(math.isfinite, one.values)):
            metrics[name] = Samples(tuple(value * (scale or 1) for value in one.values))
            if way := (better or {}).get(one.name) or direction(one.name, one.unit):
                directions[name] = way
    if not metrics:
        raise UsageError(
            f"{path} has no measurements in a known format",
            "give the JSON of hyperfine, pytest-benchmark (--benchmark-save-data), Google Benchmark, nvbench, vLLM or"
            " SGLang, a saved run, or a list of numbers",
        )
    count = max(len(samples.values) for samples in metrics.values() if samples)
    return Run(path.name, "run", count, "the runs of the benchmark", metrics, better=directions)


def _run_of_bench(found: dict[str, Any], path: Path) -> Run:
    """Read what `bench` saved; of two sides the one after."""
    try:
        sides = found["sides"]
        series = sides[-1]["series"]
        readings = [Reading(one["name"], one["unit"], tuple(map(float, one["values"]))) for one in series]
        better = {one["name"]: one["better"] for one in series if one["better"]}
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UsageError(f"{path} is damaged: {error}", "measure again: nsys-insight bench -- COMMAND") from None
    return run_of_readings(readings, path, better)
