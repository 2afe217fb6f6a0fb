"""Ask several tools the same five questions about one trace, and compare each answer with a count in plain Python.

    python benchmarks/rivals.py TRACE.sqlite --step decode_step [--nsys PATH] [--nsys-ai PATH] [--runs 3]

Prints a Markdown table: the answer of each tool, whether it is right, CPU seconds (median, with child processes) and
peak memory. Each run has its own home and its own copy of the trace, so no cache is filled unless a line says so.
Missing tools are left out. docs/evidence/comparison.md describes how its table was made.
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
QUESTION_TEXTS = {
    "top": "the five kernels that take most time",
    "idle": "how much of the run the GPU is idle",
    "step": "how long a step takes",
    "launches": "launch calls in a step",
    "syncs": "waits for the GPU in a step",
}
MB = 1024


@dataclass(frozen=True)
class ToolQuestion:
    """A question to a tool: arguments before and after the trace, and a function that reads the answer in the output.

    `warm` are the arguments of a command that runs first and is not measured.
    """

    tool: str
    question: str
    label: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    read: Callable[[str], Any]
    warm: tuple[str, ...] | None = None


def count_answers(trace: Path, step: str) -> dict[str, Any]:
    """Count the answers with loops over the rows of the export."""
    db = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
    names = dict(db.execute("SELECT id, value FROM StringIds"))
    total_by_name: Counter[str] = Counter()
    work: list[tuple[int, int]] = []
    for start, end, name in db.execute('SELECT start, "end", demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL'):
        total_by_name[names[name]] += end - start
        work.append((start, end))
    kernel_span = (min(work)[0], max(end for _, end in work))
    for table in ("MEMCPY", "MEMSET"):
        work += db.execute(f'SELECT start, "end" FROM CUPTI_ACTIVITY_KIND_{table}')
    calls = list(db.execute('SELECT start, "end", nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME'))
    full_span = (min(start for start, *_ in [*work, *calls]), max(row[1] for row in [*work, *calls]))
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
        "top": [ns for _, ns in total_by_name.most_common(5)],
        # Some tools measure from the first kernel, others from the first call: both are right.
        "idle": [_idle_pct(work, span) for span in (kernel_span, full_span)],
        "step": statistics.mean(end - start for start, end in ranges),
        "launches": launches / len(ranges),
        "syncs": waits / len(ranges),
    }


def _idle_pct(work: list[tuple[int, int]], span: tuple[int, int]) -> float:
    low, high = span
    busy, covered_until = 0, low
    for start, end in sorted(work):
        busy += max(0, min(end, high) - max(start, covered_until))
        covered_until = max(covered_until, end)
    return 100 * (1 - busy / (high - low))


def assess_answer(question: str, answer: Any, expected: dict[str, Any]) -> str:
    """Return whether an answer is right: totals to the nanosecond, shares to 0.1, times to 1%."""
    if answer is None:
        return "no answer"
    if question == "top":
        is_exact = [round(ns) for ns in answer] == expected["top"]
        is_near = all(abs(time - true) < 0.01 * true for time, true in zip(answer, expected["top"], strict=False))
        return (
            "right" if is_exact else "right, rounded" if is_near and len(answer) == len(expected["top"]) else "another"
        )
    if question == "idle":
        return "right" if any(abs(answer - idle_pct) < 0.1 for idle_pct in expected["idle"]) else "another"
    return "right" if abs(answer - expected[question]) <= 0.01 * expected[question] else "another"


def format_answer(question: str, answer: Any) -> str:
    """Format an answer for the table."""
    if answer is None:
        return "-"
    if question == "top":
        return f"{answer[0] / 1e6:.3f} ms the first"
    return {"idle": f"{answer:.1f}%", "step": f"{answer / 1e6:.2f} ms"}.get(question, f"{answer:g}")


def list_tool_questions(step: str) -> list[ToolQuestion]:
    """List the questions to each tool."""

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
    tool = "nsys-insight"
    questions = [
        ToolQuestion(tool, "top", "top", ("top", "--no-cache", "--limit", "5", "--format", "json"), (),
            lambda text: [row["total_ns"] for row in json.loads(text)["rows"]]),
        ToolQuestion(tool, "idle", "info", ("info", "--no-cache", "--format", "json"), (),
            lambda text: 100 - busy_pct(text)),
        ToolQuestion(tool, "step", "per-token", token, (), mean("wall_ns")),
        ToolQuestion(tool, "launches", "per-token", token, (), mean("launch_calls")),
        ToolQuestion(tool, "syncs", "per-token", token, (), mean("sync_calls")),
    ]  # fmt: skip
    stats = ("stats", "--quiet", "--format", "csv", "--output", "-", "--report")
    questions += [
        ToolQuestion("nsys stats", "top", "cuda_gpu_kern_sum", (*stats, "cuda_gpu_kern_sum"), (),
            lambda text: [int(row["Total Time (ns)"]) for row in csv_of(text)[:5]]),
        ToolQuestion("nsys stats", "step", "nvtx_sum", (*stats, "nvtx_sum"), (),
            lambda text: next(float(row["Avg (ns)"]) for row in csv_of(text) if row["Range"].lstrip(":") == step)),
        ToolQuestion("nsys stats", "launches", "nvtx_kern_sum, added up", (*stats, "nvtx_kern_sum"), (),
            lambda text: in_a_step(text[text.index("NVTX Range"):])),
    ]  # fmt: skip

    def skill(name: str, *options: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return ("skill", "run", name), ("--format", "json", *options)

    timing = skill("iteration_timing", "-p", f"marker={step}")
    for suffix, warm in (("", None), (", cached", ("info",))):
        questions += [
            ToolQuestion(f"nsys-ai{suffix}", "top", "top_kernels", *skill("top_kernels"),
                lambda text: [1e6 * row["total_ms"] for row in json.loads(text)[:5]], warm),
            ToolQuestion(f"nsys-ai{suffix}", "idle", "pipeline_bubble_metrics", *skill("pipeline_bubble_metrics"),
                lambda text: next(row["bubble_pct"] for row in json.loads(text) if "bubble_pct" in row), warm),
            ToolQuestion(f"nsys-ai{suffix}", "step", "iteration_timing", *timing,
                lambda text: 1e6 * statistics.mean(row["duration_ms"] for row in _iterations(text)), warm),
            ToolQuestion(f"nsys-ai{suffix}", "launches", "iteration_timing", *timing,
                lambda text: statistics.mean(row["kernel_count"] for row in _iterations(text)), warm),
        ]  # fmt: skip
    return questions


def _iterations(text: str) -> list[dict[str, Any]]:
    return [row for row in json.loads(text) if "duration_ms" in row]


def run_measured(command: list[str], home: Path) -> tuple[str, float, float]:
    """Run a command; return what it printed, its CPU seconds with those of its children, and its peak memory in MB."""
    home.mkdir(exist_ok=True)
    environment = os.environ | {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=environment, cwd=home)
        _, status, usage = os.wait4(child.pid, 0)
        out.seek(0)
        text = out.read()
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / MB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--step", default="decode_step", help="the NVTX range of a step")
    parser.add_argument("--nsys", default=shutil.which("nsys"))
    parser.add_argument("--nsys-ai", default=shutil.which("nsys-ai"))
    parser.add_argument("--home", type=Path, help="what the home of each run begins as: DuckDB's extensions")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    programs = {
        "nsys-insight": [sys.executable, "-m", "nsys_insight"],
        "nsys stats": [arguments.nsys],
        "nsys-ai": [arguments.nsys_ai],
    }
    os.environ["PYTHONPATH"] = str(ROOT)
    expected = count_answers(arguments.trace, arguments.step)
    print("| question | tool | asked with | answer | | CPU | memory |\n| --- | --- | --- | --- | --- | ---: | ---: |")
    for question in QUESTIONS:
        expected_answer = {"top": expected["top"], "idle": expected["idle"][0]}.get(question, expected[question])
        answer = format_answer(question, expected_answer)
        print(f"| {QUESTION_TEXTS[question]} | counted | plain Python | {answer} | | | |")
        for query in list_tool_questions(arguments.step):
            if query.question != question:
                continue
            program = programs[query.tool.partition(",")[0]]
            if program[0]:
                cells = _format_cells(query, program, arguments, expected)
                print(f"| | {query.tool} | `{query.label}` | {cells} |", flush=True)


def _format_cells(
    query: ToolQuestion, program: list[str], arguments: argparse.Namespace, expected: dict[str, Any]
) -> str:
    seconds, memory, text = [], [], ""
    for _ in range(arguments.runs):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            shutil.copytree(arguments.home, home) if arguments.home else home.mkdir()
            trace = shutil.copy(arguments.trace, Path(folder) / "trace.sqlite")
            if query.warm:
                run_measured([*program, *query.warm, str(trace)], home)
            text, cpu, peak = run_measured([*program, *query.before, str(trace), *query.after], home)
            seconds.append(cpu)
            memory.append(peak)
    try:
        answer = query.read(text)
    except (LookupError, ValueError, StopIteration, statistics.StatisticsError):
        answer = None
    cells = (format_answer(query.question, answer), assess_answer(query.question, answer, expected))
    return f"{' | '.join(cells)} | {statistics.median(seconds):.2f} s | {statistics.median(memory):.0f} MB"


if __name__ == "__main__":
    main()
