"""Read a report of ncu without ncu, by NVIDIA's Python package ncu-report (the extra `ncu`).

The package parses the file in C++, so it runs in a process of its own, which prints what it read as JSON. A damaged
report ends that process only. The remarks of ncu's own rules are not read: only ncu itself estimates their savings.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import ToolError, TraceError
from nsys_insight.ingest.ncu.pages import (
    Launch,
    convert_unit,
    make_compute_capability,
    make_dimensions,
    make_kernel_name,
    make_metric,
    report_name,
)
from nsys_insight.records import RecordError, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SECONDS = 300
_AXES = ("x", "y", "z")
_MAX_ID = 2**63


def is_installed() -> bool:
    """Return whether the package is installed."""
    return find_spec("ncu_report") is not None


def read_report(report: Path) -> list[Launch]:
    """Read the launches of a report, with all metrics in their base units.

    The package checks no values. One that is not a finite number of 64 bits, or not of the expected type, is unknown.

    Raises:
        ToolError: The package cannot read the report.
        TraceError: A launch has neither a name nor a metric.
    """
    import subprocess

    command = [sys.executable, "-P", "-m", __name__, str(report)]  # -P: no module of the current folder
    try:
        result = subprocess.run(command, capture_output=True, check=True, timeout=_SECONDS)  # noqa: S603 - our own module
        launches = parse_json(result.stdout)
    except (subprocess.SubprocessError, OSError, RecordError):
        raise ToolError(
            f"{report} cannot be read with the package ncu-report: it is damaged, or of a newer ncu",
            "update the package, or install Nsight Compute",
        ) from None
    for number, launch in enumerate(launches, 1):
        if not launch["kernel"] and not launch["metrics"]:
            raise TraceError(
                f"{report} is damaged: launch {number} of {len(launches)} has neither a name nor a metric",
                "copy it again, or profile again with ncu",
            )
    return [_make_launch(launch, number, report_name(report.name)) for number, launch in enumerate(launches)]


def _make_launch(launch: dict[str, Any], number: int, name: str) -> Launch:
    metrics = {}
    for metric, (value, unit) in launch["metrics"].items():
        base_unit, factor = convert_unit(_escape(unit or ""))
        checked_value = _escape(value) if isinstance(value, str) else value
        metrics[_escape(metric)] = make_metric(checked_value, base_unit or None, factor)

    def read_number(metric: str) -> int | None:
        value = launch["metrics"].get(metric, (None,))[0]
        is_integer = isinstance(value, int | float) and 0 <= value < _MAX_ID and value == int(value)
        return int(value) if is_integer else None

    capability = [read_number(f"device__attribute_compute_capability_{part}") for part in ("major", "minor")]
    return Launch(
        report=name,
        ncu_id=number,
        process_id=None,
        process_name=None,
        kernel=make_kernel_name(_escape(launch["kernel"] or "")),
        context_id=read_number("launch__context_id"),
        stream_id=read_number("launch__stream_id"),
        device_id=read_number("launch__device_id"),
        compute_capability=make_compute_capability(".".join(map(str, capability))),
        grid=make_dimensions(read_number(f"launch__grid_dim_{axis}") for axis in _AXES),
        block=make_dimensions(read_number(f"launch__block_dim_{axis}") for axis in _AXES),
        metrics=metrics,
    )


def _escape(text: str) -> str:
    """Escape the bytes of a text that were not UTF-8: the package makes surrogates of them."""
    return text.encode("utf-8", "backslashreplace").decode()


def _list_launches(path: str) -> Iterator[dict[str, Any]]:
    """Yield the kernel and the metrics of each launch: the value, if it is a number or a text, and the unit.

    A name or unit of another type than text becomes None. A metric without a name is left out.
    """
    import ncu_report  # type: ignore[import-not-found, import-untyped, unused-ignore]

    report = ncu_report.load_report(path)
    if not report.num_ranges():
        raise ValueError("no launches")
    for range_index in range(report.num_ranges()):
        of_range = report.range_by_idx(range_index)
        for index in range(of_range.num_actions()):
            action = of_range.action_by_idx(index)
            names = [name for name in action.metric_names() if isinstance(name, str) and name]
            metrics = {name: action.metric_by_name(name) for name in names}
            yield {
                "kernel": _only_text(action.name(action.NameBase_DEMANGLED)),
                "metrics": {
                    name: (metric.value(), _only_text(metric.unit()))
                    for name, metric in metrics.items()
                    if metric is not None and metric.has_value() and isinstance(metric.value(), int | float | str)
                },
            }


def _only_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


if __name__ == "__main__":
    json.dump(list(_list_launches(sys.argv[1])), sys.stdout)
