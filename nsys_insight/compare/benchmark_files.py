"""Results of benchmarks as JSON: those of hyperfine and pytest-benchmark, or a plain list of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.compare.noise import Samples
from nsys_insight.compare.runs import Run
from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def read(found: Any, path: Path) -> Run:
    """Read a benchmark's measurements. Times are in seconds, and become `time_ns`.

    - hyperfine: ``{"results": [{"command": …, "times": [seconds, …]}, …]}``
    - pytest-benchmark: ``{"benchmarks": [{"name": …, "stats": {"data": [seconds, …]}}, …]}``
    - a plain list: ``[1.2, 1.3]``, or of one object for each run: ``[{"tokens_per_s": 400, "wall_ms": 3.1}, …]``; more
      is better of what is a rate (`_per_s`, `tps`, `throughput`, `speedup` at the end), less of everything else.

    Raises:
        UsageError: It is none of them, or has no measurements.
    """
    try:
        measured = _measured(found)
        metrics = {name: Samples(tuple(map(float, values))) for name, values in measured.items() if values}
    except (KeyError, TypeError, ValueError, AttributeError):
        metrics = {}
    if not metrics:
        raise UsageError(
            f"{path} holds no measurements that are known here",
            "give hyperfine --export-json, pytest --benchmark-save-data, a saved run, or a list of numbers",
        )
    count = max(len(samples.values) for samples in metrics.values())
    return Run(path.name, "run", count, "the runs of the benchmark", dict(metrics))


def _measured(found: Any) -> dict[str, list[float]]:
    if isinstance(found, list):
        if all(isinstance(run, dict) for run in found):
            numbers = dict.fromkeys(name for run in found for name, value in run.items() if _is_number(value))
            return {name: [run[name] for run in found] for name in numbers}
        return {"value": found} if all(map(_is_number, found)) else {}
    if "results" in found:
        return {f"{one['command']}: time_ns": [1e9 * time for time in one["times"]] for one in found["results"]}
    return {f"{one['name']}: time_ns": [1e9 * time for time in one["stats"]["data"]] for one in found["benchmarks"]}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
