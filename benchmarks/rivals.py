"""Ask the same five questions of one trace with several tools, and hold each answer to what plain Python counts.

    python benchmarks/rivals.py TRACE.sqlite --step decode_step [--nsys PATH] [--nsys-ai PATH] [--runs 3]

Prints Markdown: of each tool what it answers, whether that is right, CPU seconds (median, with its child processes) and
peak memory. Each run has a home and a copy of the trace of its own, so nothing is in a cache unless a line says so.
Tools that are not given are left out. docs/comparison.md says how its table was made.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = ("top", "idle", "step", "launches", "syncs")
ASKED = {
    "top": "the five kernels that take most time",
    "idle": "how much of the run the GPU is idle",
    "step": "how long a step takes",
    "launches": "launch calls in a step",
    "syncs": "waits for the GPU in a step",
}
MB = 1024


@dataclass(frozen=True)
class Way:
    """How a tool is asked: its arguments before the trace and after it, and how the answer is read off what it prints.

    `warm` are arguments of a command that runs before, and is not measured.
    """

    tool: str
    question: str
    shown: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    read: Callable[[str], Any]
    warm: tuple[str, ...] | None = None


def truth(trace: Path, step: str) -> dict[str, Any]:
    """Count the answers with loops over the rows of the export."""
    db = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
    names = dict(db.execute("SELECT id, value FROM StringIds"))
    total: Counter[str] = Counter()
    work: list[tuple[int, int]] = []
    for start, end, name in db.execute('SELECT start, "end", demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL'):
        total[names[name]] += end - start
        work.append((start, end))
    kernels = (min(work)[0], max(end for _, end in work))
    for table in ("MEMCPY", "MEMSET"):
        work += db.execute(f'SELECT start, "end" FROM CUPTI_ACTIVITY_KIND_{table}')
    calls = list(db.execute('SELECT start, "end", nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME'))
    every = (min(start for start, *_ in [*work, *calls]), max(row[1] for row in [*work, *calls]))
    ranges = list(
        db.execute(
            'SELECT start, "end" FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId WHERE coalesce(text, value) = ?',
            (step,),
        )
    )
    launches, waits = 0, 0
    for start, _, name in calls:
        if any(low <= start < high for low, high in ranges):
            launches += "LaunchKernel" in names[name]
            waits += "Synchronize" in names[name]
    return {
        "top": [ns for _, ns in total.most_common(5)],
        # Some tools take the time from the first kernel to the last, some that from the first call: both are right.
        "idle": [_idle_pct(work, span) for span in (kernels, every)],
        "step": statistics.mean(end - start for start, end in ranges),
        "launches": launches / len(ranges),
        "syncs": waits / len(ranges),
    }


def _idle_pct(work: list[tuple[int, int]], span: tuple[int, int]) -> float:
    low, high = span
    busy, until = 0, low
    for start, end in sorted(work):
        busy += max(0, min(end, high) - max(start, until))
        until = max(until, end)
    return 100 * (1 - busy / (high - low))


def judged(question: str, found: Any, true: dict[str, Any]) -> str:
    """Say whether an answer is right: totals to the nanosecond, shares to 0.1, times to 1 %."""
    if found is None:
        return "no answer"
    if question == "top":
        exact = [round(ns) for ns in found] == true["top"]
        near = all(abs(one - other) < 0.01 * other for one, other in zip(found, true["top"], strict=False))
        return "right" if exact else "right, rounded" if near and len(found) == len(true["top"]) else "another"
    if question == "idle":
        return "right" if any(abs(found - one) < 0.1 for one in true["idle"]) else "another"
    return "right" if abs(found - true[question]) <= 0.01 * true[question] else "another"


def answered(question: str, found: Any) -> str:
    """An answer as the table shows it."""
    if found is None:
        return "-"
    if question == "top":
        return f"{found[0] / 1e6:.3f} ms the first"
    return {"idle": f"{found:.1f} %", "step": f"{found / 1e6:.2f} ms"}.get(question, f"{found:g}")


def ways(step: str) -> list[Way]:
    """How each tool is asked."""

    def busy_pct(text: str) -> float:
        return float(next(row["value"] for row in json.loads(text)["rows"] if row["metric"] == "gpu_busy_pct"))

    def mean(metric: str) -> Callable[[str], Any]:
        return lambda text: next(row["mean"] for row in json.loads(text)["rows"] if row["metric"] == metric)

    def csv_of(text: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(text[text.index("Time (%)") if "Time (%)" in text else 0 :])))

    def in_a_step(text: str) -> float:
        rows = [row for row in csv.DictReader(io.StringIO(text)) if row["NVTX Range"].lstrip(":") == step]
        return sum(int(row["Kern Inst"]) for row in rows) / int(rows[0]["NVTX Inst"])

    token = ("per-token", "--no-cache", "--step-range", step, "--format", "json")
    us = "nsys-insight"
    found = [
        Way(us, "top", "top", ("top", "--no-cache", "--limit", "5", "--format", "json"), (),
            lambda text: [row["total_ns"] for row in json.loads(text)["rows"]]),
        Way(us, "idle", "info", ("info", "--no-cache", "--format", "json"), (),
            lambda text: 100 - busy_pct(text)),
        Way(us, "step", "per-token", token, (), mean("wall_ns")),
        Way(us, "launches", "per-token", token, (), mean("launch_calls")),
        Way(us, "syncs", "per-token", token, (), mean("sync_calls")),
    ]  # fmt: skip
    stats = ("stats", "--quiet", "--format", "csv", "--output", "-", "--report")
    found += [
        Way("nsys stats", "top", "cuda_gpu_kern_sum", (*stats, "cuda_gpu_kern_sum"), (),
            lambda text: [int(row["Total Time (ns)"]) for row in csv_of(text)[:5]]),
        Way("nsys stats", "step", "nvtx_sum", (*stats, "nvtx_sum"), (),
            lambda text: next(float(row["Avg (ns)"]) for row in csv_of(text) if row["Range"].lstrip(":") == step)),
        Way("nsys stats", "launches", "nvtx_kern_sum, added up", (*stats, "nvtx_kern_sum"), (),
            lambda text: in_a_step(text[text.index("NVTX Range"):])),
    ]  # fmt: skip

    def skill(name: str, *more: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return ("skill", "run", name), ("--format", "json", *more)

    timing = skill("iteration_timing", "-p", f"marker={step}")
    for state, warm in (("", None), (", cached", ("info",))):
        found += [
            Way(f"nsys-ai{state}", "top", "top_kernels", *skill("top_kernels"),
                lambda text: [1e6 * row["total_ms"] for row in json.loads(text)[:5]], warm),
            Way(f"nsys-ai{state}", "idle", "pipeline_bubble_metrics", *skill("pipeline_bubble_metrics"),
                lambda text: next(row["bubble_pct"] for row in json.loads(text) if "bubble_pct" in row), warm),
            Way(f"nsys-ai{state}", "step", "iteration_timing", *timing,
                lambda text: 1e6 * statistics.mean(row["duration_ms"] for row in _iterations(text)), warm),
            Way(f"nsys-ai{state}", "launches", "iteration_timing", *timing,
                lambda text: statistics.mean(row["kernel_count"] for row in _iterations(text)), warm),
        ]  # fmt: skip
    return found


def _iterations(text: str) -> list[dict[str, Any]]:
    return [row for row in json.loads(text) if "duration_ms" in row]


def measured(command: list[str], home: Path) -> tuple[str, float, float]:
    """Run a command; return what it printed, its CPU seconds with those of its children, and its peak memory in MB."""
    home.mkdir(exist_ok=True)
    environment = os.environ | {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=environment, cwd=home)
        _, status, used = os.wait4(child.pid, 0)
        out.seek(0)
        text = out.read()
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return text, used.ru_utime + used.ru_stime, used.ru_maxrss / MB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--step", default="decode_step", help="the NVTX range of a step")
    parser.add_argument("--nsys", default=shutil.which("nsys"))
    parser.add_argument("--nsys-ai", default=shutil.which("nsys-ai"))
    parser.add_argument("--home", type=Path, help="what the home of each run begins as: DuckDB's extensions")
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    programs = {
        "nsys-insight": [sys.executable, "-m", "nsys_insight"],
        "nsys stats": [asked.nsys],
        "nsys-ai": [asked.nsys_ai],
    }
    os.environ["PYTHONPATH"] = str(ROOT)
    true = truth(asked.trace, asked.step)
    print("| question | tool | asked with | answer | | CPU | memory |\n| --- | --- | --- | --- | --- | ---: | ---: |")
    for question in QUESTIONS:
        shown = {"top": true["top"], "idle": true["idle"][0]}.get(question, true[question])
        print(f"| {ASKED[question]} | counted | plain Python | {answered(question, shown)} | | | |")
        for way in (way for way in ways(asked.step) if way.question == question):
            program = programs[way.tool.partition(",")[0]]
            if program[0]:
                print(f"| | {way.tool} | `{way.shown}` | {_cells(way, program, asked, true)} |", flush=True)


def _cells(way: Way, program: list[str], asked: argparse.Namespace, true: dict[str, Any]) -> str:
    seconds, memory, text = [], [], ""
    for _ in range(asked.runs):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            shutil.copytree(asked.home, home) if asked.home else home.mkdir()
            trace = shutil.copy(asked.trace, Path(folder) / "trace.sqlite")
            if way.warm:
                measured([*program, *way.warm, str(trace)], home)
            text, cpu, peak = measured([*program, *way.before, str(trace), *way.after], home)
            seconds.append(cpu)
            memory.append(peak)
    try:
        found = way.read(text)
    except (LookupError, ValueError, StopIteration, statistics.StatisticsError):
        found = None
    cells = (answered(way.question, found), judged(way.question, found, true))
    return f"{' | '.join(cells)} | {statistics.median(seconds):.2f} s | {statistics.median(memory):.0f} MB"


if __name__ == "__main__":
    main()
