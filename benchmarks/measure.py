"""Measure the command line against sqlite3 and nsys stats on big tiled traces; prints a Markdown table of ratios.

    python benchmarks/measure.py [--folder DIR] [--times 1000] [--runs 3] [--nsys PATH] [--only PART]

All commands of a line run one after another in one go, so that their ratios hold on a noisy machine; seconds are the
medians of the runs. The tiled traces take about 3 GB in the folder and are kept for the next time.
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

# What somebody types who has only sqlite3. Each asks less than our report does: no median, no wall, no names of calls,
# nothing of what the host did in a gap.
TYPED = {
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

# (report, warm, the other tool, the largest ratio that is allowed)
TARGETS: tuple[tuple[str, bool, str, float | None], ...] = (
    ("top", False, "sqlite3", 0.20),
    ("top", False, "nsys stats", 0.08),
    ("launches", False, "sqlite3", 0.45),
    ("launches", False, "nsys stats", 0.13),
    ("gaps", False, "sqlite3", 0.25),
    ("gap-sizes", False, "sqlite3", None),
    ("top", True, "sqlite3", 0.10),
)
LIMIT_MB = 1024
# With default options, the cache folder empty: how many times as long as the typed `top` of the same run.
GOALS = {
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
# Of a small trace, as many times our own `top`.
SMALL_GOALS = {"diagnose": 3.0, "report": 6.0}
# The same once more, with what the first run left in the cache folder.
AGAIN, FACTS_MB = 0.3, 1600
# By caller, where every call has a call chain: how many times as long as without, and as the typed `top`.
BY_CALLER = ("syncs", "mallocs", "copies", "gaps")
CHAINS = ROOT / "tests" / "data" / "chains" / "decode_cpu.sqlite"
PARTS = ("compare", "goals", "callers", "reports", "small", "huge")


@dataclass(frozen=True)
class Run:
    """Wall time and peak memory of one finished command."""

    seconds: float
    megabytes: float


def run(command: list[str], environment: dict[str, str]) -> Run:
    started = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            sys.exit(f"{' '.join(command)}\n{errors.read().decode()}")
    return Run(seconds, usage.ru_maxrss / 1024)


def warm(file: Path) -> None:
    """Bring a file into the page cache, from where some machines take pages back within seconds."""
    with file.open("rb", buffering=0) as stream:
        while stream.read(1 << 24):
            pass


def median(runs: list[Run]) -> Run:
    return Run(statistics.median(r.seconds for r in runs), max(r.megabytes for r in runs))


class Bench:
    """The commands to compare, and where they keep their files."""

    def __init__(self, folder: Path, runs: int, nsys: str | None) -> None:
        self.runs, self.nsys = runs, nsys
        self.cache = folder / "cache"
        self.environment = {**os.environ, "NSYS_INSIGHT_CACHE_DIR": str(self.cache), "COLUMNS": "160"}
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)  # who installs a wheel has its bytecode
        self.insight = [sys.executable, "-m", "nsys_insight"]

    def forget(self) -> None:
        """Empty the cache folder."""
        shutil.rmtree(self.cache, ignore_errors=True)

    def together(self, *commands: list[str], before: Callable[[], None] = lambda: None) -> list[Run]:
        """Run commands in turn, `runs` times, each turn after `before`; return median times and peak memory."""
        results: list[list[Run]] = [[] for _ in commands]
        for _ in range(self.runs):
            before()
            for command, found in zip(commands, results, strict=True):
                for file in filter(os.path.isfile, command):
                    warm(Path(file))
                found.append(run(command, self.environment))
        return [median(found) for found in results]

    def ours(self, report: str, trace: Path, *flags: str) -> list[str]:
        return [*self.insight, report, str(trace), *flags]

    def other(self, tool: str, report: str, trace: Path) -> list[str]:
        if tool == "sqlite3":
            return ["sqlite3", "-readonly", str(trace), TYPED[report]]
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


def compare(bench: Bench, trace: Path) -> None:
    print("| report | ours | other tool | ratio | target | ours, peak memory | other, peak memory |")
    print("|---|---|---|---|---|---|---|")
    for report, warm, tool, limit in TARGETS:
        if tool == "nsys stats" and not bench.nsys:
            continue
        flags = ["--cache"] if warm else ["--no-cache"]
        if warm:
            run(bench.ours(report, trace, *flags), bench.environment)
        ours, other = bench.together(bench.ours(report, trace, *flags), bench.other(tool, report, trace))
        ratio = ours.seconds / other.seconds
        verdict = "" if limit is None else f"≤ {limit}" + ("" if ratio <= limit else " **missed**")
        print(
            f"| {'warm' if warm else 'cold'} `{report}` | {ours.seconds:.2f} s | {tool} {other.seconds:.2f} s |"
            f" {ratio:.3f} | {verdict} | {ours.megabytes:.0f} MB |"
            f" {other.megabytes:.0f} MB |",
            flush=True,
        )


def goals(bench: Bench, traces: dict[str, Path]) -> None:
    """Ask what begins a session, from nothing and again, each beside the typed `top`."""
    for name, trace in traces.items():
        print(f"\n{name}\n")
        print(
            "| command | cold | sqlite3 `top` | ratio | goal | peak memory | again | ratio | goal |\n"
            "|---|---|---|---|---|---|---|---|---|"
        )
        for report, goal in GOALS.items():
            with tempfile.TemporaryDirectory() as folder:
                flags = ["-o", f"{folder}/page.html"] if report == "report" else []
                ours, top = bench.ours(report, trace, *flags), bench.other("sqlite3", "top", trace)
                typed, cold, again = bench.together(top, ours, ours, before=bench.forget)
            first, second = cold.seconds / typed.seconds, again.seconds / typed.seconds
            print(
                f"| `{report}` | {cold.seconds:.1f} s | {typed.seconds:.1f} s | {held(first, goal)} |"
                f" {cold.megabytes:.0f} MB{'' if cold.megabytes <= FACTS_MB else ' **missed**'} |"
                f" {again.seconds:.1f} s | {held(second, AGAIN)} |",
                flush=True,
            )


def callers(bench: Bench, trace: Path) -> None:
    """Ask for callers in a trace in which every call has a call chain, each beside the typed `top`."""
    print("\na chain for each call\n")
    print("| report | without callers | `--group-by caller` | ratio | sqlite3 `top` | ratio | peak memory |")
    print("|---|---|---|---|---|---|---|")
    for report in BY_CALLER:
        without = bench.ours(report, trace, "--no-cache")
        top = bench.other("sqlite3", "top", trace)
        typed, plain, ours = bench.together(top, without, [*without, "--group-by", "caller"])
        print(
            f"| `{report}` | {plain.seconds:.1f} s | {ours.seconds:.1f} s | {ours.seconds / plain.seconds:.2f} |"
            f" {typed.seconds:.1f} s | {ours.seconds / typed.seconds:.2f} | {ours.megabytes:.0f} MB |",
            flush=True,
        )


def held(ratio: float, goal: float) -> str:
    return f"{ratio:.2f} | ≤ {goal:g}" + ("" if ratio <= goal else " **missed**")


def huge(bench: Bench, trace: Path, tenth: Path) -> None:
    """Ask a trace ten times as big, which is made for this and removed."""
    print("\n| 65 M kernels | seconds | of a tenth | ratio | peak memory |\n|---|---|---|---|---|")
    for report in ("top", "idle", "diagnose"):
        measured = []
        for path in (tenth, trace):
            bench.forget()
            measured.append(run(bench.ours(report, path), bench.environment))
        small, big = measured
        print(
            f"| `{report}` | {big.seconds:.0f} | {small.seconds:.1f} | {big.seconds / small.seconds:.1f} |"
            f" {big.megabytes:.0f} MB |",
            flush=True,
        )
    trace.unlink()


def every_report(bench: Bench, traces: dict[str, Path]) -> None:
    from nsys_insight.packs.library import built_in

    print(f"\n| report | {' | '.join(f'{name} | memory' for name in traces)} |")
    print("|---|" + "---|---|" * len(traces))
    for pack in built_in().values():
        flags = ["--tokens", "32000"] if "tokens" in pack.params else []
        cells = []
        for trace in traces.values():
            warm(trace)
            ours = run(bench.ours(pack.name, trace, "--no-cache", *flags), bench.environment)
            cells.append(
                f"{ours.seconds:.2f} s | {ours.megabytes:.0f} MB"
                + ("" if ours.megabytes <= LIMIT_MB else " **missed**")
            )
        print(f"| `{pack.name}` | {' | '.join(cells)} |", flush=True)


def small(bench: Bench) -> None:
    sample, page = SAMPLES / "decode_eager.sqlite", bench.cache.parent / "page.html"
    cold, help_, top, diagnosis, report = bench.together(
        bench.ours("top", sample, "--no-cache"),
        [*bench.insight, "--help"],
        bench.ours("top", sample),
        bench.ours("diagnose", sample),
        bench.ours("report", sample, "-o", str(page)),
    )
    run(bench.ours("top", sample, "--cache"), bench.environment)
    (warm,) = bench.together(bench.ours("top", sample))
    print("\n| sample trace (6.5 k kernels) | seconds | target |\n|---|---|---|")
    for name, found, limit in (("cold `top`", cold, 0.5), ("warm `top`", warm, 0.4), ("`--help`", help_, 0.25)):
        print(f"| {name} | {found.seconds:.2f} s | ≤ {limit} s {'' if found.seconds <= limit else '**missed**'} |")
    for name, found in (("diagnose", diagnosis), ("report", report)):
        # Like it, with default options: without the cache folder, an extension's signature is checked each time.
        ratio = found.seconds / top.seconds
        print(f"| `{name}` | {found.seconds:.2f} s | times `top`: {held(ratio, SMALL_GOALS[name])} |")
    page.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "nsys-insight-bench")
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", action="append", choices=PARTS, help="a part of it; `huge` runs only if it is named")
    parser.add_argument("--nsys", default=os.environ.get("NSYS_INSIGHT_NSYS") or shutil.which("nsys"))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    nsys = arguments.nsys
    if nsys and Path(nsys).is_dir():
        nsys = str(Path(nsys) / "target-linux-x64" / "nsys")
    bench = Bench(arguments.folder, arguments.runs, nsys)

    def made(name: str, sample: Path, times: int, processes: int = 1, streams: int = 1) -> Path:
        trace: Path = arguments.folder / f"{name}-{times}.sqlite"
        if not trace.exists():
            tile(sample, trace, times, processes, streams)
        return trace

    eager, graphs = SAMPLES / "decode_eager.sqlite", SAMPLES / "decode_graph_node.sqlite"

    tiled = made("tiled", eager, arguments.times)
    tenth = made("tiled", eager, arguments.times // 10)
    mixed = made("mixed", graphs, arguments.times, processes=2, streams=4)
    parts = arguments.only or PARTS[:-1]
    big = {"6.5 M kernels": tiled, "6.7 M, 2 processes, 4 streams each, graphs": mixed}
    if "compare" in parts:
        compare(bench, tiled)
    if "goals" in parts:
        goals(bench, big)
    if "callers" in parts:
        callers(bench, made("chains", CHAINS, 7 * arguments.times // 10))
    if "reports" in parts:
        every_report(bench, {"0.6 M kernels": tenth, **big})
    if "small" in parts:
        small(bench)
    if "huge" in parts:
        huge(bench, made("tiled", eager, 10 * arguments.times), tiled)
    shutil.rmtree(bench.cache, ignore_errors=True)


if __name__ == "__main__":
    main()
