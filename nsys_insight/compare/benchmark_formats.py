"""Read benchmark results, as readings or as a run to compare: lines, regular expressions and the usual JSON.

JSON: hyperfine, pytest-benchmark, Google Benchmark, nvbench, vLLM (serve, latency, throughput), SGLang, plain lists or
objects of numbers, and files of `bench -o`. Text: lines `RESULT name value unit` and `PARAM name value`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight import records
from nsys_insight.compare.direction import Better, infer_direction
from nsys_insight.compare.noise import Samples
from nsys_insight.compare.runs import Run
from nsys_insight.errors import UsageError, read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path


_NUMBER = r"(?:[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)\b)"
_RESULT = re.compile(rf"^RESULT[ \t]+(\S+)[ \t]+({_NUMBER})(?:[ \t]+(\S[^\r\n]*?))?[ \t]*\r?$", re.MULTILINE)
_PARAM = re.compile(r"^PARAM[ \t]+(\S+)[ \t]+(\S[^\r\n]*?)[ \t]*\r?$", re.MULTILINE)
# Keys of a flat object that describe the workload instead of the result.
PARAMETERS = frozenset(
    """backend batch batch_size bs burstiness concurrency_limit dataset dataset_name device dtype hidden input_len isl
    layers max_concurrency model model_id num_prompts num_requests osl output_len precision prompt quantization
    random_input_len random_output_len random_range_ratio request_rate run_name seed seq seq_len sharegpt_output_len
    tensor_parallel_size tokenizer_id tokens tp""".split()  # noqa: SIM905
)
# Summaries of nvbench that are results. The others are spread, counts and clocks.
_NVBENCH = {
    "nv/cold/time/gpu/mean": ("gpu_time", "s"), "nv/cold/time/cpu/mean": ("cpu_time", "s"),
    "nv/batch/time/gpu/mean": ("batch_gpu_time", "s"), "nv/cold/bw/item_rate": ("item_rate", "items/s"),
    "nv/cold/bw/global/bytes_per_second": ("global_bandwidth", "bytes/s"),
}  # fmt: skip
_NS_PER_UNIT = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
NAME_HINT = "name a file with the output of a benchmark"
BENCH_SCHEMA = "nsys-insight-bench"


@dataclass(frozen=True)
class Reading:
    """The measurements of one metric.

    Attributes:
        name: The metric.
        unit: Its unit as printed; empty if unknown.
        values: The measurements in their order.
    """

    name: str
    unit: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class BenchmarkOutput:
    """The printed result of a benchmark: readings, and the parameters of its workload."""

    readings: tuple[Reading, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)


def parse_text(text: str, patterns: Mapping[str, tuple[str, str]] | None = None) -> BenchmarkOutput:
    """Read the output of a program: by regular expressions if given, else as RESULT lines, else as JSON.

    Args:
        text: The output.
        patterns: By metric: a regular expression whose first group is the number, and the unit.
    """
    parameters = {match[1]: match[2] for match in _PARAM.finditer(text)}
    if patterns:
        metrics = ((name, unit, _match_numbers(text, pattern)) for name, (pattern, unit) in patterns.items())
        return BenchmarkOutput(
            tuple(Reading(name, unit, values) for name, unit, values in metrics if values), parameters
        )
    readings = _group_by_metric((match[1], match[3] or "", _parse_number(match[2])) for match in _RESULT.finditer(text))
    if readings:
        return BenchmarkOutput(readings, parameters)
    data = _find_json(text)
    return parse_json(data) if data is not None else BenchmarkOutput((), parameters)


def parse_json(data: Any) -> BenchmarkOutput:
    """Read the JSON of a benchmark. An unknown format gives no readings."""
    try:
        if isinstance(data, list):
            return _read_list(data)
        if "results" in data and isinstance(data["results"], list):
            return BenchmarkOutput(
                tuple(
                    Reading(_join_metric_name(run["command"], "time"), "s", _to_floats(run["times"]))
                    for run in data["results"]
                )
            )
        if "latencies" in data:
            return BenchmarkOutput((Reading("latency", "s", _to_floats(data["latencies"])),), _select_parameters(data))
        if "benchmarks" in data:
            return BenchmarkOutput(_group_by_metric(_iter_benchmarks(data["benchmarks"])))
        return _read_list([data])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return BenchmarkOutput()


def _read_list(runs: list[Any]) -> BenchmarkOutput:
    """Read a list of numbers, or a list with one object per run.

    The numbers of an object are metrics, except parameters of the workload.
    """
    if not runs or not all(isinstance(run, dict) for run in runs):
        return (
            BenchmarkOutput((Reading("value", "", _to_floats(runs)),))
            if runs and all(map(_is_number, runs))
            else BenchmarkOutput()
        )
    numbers = [{name: value for name, value in run.items() if _is_metric(name, value)} for run in runs]
    names = [name for name in numbers[0] if all(name in run for run in numbers)]
    if len(runs) == 1 or any(infer_direction(name) for name in names):
        # An object that a tool wrote has many numbers that only count its input.
        # Keep the metrics with a known direction.
        names = [name for name in names if infer_direction(name)] or names
    return BenchmarkOutput(
        tuple(Reading(name, "", tuple(float(run[name]) for run in numbers)) for name in names),
        _select_parameters(runs[0]),
    )


def _is_metric(name: str, value: object) -> bool:
    return _is_number(value) and name.lower() not in PARAMETERS and not name.lower().startswith(("std", "stddev"))


def _select_parameters(fields: dict[str, Any]) -> dict[str, str]:
    return {
        name: str(value)
        for name, value in fields.items()
        if name.lower() in PARAMETERS and isinstance(value, str | int | float)
    }


def _iter_benchmarks(benchmarks: list[dict[str, Any]]) -> Iterator[tuple[str, str, float]]:
    """Yield the measurements of pytest-benchmark, Google Benchmark and nvbench: all use the key `benchmarks`."""
    for benchmark in benchmarks:
        name = benchmark["name"]
        if "stats" in benchmark:
            stats = benchmark["stats"]
            for value in stats.get("data") or [stats["mean"]]:
                yield _join_metric_name(name, "time"), "s", float(value)
        elif "states" in benchmark:
            yield from _iter_nvbench_states(name, benchmark["states"])
        elif benchmark.get("run_type") != "aggregate" and not benchmark.get("error_occurred"):
            name = benchmark.get("run_name", name)
            yield _join_metric_name(name, "real_time"), benchmark.get("time_unit", "ns"), float(benchmark["real_time"])
            yield _join_metric_name(name, "cpu_time"), benchmark.get("time_unit", "ns"), float(benchmark["cpu_time"])
            for rate in ("items_per_second", "bytes_per_second"):
                if rate in benchmark:
                    yield _join_metric_name(name, rate), "", float(benchmark[rate])


def _iter_nvbench_states(name: str, states: list[dict[str, Any]]) -> Iterator[tuple[str, str, float]]:
    for state in states:
        for summary in state.get("summaries") or () if not state.get("is_skipped") else ():
            metric, unit = _NVBENCH.get(summary.get("tag", ""), ("", ""))
            value = next((data["value"] for data in summary.get("data", ()) if data.get("name") == "value"), None)
            if metric and value is not None:
                yield _join_metric_name(f"{name} {state.get('name', '')}".strip(), metric), unit, float(value)


def _group_by_metric(measurements: Iterable[tuple[str, str, float]]) -> tuple[Reading, ...]:
    """Group measurements by metric, in the order of first occurrence."""
    values: dict[tuple[str, str], list[float]] = {}
    for name, unit, value in measurements:
        values.setdefault((name, unit), []).append(value)
    return tuple(Reading(name, unit, tuple(samples)) for (name, unit), samples in values.items())


def _find_json(text: str) -> Any:
    """Return the JSON at the end of a text: one object, a list, or one object per line; None without JSON."""
    stripped = text.strip()
    start = re.search(r"^[\[{]", stripped, re.MULTILINE)
    if not start:
        return None
    try:
        return records.parse_json(stripped[start.start() :])
    except ValueError:
        pass
    lines = []
    for line in stripped.splitlines():
        if line.startswith("{"):
            try:
                lines.append(records.parse_json(line))
            except ValueError:
                return None
    return lines or None


def _match_numbers(text: str, pattern: str) -> tuple[float, ...]:
    matches = re.finditer(pattern, text, re.MULTILINE)
    return tuple(_parse_number(match[1] if match.re.groups else match[0]) for match in matches)


def _join_metric_name(name: str, metric: str) -> str:
    return f"{name}: {metric}"


def _parse_number(text: str) -> float:
    return float(text.replace(",", ""))


def _to_floats(values: Iterable[Any]) -> tuple[float, ...]:
    return tuple(map(float, values))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def make_run_from_json(data: Any, path: Path) -> Run:
    """Make a run from the JSON of a benchmark. Times become `…_ns`; other metrics keep their unit in brackets.

    Raises:
        UsageError: The format is unknown, or the JSON has no measurements.
    """
    if isinstance(data, dict) and str(data.get("schema", "")).startswith(BENCH_SCHEMA):
        return _make_run_from_bench(data, path)
    return make_run_from_readings(parse_json(data).readings, path)


def read_run_from_text(path: Path) -> Run:
    """Read a run from a file with the printed text of a benchmark.

    Raises:
        UsageError: The file cannot be read, or has no measurements.
    """
    return make_run_from_readings(parse_text(read_text(path, NAME_HINT, "replace")).readings, path)


def make_run_from_readings(readings: Iterable[Reading], path: Path, better: dict[str, Better] | None = None) -> Run:
    """Make a run from readings.

    Args:
        readings: The readings.
        path: The file that they come from.
        better: By metric: whether higher or lower values are better, if the user gave it.

    Raises:
        UsageError: There are no readings with finite values.
    """
    metrics: dict[str, Samples | None] = {}
    directions: dict[str, Better] = {}
    for reading in readings:
        scale = _NS_PER_UNIT.get(reading.unit)
        name = f"{reading.name}_ns" if scale else f"{reading.name} [{reading.unit}]" if reading.unit else reading.name
        if reading.values and all(map(math.isfinite, reading.values)):
            metrics[name] = Samples(tuple(value * (scale or 1) for value in reading.values))
            if preferred := (better or {}).get(reading.name) or infer_direction(reading.name, reading.unit):
                directions[name] = preferred
    if not metrics:
        raise UsageError(
            f"{path} has no measurements in a known format",
            "give the JSON of hyperfine, pytest-benchmark (--benchmark-save-data), Google Benchmark, nvbench, vLLM or"
            " SGLang, a saved run, or a list of numbers",
        )
    count = max(len(samples.values) for samples in metrics.values() if samples)
    return Run(path.name, "run", count, "the runs of the benchmark", metrics, better=directions)


def _make_run_from_bench(data: dict[str, Any], path: Path) -> Run:
    """Make a run from a file of `bench -o`. Of two sides, take the one after the change."""
    try:
        sides = data["sides"]
        series = sides[-1]["series"]
        readings = [Reading(entry["name"], entry["unit"], tuple(map(float, entry["values"]))) for entry in series]
        better = {entry["name"]: entry["better"] for entry in series if entry["better"]}
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UsageError(f"{path} is damaged: {error}", "measure again: nsys-insight bench -- COMMAND") from None
    return make_run_from_readings(readings, path, better)
