"""Reports that state the same quantity agree to the nanosecond, in every pair and on every trace."""

from __future__ import annotations

from itertools import combinations

import planted
import pytest
from opening import open_trace, planted_path
from real_traces import FOREIGN, MORE_OF_SAMPLES, SAMPLES
from sweeps import sweep

# A few traces of each kind: every special case of a report is in a recorded trace or in a planted one.
RECORDED_TRACES = ("churn", "decode_graph_node", "mordred.nsys2021_2")
PLANTED_TRACES = ("communicating", "two processes")
TRACES = [
    *(path for path in (*SAMPLES, *FOREIGN) if path.stem in RECORDED_TRACES), *PLANTED_TRACES,
    *sweep(path for path in (*SAMPLES, *FOREIGN) if path.stem not in RECORDED_TRACES),
    *sweep(name for name in planted.ALL if name not in PLANTED_TRACES),
    *MORE_OF_SAMPLES,
]  # fmt: skip


def total(rows, column, **conditions):
    """Add up a column of the rows that have these values."""
    return sum(row[column] or 0 for row in rows if all(row[name] == value for name, value in conditions.items()))


class Reports:
    """The answers of one trace, each computed once, and the numbers of steps and GPUs in their means."""

    def __init__(self, trace):
        self.trace, self.answers = trace, {}
        method = trace.sql("FROM step_method").to_dicts()
        self.steps = method[0]["steady_count"] if method else 0
        self.tokens = method[0]["tokens_per_step"] if self.steps else 1
        self.gpus = max(
            1, len({row["gpu_id"] for row in trace.sql("SELECT DISTINCT gpu_id FROM step_budget").to_dicts()})
        )

    def __getitem__(self, name):
        if name not in self.answers:
            self.answers[name] = self.trace.run(name).to_dicts()
        return self.answers[name]

    def metric(self, name):
        """Return a total of per-token, None without steps."""
        return total(self["per-token"], "total", metric=name) if self.steps else None

    def info(self, name):
        return total(self["info"], "value", metric=name)

    def of_gpus(self, mean):
        """Return the nanoseconds of all steps and GPUs, from a mean per token."""
        return round(mean * max(1, self.steps) * self.tokens * self.gpus)

    def of_steps(self, mean):
        return round(mean * max(1, self.steps) * self.tokens)

    def host(self, column, *codes):
        return sum(row[column] or 0 for row in self["host"] if row["code"] in codes)

    def part(self, *names):
        return sum(row["time_ns"] for row in self["classify"] if row["part"] in names)

    def groups(self, *names):
        return [row for row in self["api"] if row["call_group"] in names]


WAITS = ("d2h_sync", "other_wait", "blocking_copy")


def add_steady(report, steady_column, full_column):
    """Add up a column of the steady steps, or the unscoped column if there are no steps."""
    return lambda r: total(r[report], steady_column if r.steps else full_column)


