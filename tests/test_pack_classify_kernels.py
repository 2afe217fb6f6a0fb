"""`classify-kernels`: against what ncu measured of kernels of known character, and on samples whose truth is planted."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from synthetic import Trace

import nsys_insight

PERIOD = 10_000
METRICS = {
    "sms_active_pct": "SMs Active [Throughput %]",
    "issue_pct": "SM Issue [Throughput %]",
    "tensor_pct": "Tensor Active [Throughput %]",
    "dram_pct": "DRAM Read Bandwidth [Throughput %]",
    "dram_write_pct": "DRAM Write Bandwidth [Throughput %]",
}


def classes(sm, memory):
    """Give the classes that count as right where ncu measured these throughputs; none where they fit no class."""
    if sm > 60 and memory > 60:
        return {"compute", "memory", "balanced"}
    if sm > memory + 20:
        # Below 40 % on both sides the tree's order decides; both readings are in use.
        return {"compute"} if sm >= 40 else {"compute", "latency"}
    if memory > sm + 20:
        return {"memory"} if memory >= 40 else {"memory", "latency"}
    return {"latency"} if sm < 40 and memory < 40 else set()


def profiled():
    """Read what ncu measured of kernels on an H200, each of 20 µs or more: what is sampled, and what it says itself."""
    path = Path(__file__).parent / "data" / "bounds_h200_ncu.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def sample(trace, at, **metrics):
    """Add one interval's samples, which begin at `at`."""
    for name, value in {**dict.fromkeys(METRICS, 0), **metrics}.items():
        trace.gpu_metric(METRICS[name], at=at, value=round(value))


def runs(trace, host, name, periods=6, start=None, **launch_or_metric):  # noqa: D417
    """Have a kernel run alone over whole sampling intervals, with the metrics given, and the GPU rest before it."""
    metrics = {key: launch_or_metric.pop(key) for key in list(launch_or_metric) if key in METRICS}
    begin = max(host.now + 5 * PERIOD, 0) // PERIOD * PERIOD if start is None else start
    host.now = begin - 3_000
    host.launch(name, at=begin - 2_000, queue=0, api=1_000, runs=periods * PERIOD, **launch_or_metric)
    kernel = trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1]
    kernel.update(start=begin, end=begin + periods * PERIOD)
    for number in range(-1, periods + 1):
        sample(trace, begin + number * PERIOD, **(metrics if 0 <= number < periods else {}))
    host.now = begin + (periods + 1) * PERIOD
    return kernel


def dims(text):
    return tuple(map(int, text.split("x")))


def ask(path, **params):
    with nsys_insight.open(path) as trace:
        return trace.answer("classify-kernels", **params).frame().to_dicts()
