"""Kernels of known character, classified by samples and by ncu; writes the tables of docs/classification.md.

python tests/classified.py
"""

from __future__ import annotations

import csv
import re
import tempfile
from pathlib import Path

from opening import open_trace
from synthetic import Trace

PAGE = Path(__file__).parents[1] / "docs" / "classification.md"
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


def runs(trace, host, name, periods=6, start=None, **launch_or_metric):
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
    with open_trace(path) as trace:
        return trace.answer("classify-kernels", **params).frame().to_dicts()


def replayed(path):
    """Classify the kernels that ncu measured from the same counters as samples, with ncu's own throughputs beside."""
    kernels = profiled()
    trace = Trace()
    host = trace.thread()
    for kernel in kernels:
        shape = {name: int(kernel[name]) for name in ("registers", "static_shared", "dynamic_shared")}
        metrics = {name: float(kernel[name]) for name in METRICS if name in kernel}
        row = runs(
            trace, host, kernel["name"], grid=dims(kernel["grid"]), block=dims(kernel["block"]), **shape, **metrics
        )
        row["sharedMemoryExecuted"] = int(kernel["shared_config"])
    answer = {(row["name"], row["grid"], row["block"]): row for row in ask(trace.write(path))}
    return [
        (answer[kernel["name"], kernel["grid"], kernel["block"]], float(kernel["sm_pct"]), float(kernel["memory_pct"]))
        for kernel in kernels
    ]


def traced(folder):
    """Classify the kernels of a trace with GPU metrics that last longer than 20 µs, with ncu's throughputs beside."""
    with (folder / "ncu" / "zoo_a.ncu.raw.csv").open(newline="", encoding="utf-8") as file:
        _, *rows = csv.DictReader(file)
    theirs = {
        (
            own_name(row["Kernel Name"]),
            *("x".join(row[name].strip("()").split(", ")) for name in ("Grid Size", "Block Size")),
        ): (
            float(row["sm__throughput.avg.pct_of_peak_sustained_elapsed"]),
            float(row["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"]),
        )
        for row in rows
    }
    answer = [row for row in ask(folder / "zoo_a.25.sqlite") if row["avg_ns"] > 20_000]
    return [(row, *theirs[own_name(row["name"]), row["grid"], row["block"]]) for row in answer]


def table(compared):
    """Write the comparison as a Markdown table."""
    lines = [
        "| kernel | grid | ncu SM % | ncu memory % | ncu says | answer | confidence | reason | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row, sm, memory in compared:
        right = classes(sm, memory)
        mark = "does not count" if not right else "hit" if row["bound"] in right else "miss"
        says = " or ".join(sorted(right)) or "no class"
        name = own_name(row["name"])
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
    counted = [row["bound"] in classes(sm, memory) for row, sm, memory in compared if classes(sm, memory)]
    return "\n".join([*lines, "", f"{sum(counted)} of {len(counted)} that count are correct."])


def own_name(name):
    """Give the kernel's own name, and the operation that a PyTorch kernel does, if its template says so."""
    own = re.sub(r"^(?:void )?(?:\w+::|<unnamed>::)*", "", name).partition("<")[0].partition("(")[0]
    inner = re.search(
        r"(\w*(?:_kernel_cuda|Functor|_functor|_kernel_impl|KernelImpl|_scalar)\w*)", name.partition("<")[2]
    )
    return f"{own}<{inner[1]}>" if inner and not own.startswith(("nvjet", "sm")) else own


def write_page(shared):
    """Put the tables between their markers."""
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        tables = {
            "replayed": table(replayed(Path(folder) / "trace.sqlite")),
            "traced": table(traced(shared / "traces")),
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
