"""Measure the command line against sqlite3 and nsys stats on big tiled traces; prints a Markdown table of ratios.

    python benchmarks/measure.py [--folder DIR] [--times 1000] [--runs 3] [--nsys PATH] [--only PART]

All commands of a line run in turn, so that their ratios are valid on a noisy machine. Seconds are medians of the runs.
The tiled traces take about 3 GB in the folder. Later runs use them again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tile import tile

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample_traces"

# Queries that a user of plain sqlite3 would type. Each returns less than our report: no median, no wall time, no names
# of calls, and no work of the host in a gap.
SQLITE_QUERIES = {
    "top": """SELECT s.value, count(*), sum(k."end" - k.start), avg(k."end" - k.start), min(k."end" - k.start),
        max(k."end" - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName
        GROUP BY 1 ORDER BY 3 DESC""",
    "launches": """SELECT s.value, count(*), avg(r."end" - r.start), avg(k.start - r."end"), avg(k."end" - k.start)
        FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId
        JOIN StringIds s ON s.id = k.demangledName GROUP BY 1 ORDER BY 2 DESC""",
    "gap-sizes": """SELECT count(*), sum(gap) FROM (SELECT start - max("end") OVER
        (PARTITION BY deviceId ORDER BY start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS gap
        FROM CUPTI_ACTIVITY_KIND_KERNEL) WHERE gap > 0""",
    "gaps": """WITH ops AS (
        SELECT deviceId, start, "end", demangledName AS name FROM CUPTI_ACTIVITY_KIND_KERNEL
        UNION ALL SELECT deviceId, start, "end", NULL FROM CUPTI_ACTIVITY_KIND_MEMCPY
        UNION ALL SELECT deviceId, start, "end", NULL FROM CUPTI_ACTIVITY_KIND_MEMSET
    ), gaps AS (
        SELECT start, name, start - max("end") OVER w AS gap,
            lag(name) OVER (PARTITION BY deviceId ORDER BY start) AS last
        FROM ops WINDOW w AS (PARTITION BY deviceId ORDER BY start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    )
    SELECT g.start, g.gap, b.value, a.value
    FROM (SELECT * FROM gaps WHERE gap > 0 ORDER BY gap DESC LIMIT 20) g
    LEFT JOIN StringIds b ON b.id = g.last LEFT JOIN StringIds a ON a.id = g.name""",
}
NSYS_REPORTS = {"top": "cuda_gpu_kern_sum", "launches": "cuda_kern_exec_sum"}

# (report, warm, other tool, largest allowed ratio of our time to the other tool's)
TARGETS: tuple[tuple[str, bool, str, float | None], ...] = (
    ("top", False, "sqlite3", 0.20),
    ("top", False, "nsys stats", 0.08),
    ("launches", False, "sqlite3", 0.45),
    ("launches", False, "nsys stats", 0.13),
    ("gaps", False, "sqlite3", 0.25),
    ("gap-sizes", False, "sqlite3", None),
    ("top", True, "sqlite3", 0.10),
)
MAX_MB = 1024
# With default options and an empty cache folder: largest ratio of the time to the sqlite3 `top` of the same run.
MAX_RATIOS = {
    "diagnose": 3.0,
    **dict.fromkeys(
        (
            "steps",
            "per-token",
            "idle",
            "gaps",
            "syncs",
            "streams",
            "pace",
            "classify",
            "host",
            "fusion",
            "graph-candidates",
        ),
        3.0,
    ),
    "report": 5.0,
}
# For a small trace: largest ratio of the time to that of our own `top`.
SMALL_MAX_RATIOS = {"diagnose": 3.0, "report": 6.0}
# The second run, with the cache of the first one: largest ratio. Largest memory in MB of the first run.
MAX_SECOND_RATIO, MAX_FACTS_MB = 0.3, 1600
# Reports by caller on a trace with a call stack for each call: compared with the report without callers, and with the
# sqlite3 `top`.
CALLER_REPORTS = ("syncs", "mallocs", "copies", "gaps")
CHAINS_TRACE = ROOT / "tests" / "data" / "chains" / "decode_cpu.sqlite"
SECTIONS = ("compare", "goals", "callers", "reports", "small", "huge")


@dataclass(frozen=True)
class Run:
    """Wall time and peak memory of one finished command."""

    seconds: float
    peak_mb: float


def run(command: list[str], environment: dict[str, str]) -> Run:
    start_s = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start_s
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            sys.exit(f"{' '.join(command)}\n{errors.read().decode()}")
    return Run(seconds, usage.ru_maxrss / 1024)


def read_into_page_cache(file: Path) -> None:
    """Read a file into the page cache. Some machines evict its pages within seconds."""
    with file.open("rb", buffering=0) as stream:
        while stream.read(1 << 24):
            pass


def summarize(runs: list[Run]) -> Run:
    return Run(statistics.median(r.seconds for r in runs), max(r.peak_mb for r in runs))


class Bench:
    """The commands to compare, and the folder of their files."""

    def __init__(self, folder: Path, runs: int, nsys: str | None) -> None:
        self.runs, self.nsys = runs, nsys
        self.cache = folder / "cache"
        self.environment = {**os.environ, "NSYS_INSIGHT_CACHE_DIR": str(self.cache), "COLUMNS": "160"}
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed wheel has bytecode
        self.insight = [sys.executable, "-m", "nsys_insight"]

    def empty_cache(self) -> None:
        """Empty the cache folder."""
        shutil.rmtree(self.cache, ignore_errors=True)

    def run_in_turn(self, *commands: list[str], before: Callable[[], None] = lambda: None) -> list[Run]:
        """Run commands in turn, `runs` times, with `before` before each turn. Return median times and peak memory."""
        results: list[list[Run]] = [[] for _ in commands]
        for _ in range(self.runs):
            before()
            for command, runs_of_command in zip(commands, results, strict=True):
                for file in filter(os.path.isfile, command):
                    read_into_page_cache(Path(file))
                runs_of_command.append(run(command, self.environment))
        return [summarize(runs_of_command) for runs_of_command in results]

    def our_command(self, report: str, trace: Path, *flags: str) -> list[str]:
        return [*self.insight, report, str(trace), *flags]

    def other_command(self, tool: str, report: str, trace: Path) -> list[str]:
        if tool == "sqlite3":
            return ["sqlite3", "-readonly", str(trace), SQLITE_QUERIES[report]]
        return [
            str(self.nsys),
            "stats",
            "--force-export=false",
            "--format",
            "csv",
            "-r",
            NSYS_REPORTS[report],
            str(trace),
        ]


def compare_tools(bench: Bench, trace: Path) -> None:
    print("| report | ours | other tool | ratio | target | ours, peak memory | other, peak memory |")
    print("|---|---|---|---|---|---|---|")
    for report, warm, tool, limit in TARGETS:
        if tool == "nsys stats" and not bench.nsys:
            continue
        flags = ["--cache"] if warm else ["--no-cache"]
        if warm:
            run(bench.our_command(report, trace, *flags), bench.environment)
        our_run, other_run = bench.run_in_turn(
            bench.our_command(report, trace, *flags), bench.other_command(tool, report, trace)
        )
        ratio = our_run.seconds / other_run.seconds
        verdict = "" if limit is None else f"≤ {limit}" + ("" if ratio <= limit else " **missed**")
        print(
            f"| {'warm' if warm else 'cold'} `{report}` | {our_run.seconds:.2f} s | {tool} {other_run.seconds:.2f} s |"
            f" {ratio:.3f} | {verdict} | {our_run.peak_mb:.0f} MB |"
            f" {other_run.peak_mb:.0f} MB |",
            flush=True,
        )


def measure_goals(bench: Bench, traces: dict[str, Path]) -> None:
    """Run typical first commands of a session, without and with a cache, in turn with the sqlite3 `top`."""
    for name, trace in traces.items():
        print(f"\n{name}\n")
        print(
            "| command | cold | sqlite3 `top` | ratio | goal | peak memory | again | ratio | goal |\n"
            "|---|---|---|---|---|---|---|---|---|"
        )
        for report, goal in MAX_RATIOS.items():
            with tempfile.TemporaryDirectory() as folder:
                flags = ["-o", f"{folder}/page.html"] if report == "report" else []
                command, top = bench.our_command(report, trace, *flags), bench.other_command("sqlite3", "top", trace)
                sqlite, cold, again = bench.run_in_turn(top, command, command, before=bench.empty_cache)
            first_ratio, second_ratio = cold.seconds / sqlite.seconds, again.seconds / sqlite.seconds
            print(
                f"| `{report}` | {cold.seconds:.1f} s | {sqlite.seconds:.1f} s | {format_ratio(first_ratio, goal)} |"
                f" {cold.peak_mb:.0f} MB{'' if cold.peak_mb <= MAX_FACTS_MB else ' **missed**'} |"
                f" {again.seconds:.1f} s | {format_ratio(second_ratio, MAX_SECOND_RATIO)} |",
                flush=True,
            )


def measure_callers(bench: Bench, trace: Path) -> None:
    """Run reports by caller on a trace with a call stack for each call, in turn with the sqlite3 `top`."""
    print("\na chain for each call\n")
    print("| report | without callers | `--group-by caller` | ratio | sqlite3 `top` | ratio | peak memory |")
    print("|---|---|---|---|---|---|---|")
    for report in CALLER_REPORTS:
        plain_command = bench.our_command(report, trace, "--no-cache")
        top = bench.other_command("sqlite3", "top", trace)
        sqlite, plain, by_caller = bench.run_in_turn(top, plain_command, [*plain_command, "--group-by", "caller"])
        print(
            f"| `{report}` | {plain.seconds:.1f} s | {by_caller.seconds:.1f} s |"
            f" {by_caller.seconds / plain.seconds:.2f} |"
            f" {sqlite.seconds:.1f} s | {by_caller.seconds / sqlite.seconds:.2f} | {by_caller.peak_mb:.0f} MB |",
            flush=True,
        )


def format_ratio(ratio: float, goal: float) -> str:
    return f"{ratio:.2f} | ≤ {goal:g}" + ("" if ratio <= goal else " **missed**")


def measure_huge(bench: Bench, trace: Path, tenth: Path) -> None:
    """Run reports on a trace of ten times the size, which is removed afterwards."""
    print("\n| 65 M kernels | seconds | of a tenth | ratio | peak memory |\n|---|---|---|---|---|")
    for report in ("top", "idle", "diagnose"):
        runs = []
        for path in (tenth, trace):
            bench.empty_cache()
            runs.append(run(bench.our_command(report, path), bench.environment))
        small, big = runs
        print(
            f"| `{report}` | {big.seconds:.0f} | {small.seconds:.1f} | {big.seconds / small.seconds:.1f} |"
            f" {big.peak_mb:.0f} MB |",
            flush=True,
        )
    trace.unlink()


def measure_reports(bench: Bench, traces: dict[str, Path]) -> None:
    from nsys_insight.packs.library import built_in_packs

    print(f"\n| report | {' | '.join(f'{name} | memory' for name in traces)} |")
    print("|---|" + "---|---|" * len(traces))
    for pack in built_in_packs().values():
        flags = ["--tokens", "32000"] if "tokens" in pack.params else []
        cells = []
        for trace in traces.values():
            read_into_page_cache(trace)
            result = run(bench.our_command(pack.name, trace, "--no-cache", *flags), bench.environment)
            cells.append(
                f"{result.seconds:.2f} s | {result.peak_mb:.0f} MB"
                + ("" if result.peak_mb <= MAX_MB else " **missed**")
            )
        print(f"| `{pack.name}` | {' | '.join(cells)} |", flush=True)


def measure_small(bench: Bench) -> None:
    sample, page = SAMPLES / "decode_eager.sqlite", bench.cache.parent / "page.html"
    cold, help_, top, diagnosis, report = bench.run_in_turn(
        bench.our_command("top", sample, "--no-cache"),
        [*bench.insight, "--help"],
        bench.our_command("top", sample),
        bench.our_command("diagnose", sample),
        bench.our_command("report", sample, "-o", str(page)),
    )
    run(bench.our_command("top", sample, "--cache"), bench.environment)
    (warm,) = bench.run_in_turn(bench.our_command("top", sample))
    print("\n| sample trace (6.5 k kernels) | seconds | target |\n|---|---|---|")
    for name, result, limit in (("cold `top`", cold, 0.5), ("warm `top`", warm, 0.4), ("`--help`", help_, 0.25)):
        print(f"| {name} | {result.seconds:.2f} s | ≤ {limit} s {'' if result.seconds <= limit else '**missed**'} |")
    for name, result in (("diagnose", diagnosis), ("report", report)):
        # `top` and these use default options: without the cache folder, an extension's signature is checked each time.
        ratio = result.seconds / top.seconds
        print(f"| `{name}` | {result.seconds:.2f} s | times `top`: {format_ratio(ratio, SMALL_MAX_RATIOS[name])} |")
    page.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "nsys-insight-bench")
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--only", action="append", choices=SECTIONS, help="a part of it; `huge` runs only if it is named"
    )
    parser.add_argument("--nsys", default=os.environ.get("NSYS_INSIGHT_NSYS") or shutil.which("nsys"))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    nsys = arguments.nsys
    if nsys and Path(nsys).is_dir():
        nsys = str(Path(nsys) / "target-linux-x64" / "nsys")
    bench = Bench(arguments.folder, arguments.runs, nsys)

    def make_trace(name: str, sample: Path, times: int, processes: int = 1, streams: int = 1) -> Path:
        trace: Path = arguments.folder / f"{name}-{times}.sqlite"
        if not trace.exists():
            tile(sample, trace, times, processes, streams)
        return trace

    eager, graphs = SAMPLES / "decode_eager.sqlite", SAMPLES / "decode_graph_node.sqlite"

    tiled = make_trace("tiled", eager, arguments.times)
    tenth = make_trace("tiled", eager, arguments.times // 10)
    mixed = make_trace("mixed", graphs, arguments.times, processes=2, streams=4)
    selected = arguments.only or SECTIONS[:-1]
    big = {"6.5 M kernels": tiled, "6.7 M, 2 processes, 4 streams each, graphs": mixed}
    if "compare" in selected:
        compare_tools(bench, tiled)
    if "goals" in selected:
        measure_goals(bench, big)
    if "callers" in selected:
        measure_callers(bench, make_trace("chains", CHAINS_TRACE, 7 * arguments.times // 10))
    if "reports" in selected:
        measure_reports(bench, {"0.6 M kernels": tenth, **big})
    if "small" in selected:
        measure_small(bench)
    if "huge" in selected:
        measure_huge(bench, make_trace("tiled", eager, 10 * arguments.times), tiled)
    shutil.rmtree(bench.cache, ignore_errors=True)


if __name__ == "__main__":
    main()
