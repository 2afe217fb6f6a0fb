"""Kernels of known character, classified by samples and by ncu; writes the tables of docs/evidence/classification.md.

python tests/classified.py
"""

from __future__ import annotations

import csv
import re
import tempfile
from pathlib import Path

from opening import open_trace
from synthetic import Trace

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "classification.md"
PERIOD = 10_000
METRICS = {
    "sms_active_pct": "SMs Active [Throughput %]",
    "issue_pct": "SM Issue [Throughput %]",
    "tensor_pct": "Tensor Active [Throughput %]",
    "dram_pct": "DRAM Read Bandwidth [Throughput %]",
    "dram_write_pct": "DRAM Write Bandwidth [Throughput %]",
}


def accepted_classes(sm, memory):
    """Return the classes that are correct for these throughputs of ncu; an empty set if they fit no class."""
    if sm > 60 and memory > 60:
        return {"compute", "memory", "balanced"}
    if sm > memory + 20:
        # If both are below 40%, the order of the decision tree decides; either class is accepted.
        return {"compute"} if sm >= 40 else {"compute", "latency"}
    if memory > sm + 20:
        return {"memory"} if memory >= 40 else {"memory", "latency"}
    return {"latency"} if sm < 40 and memory < 40 else set()


def read_ncu_kernels():
    """Read ncu's measurements of kernels of at least 20 µs on an H200: the sampled counters, and its throughputs."""
    path = Path(__file__).parent / "data" / "bounds_h200_ncu.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def add_samples(trace, start, **metrics):
    """Add the samples of the interval that begins at `start`."""
    for name, value in {**dict.fromkeys(METRICS, 0), **metrics}.items():
        trace.gpu_metric(METRICS[name], time=start, value=round(value))


def add_sampled_kernel(trace, host, name, periods=6, start=None, **launch_or_metric):
    """Run a kernel alone over full sampling intervals with these metrics, after an idle GPU."""
    metrics = {key: launch_or_metric.pop(key) for key in list(launch_or_metric) if key in METRICS}
    begin = max(host.now + 5 * PERIOD, 0) // PERIOD * PERIOD if start is None else start
    host.now = begin - 3_000
    host.launch(name, start=begin - 2_000, queue=0, api=1_000, runs=periods * PERIOD, **launch_or_metric)
    kernel = trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1]
    kernel.update(start=begin, end=begin + periods * PERIOD)
    for number in range(-1, periods + 1):
        add_samples(trace, begin + number * PERIOD, **(metrics if 0 <= number < periods else {}))
    host.now = begin + (periods + 1) * PERIOD
    return kernel


def parse_dims(text):
    return tuple(map(int, text.split("x")))


def ask(path, **params):
    with open_trace(path) as trace:
        return trace.answer("classify-kernels", **params).frame().to_dicts()


def classify_replayed_samples(path):
    """Classify the kernels that ncu measured, with its counters as samples; return answers with ncu's throughputs."""
    kernels = read_ncu_kernels()
    trace = Trace()
    host = trace.thread()
    for kernel in kernels:
        shape = {name: int(kernel[name]) for name in ("registers", "static_shared", "dynamic_shared")}
        metrics = {name: float(kernel[name]) for name in METRICS if name in kernel}
        row = add_sampled_kernel(
            trace,
            host,
            kernel["name"],
            grid=parse_dims(kernel["grid"]),
            block=parse_dims(kernel["block"]),
            **shape,
            **metrics,
        )
        row["sharedMemoryExecuted"] = int(kernel["shared_config"])
    answer = {(row["name"], row["grid"], row["block"]): row for row in ask(trace.write(path))}
    return [
        (answer[kernel["name"], kernel["grid"], kernel["block"]], float(kernel["sm_pct"]), float(kernel["memory_pct"]))
        for kernel in kernels
    ]


def classify_trace(folder):
    """Classify the kernels over 20 µs of a trace with GPU metrics; return answers with ncu's throughputs."""
    with (folder / "ncu" / "zoo_a.ncu.raw.csv").open(newline="", encoding="utf-8") as file:
        _, *rows = csv.DictReader(file)
    ncu_throughputs = {
        (
            own_kernel_name(row["Kernel Name"]),
            *("x".join(row[name].strip("()").split(", ")) for name in ("Grid Size", "Block Size")),
        ): (
            float(row["sm__throughput.avg.pct_of_peak_sustained_elapsed"]),
            float(row["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"]),
        )
        for row in rows
    }
    answer = [row for row in ask(folder / "zoo_a.25.sqlite") if row["avg_ns"] > 20_000]
    return [(row, *ncu_throughputs[own_kernel_name(row["name"]), row["grid"], row["block"]]) for row in answer]


def format_table(comparison):
    """Write the comparison as a Markdown table."""
    lines = [
        "| kernel | grid | ncu SM % | ncu memory % | ncu says | answer | confidence | reason | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row, sm, memory in comparison:
        right = accepted_classes(sm, memory)
        mark = "does not count" if not right else "hit" if row["bound"] in right else "miss"
        says = " or ".join(sorted(right)) or "no class"
        name = own_kernel_name(row["name"])
        cells = (
            f"`{name}`",
            row["grid"],
            f"{sm:.0f}",
            f"{memory:.0f}",
            says,
            row["bound"],
            row["confidence"] or "",
            row["reason"],
            mark,
        )
        lines.append(f"| {' | '.join(cells)} |")
    hits = [
        row["bound"] in accepted_classes(sm, memory) for row, sm, memory in comparison if accepted_classes(sm, memory)
    ]
    return "\n".join([*lines, "", f"{sum(hits)} of {len(hits)} that count are correct."])


def own_kernel_name(name):
    """Return the kernel's name without namespaces, with the operation of a PyTorch kernel if its template names it."""
    base = re.sub(r"^(?:void )?(?:\w+::|<unnamed>::)*", "", name).partition("<")[0].partition("(")[0]
    inner = re.search(
        r"(\w*(?:_kernel_cuda|Functor|_functor|_kernel_impl|KernelImpl|_scalar)\w*)", name.partition("<")[2]
    )
    return f"{base}<{inner[1]}>" if inner and not base.startswith(("nvjet", "sm")) else base


def write_page(shared):
    """Put the tables between their markers."""
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        tables = {
            "replayed": format_table(classify_replayed_samples(Path(folder) / "trace.sqlite")),
            "traced": format_table(classify_trace(shared / "traces")),
        }
    for name, text in tables.items():
        page = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda m, text=text: f"{m[1]}{text}\n{m[2]}",
            page,
            flags=re.DOTALL,
        )
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    write_page(PAGE.parents[2] / "shared")