# For each quantity: the reports that state it, and how to read it from them.
STATED = {
    "kernels": {
        "top": lambda r: total(r["top"], "calls"),
        "launch-configs": lambda r: total(r["launch-configs"], "calls"),
        "classify-kernels": lambda r: total(r["classify-kernels"], "calls"),
        "occupancy": lambda r: total(r["occupancy"], "calls"),
    },
    "kernel time": {
        "top": lambda r: total(r["top"], "total_ns"),
        "launch-configs": lambda r: total(r["launch-configs"], "total_ns"),
        "classify-kernels": lambda r: total(r["classify-kernels"], "total_ns"),
        "occupancy": lambda r: total(r["occupancy"], "total_ns"),
    },
    "busy time": {
        "idle": lambda r: total(r["idle"], "time_ns", cause="busy"),
        "used_gpus": lambda r: total(r.trace.sql("FROM used_gpus").to_dicts(), "busy_ns"),
        "gpu_busy": lambda r: total(r.trace.sql("FROM gpu_busy").to_dicts(), "duration_ns"),
    },
    "idle time between operations": {
        "idle": lambda r: sum(row["time_ns"] for row in r["idle"] if row["cause"] not in ("busy", "start-up and end")),
        "gaps": lambda r: total(r.trace.sql("SELECT max(idle_ns)::BIGINT AS ns FROM longest_gaps").to_dicts(), "ns"),
        "gap-sizes": lambda r: total(r["gap-sizes"], "total_ns"),
    },
    "waits": {
        "syncs": lambda r: total(r["syncs"], "calls"),
        "waits": lambda r: r.trace.sql("SELECT count(*) FROM waits").item(),
    },
    "waits of the steps": {
        "syncs": add_steady("syncs", "steady_count", "calls"),
        "host": lambda r: r.of_steps(r.host("count", *WAITS)),
        "per-token": lambda r: r.metric("sync_points"),
        "steps": lambda r: total(r["steps"], "sync_points", phase="steady") if r.steps else None,
    },
    "cost of waits": {
        "syncs": lambda r: total(r["syncs"], "gpu_idle_ns"),
        "idle_charges": lambda r: total(r.trace.sql("FROM idle_charges").to_dicts(), "idle_ns", charge="wait"),
    },
    "cost of the steps' waits": {
        "syncs": add_steady("syncs", "steady_idle_ns", "gpu_idle_ns"),
        "host": lambda r: r.of_gpus(r.host("recoverable_ns", *WAITS)),
        "step_budget": lambda r: r.trace.sql("""SELECT coalesce(sum(time_ns), 0)::BIGINT FROM step_budget
            WHERE part = 'sync' OR part = 'copy' AND host IS NOT NULL""").item(),
    },
    "cost of reading data back in the steps": {
        "syncs": lambda r: total(r["syncs"], "steady_idle_ns" if r.steps else "gpu_idle_ns", copy_kind="D2H"),
        "host": lambda r: r.of_gpus(r.host("recoverable_ns", "d2h_sync")),
    },
    "time in waits that sync": {
        "classify": lambda r: r.of_gpus(r.part("sync")),
        "host": lambda r: r.of_gpus(r.host("recoverable_ns", "d2h_sync", "other_wait")),
    },
    "allocations and frees": {
        "mallocs": lambda r: total(r["mallocs"], "calls"),
        "api": lambda r: total(r.groups("alloc", "free"), "calls"),
    },
    "time in allocations and frees": {
        "mallocs": lambda r: total(r["mallocs"], "total_ns"),
        "api": lambda r: total(r.groups("alloc", "free"), "total_ns"),
    },
    "allocations and frees of the steps": {
        "mallocs": add_steady("mallocs", "steady_count", "calls"),
        "host": lambda r: r.of_steps(r.host("count", "allocation")),
        "per-token": lambda r: r.metric("mallocs") + r.metric("frees") if r.steps else None,
    },
    "cost of allocations": {
        "mallocs": lambda r: total(r["mallocs"], "gpu_idle_ns"),
        "idle": lambda r: total(r["idle"], "time_ns", cause="allocation"),
    },
    "cost of the steps' allocations": {
        "mallocs": add_steady("mallocs", "steady_idle_ns", "gpu_idle_ns"),
        "classify": lambda r: r.of_gpus(r.part("allocation")),
        "host": lambda r: r.of_gpus(r.host("recoverable_ns", "allocation")),
        "per-token": lambda r: round(r.metric("idle_allocation_ns") * r.gpus) if r.steps and r.gpus == 1 else None,
    },
    "launch calls of the steps": {
        "per-token": lambda r: r.metric("launch_calls"),
        "host": lambda r: r.of_steps(r.host("count", "launch_call")) if r.steps else None,
        "steps": lambda r: total(r["steps"], "launch_calls", phase="steady") if r.steps else None,
    },
    "steps": {
        "steps": lambda r: sum(row["phase"] == "steady" for row in r["steps"]),
        "classify-steps": lambda r: len(r["classify-steps"]),
        "step_method": lambda r: r.steps,
    },
    "duration of the steps": {
        "steps": lambda r: total(r["steps"], "duration_ns", phase="steady") if r.steps else None,
        "classify-steps": lambda r: total(r["classify-steps"], "duration_ns") if r.steps else None,
        "per-token": lambda r: r.metric("wall_ns"),
        "classify": lambda r: r.of_steps(r.part("wall")) if r.steps else None,
    },
    "launch and queue time of the steps": {
        "classify-steps": lambda r: total(r["classify-steps"], "launch_queue_ns") if r.steps else None,
        "step_launches": lambda r: (
            total(r.trace.sql("FROM step_launches").to_dicts(), "launch_queue_ns") if r.steps else None
        ),
    },
    "copies": {
        "copies": lambda r: sum(row["calls"] for row in r["copies"] if row["kind"] != "memset"),
        "memcpys": lambda r: r.trace.sql("SELECT count(*) FROM memcpys").item(),
    },
}  # fmt: skip


@pytest.fixture(scope="module", params=TRACES, ids=lambda trace: getattr(trace, "stem", trace))
def reports(request):
    """Yield the answers about a recorded or a planted trace."""
    path = request.param
    if isinstance(path, str):
        path = planted_path(path)
    with open_trace(path) as trace:
        yield Reports(trace)


@pytest.mark.parametrize("quantity", STATED)
def test_every_pair_of_reports_states_one_number(quantity, reports):
    numbers = {name: read(reports) for name, read in STATED[quantity].items()}
    for first, second in combinations([name for name, number in numbers.items() if number is not None], 2):
        assert numbers[first] == numbers[second], (
            f"{quantity}: {first} says {numbers[first]}, {second} says {numbers[second]}"
        )
