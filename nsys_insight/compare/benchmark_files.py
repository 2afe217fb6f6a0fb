"""Results of benchmarks as files: JSON of the usual tools, what a program printed, or what `bench` saved."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from nsys_insight.compare.benchmark_output import of_json, of_text
from nsys_insight.compare.direction import direction
from nsys_insight.compare.noise import Samples
from nsys_insight.compare.runs import Run
from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nsys_insight.compare.benchmark_output import Reading
    from nsys_insight.compare.direction import Better

_NS = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
BENCH = "nsys-insight-bench"


def read(found: Any, path: Path) -> Run:
    """Read a benchmark's measurements from JSON. Times become `…_ns`; other metrics keep their unit in brackets.

    What is known is what `nsys_insight.compare.benchmark_output` knows, and what `bench -o` saved.

    Raises:
        UsageError: It is none of them, or has no measurements.
    """
    if isinstance(found, dict) and str(found.get("schema", "")).startswith(BENCH):
        return _saved(found, path)
    return of_readings(of_json(found).readings, path)


def printed(path: Path) -> Run:
    """Read what a benchmark printed, as text.

    Raises:
        UsageError: It cannot be read, or has no measurements.
    """
    try:
        return of_readings(of_text(path.read_text(encoding="utf-8", errors="replace")).readings, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "name what a benchmark printed") from None


def of_readings(readings: Iterable[Reading], path: Path, better: dict[str, Better] | None = None) -> Run:
    """Make a run of readings; `better` says of metrics by name which way they should go.

    Raises:
        UsageError: There are none.
    """
    metrics: dict[str, Samples | None] = {}
    told: dict[str, Better] = {}
    for one in readings:
        scale = _NS.get(one.unit)
        name = f"{one.name}_ns" if scale else f"{one.name} [{one.unit}]" if one.unit else one.name
        if one.values and all(map(math.isfinite, one.values)):
            metrics[name] = Samples(tuple(value * (scale or 1) for value in one.values))
            if way := (better or {}).get(one.name) or direction(one.name, one.unit):
                told[name] = way
    if not metrics:
        raise UsageError(
            f"{path} has no measurements in a known format",
            "give the JSON of hyperfine, pytest-benchmark (--benchmark-save-data), Google Benchmark, nvbench, vLLM or"
            " SGLang, a saved run, or a list of numbers",
        )
    count = max(len(samples.values) for samples in metrics.values() if samples)
    return Run(path.name, "run", count, "the runs of the benchmark", metrics, better=told)


def _saved(found: dict[str, Any], path: Path) -> Run:
    """Read what `bench` saved; of two sides the one after."""
    from nsys_insight.compare.benchmark_output import Reading

    try:
        sides = found["sides"]
        series = sides[-1]["series"]
        readings = [Reading(one["name"], one["unit"], tuple(map(float, one["values"]))) for one in series]
        better = {one["name"]: one["better"] for one in series if one["better"]}
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UsageError(f"{path} is damaged: {error}", "measure again: nsys-insight bench -- COMMAND") from None
    return of_readings(readings, path, better)
