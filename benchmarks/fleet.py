"""Measure `nsys-insight fleet` on hundreds of ranks made of two real ones, and hold its answers to those of the traces.

    python benchmarks/fleet.py --files 256 --workers 2 --folder /tmp/fleet

Each file is a rank of tests/data/ranks with its times moved, so that every one has a clock of its own. They are worked
out by a local Dask cluster, one of whose workers is killed on the way, and by one process; some of them by a cluster
that is interrupted and started again, with a file that is damaged. The same questions are asked of the traces and of
each folder of facts, and the answers compared.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent.parent
REAL = [HERE / "tests/data/ranks" / f"ddp_a_rank{rank}.sqlite" for rank in range(2)]
TIMES = ("start", "end", "timestamp", "rawTimestamp")
QUESTIONS = (
    ("ranks",),
    ("collectives",),
    ("top", "--limit", "0"),
    ("diagnose",),
    (
        "sql",
        "SELECT trace, count(*) AS kernels, sum(duration_ns) AS time_ns FROM kernels GROUP BY trace ORDER BY trace",
    ),
)
COMMAND = [sys.executable, "-m", "nsys_insight"]


class Taken(NamedTuple):
    """What a command took: wall and CPU time in s, and the memory of its largest process in MB."""

    wall: float
    cpu: float
    peak: float
    code: int
    printed: str

    def __str__(self) -> str:
        """Write it as a cell."""
        return f"{self.wall:.1f} s, CPU {self.cpu:.1f} s, {self.peak:.0f} MB"


def make(folder: Path, files: int) -> None:
    """Write the ranks; each begins 1 ms later than the one before by its own clock."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        target = folder / f"rank{number}.sqlite"
        if target.exists():
            continue
        shutil.copyfile(REAL[number % 2], target)
        with closing(sqlite3.connect(target)) as database, database:
            for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
                moved = [f'"{name}" = "{name}" + {number * 1_000_000}' for name in columns if name in TIMES]
                if moved and not table.startswith(("META_", "TARGET_", "ANALYSIS")):
                    database.execute(f'UPDATE "{table}" SET {", ".join(moved)}')


def taken(*arguments: str, meanwhile: Any = None) -> Taken:
    """Run a command; `meanwhile` is called with its process id while it runs."""
    began = time.perf_counter()
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        if meanwhile:
            meanwhile(run.pid)
        printed = run.stdout.read() if run.stdout else ""
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    return Taken(time.perf_counter() - began, cpu, usage.ru_maxrss / 1000, run.returncode, printed)


def fleet(traces: Path, facts: Path, workers: int, meanwhile: Any = None) -> tuple[Taken, dict[str, int]]:
    """Work traces out; give what it took, and how many files were written, kept and failed."""
    took = taken("fleet", str(traces), "-o", str(facts), "--workers", str(workers), "-f", "json", meanwhile=meanwhile)
    counts: dict[str, int] = {}
    for row in json.loads(took.printed)["rows"] if took.printed else ():
        counts[row["state"]] = counts.get(row["state"], 0) + 1
    return took, counts


def answers(folder: Path) -> dict[str, tuple[Taken, Any]]:
    """Ask all questions; give what each took, and the answer without the names of files and commands."""
    found = {}
    for name, *options in QUESTIONS:
        took = taken(name, f"{folder}/rank*", *options, "--format", "json", "--no-cache")
        said = json.loads(took.printed)
        said.pop("trace", None)
        for row in said["rows"]:
            row.pop("command", None)
        found[name] = took, said
    return found


def when(facts: Path, folders: int, act: Any) -> Any:
    """Make what acts on a process once so many folders are finished."""

    def watch(process: int) -> None:
        while len(list(facts.glob("*.facts"))) < folders:
            time.sleep(0.1)
        act(process)

    return watch


def kill_a_worker(process: int) -> None:
    """Kill one of the processes that work for a command."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    children = [line.split(None, 2) for line in listed.splitlines()[1:]]
    workers = [pid for pid, parent, what in children if parent == str(process) and "spawn_main" in what]
    os.kill(int(workers[0]), signal.SIGKILL)
    print(f"  killed worker {workers[0]} of {len(workers)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=256)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    traces: Path = options.folder / "traces"
    make(traces, options.files)
    size = sum(file.stat().st_size for file in traces.iterdir())
    print(f"{options.files} files, {size / 1e6:.0f} MB", flush=True)

    one, two = options.folder / "one", options.folder / "two"
    took, counts = fleet(traces, two, options.workers, when(two, options.files // 4, kill_a_worker))
    print(f"{options.workers} workers, one killed: {took}; {counts}", flush=True)
    facts = sum(file.stat().st_size for file in two.rglob("*.parquet"))
    print(f"facts: {facts / 1e6:.0f} MB, {facts / options.files / 1e6:.2f} MB a file", flush=True)
    took, counts = fleet(traces, two, options.workers)
    print(f"again: {took}; {counts}", flush=True)
    asked = {"traces": answers(traces), "facts": answers(two)}
    for name, *_ in QUESTIONS:
        same = asked["traces"][name][1] == asked["facts"][name][1]
        print(f"{name}: {asked['traces'][name][0]} -> {asked['facts'][name][0]}; same: {same}", flush=True)
    took, counts = fleet(traces, one, 1)
    print(f"one process: {took}; {counts}", flush=True)
    same = {name: said for name, (_, said) in answers(one).items()} == {
        name: said for name, (_, said) in asked["facts"].items()
    }
    print(f"the same answers: {same}", flush=True)

    some = options.folder / "some"
    for number in range(min(16, options.files)):
        (some).mkdir(exist_ok=True)
        shutil.copyfile(traces / f"rank{number}.sqlite", some / f"rank{number}.sqlite")
    (some / "rank5.sqlite").write_bytes((some / "rank5.sqlite").read_bytes()[:100_000])
    facts_of_some = options.folder / "facts of some"
    took, counts = fleet(
        some, facts_of_some, options.workers, when(facts_of_some, 5, lambda pid: os.kill(pid, signal.SIGINT))
    )
    print(f"interrupted: exit {took.code}, {len(list(facts_of_some.glob('*.facts')))} finished", flush=True)
    took, counts = fleet(some, facts_of_some, options.workers)
    print(f"resumed, with a damaged file: {took}; {counts}", flush=True)


if __name__ == "__main__":
    main()
