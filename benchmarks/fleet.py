"""Measure `nsys-insight fleet` on hundreds of ranks made of two real ones, and hold its answers to one process's.

    python benchmarks/fleet.py --files 256 --folder /tmp/fleet

Each file is a rank of tests/data/ranks with its times moved, so that every one has a clock of its own; one more is
damaged. They are worked out by a local Dask cluster, one of whose workers is killed after a quarter, and which is
interrupted after half and started again (`several`); by one process (`one`); and not at all (`traces`: each question
reads all traces). The same questions are asked of each, and the answers compared with those that the others left in
the folder: `--only` does one of the three.
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
import threading
import time
from contextlib import closing, suppress
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

    roles: dict[str, float]

    def __str__(self) -> str:
        """Write it as a cell."""
        roles = "".join(f", {role} {peak:.0f} MB" for role, peak in self.roles.items())
        return f"{self.wall:.1f} s, CPU {self.cpu:.1f} s, {self.peak:.0f} MB{roles}"


def make(folder: Path, files: int) -> None:
    """Write the ranks, and a file that is damaged; each begins 1 ms later than the one before by its own clock."""
    folder.mkdir(parents=True, exist_ok=True)
    damaged = folder / "damaged.sqlite"
    if not damaged.exists():
        damaged.write_bytes(REAL[0].read_bytes()[:100_000])
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
    roles: dict[str, float] = {}
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        watch = threading.Thread(target=look, args=(run.pid, roles))
        watch.start()
        if meanwhile:
            meanwhile(run.pid)
        printed = run.stdout.read() if run.stdout else ""
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        watch.join()
    cpu = usage.ru_utime + usage.ru_stime
    return Taken(time.perf_counter() - began, cpu, usage.ru_maxrss / 1000, run.returncode, printed, roles)


def look(process: int, roles: dict[str, float]) -> None:
    """Note the largest memory of a command while it has workers, and after them, and that of its workers."""
    while (own := memory(process)) is not None:
        found = [peak for child in workers_of(process) if (peak := memory(child)) is not None]
        if found:
            roles["a worker"] = max([roles.get("a worker", 0.0), *found])
        role = "the command beside them" if found else "the command after them" if roles else ""
        if role:
            roles[role] = max(roles.get(role, 0.0), own)
        time.sleep(0.5)


def memory(process: int) -> float | None:
    """What a process has held at most so far, in MB; None once it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM")), None)


def workers_of(process: int) -> list[int]:
    """The processes that work for a command."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    children = [line.split(None, 2) for line in listed.splitlines()[1:]]
    return [int(pid) for pid, parent, what in children if parent == str(process) and "spawn_main" in what]


def fleet(traces: Path, facts: Path, workers: int, meanwhile: Any = None) -> tuple[Taken, dict[str, int]]:
    """Work traces out; give what it took, and how many files were written, kept and failed."""
    took = taken("fleet", str(traces), "-o", str(facts), "--workers", str(workers), "-f", "json", meanwhile=meanwhile)
    counts: dict[str, int] = {}
    for row in json.loads(took.printed)["rows"] if took.printed else ():
        counts[row["state"]] = counts.get(row["state"], 0) + 1
    return took, counts


def answers(what: str) -> dict[str, tuple[Taken, Any]]:
    """Ask all questions; give what each took, and the answer without the names of files and commands."""
    found = {}
    for name, *options in QUESTIONS:
        took = taken(name, what, *options, "--format", "json", "--no-cache")
        said: dict[str, Any] = {"rows": [], "exit": took.code}
        if took.printed:
            # Sums of floats depend on the order of the rows, in the last of sixteen digits.
            said = json.loads(took.printed.replace(what, "IT"), parse_float=lambda text: f"{float(text):.12g}")
        said.pop("trace", None)
        said["notes"] = [note for note in said.get("notes", ()) if "fleet could not read" not in note]
        for row in said["rows"]:
            row.pop("command", None)
        found[name] = took, said
        print(f"  {name}: {took}, {len(said['rows'])} rows", flush=True)
    return found


def compare(folder: Path, part: str, found: dict[str, tuple[Taken, Any]]) -> None:
    """Keep the answers, and compare them with those of the other parts."""
    said = {name: answer for name, (_, answer) in found.items()}
    (folder / f"{part}.json").write_text(json.dumps(said), encoding="utf-8")
    for other in {"several", "one", "traces"} - {part}:
        with suppress(OSError):
            theirs = json.loads((folder / f"{other}.json").read_text(encoding="utf-8"))
            same = [name for name in said if json.loads(json.dumps(said[name])) == theirs[name]]
            differ = sorted(said.keys() - set(same))
            print(f"  as {other}: {', '.join(same)}; otherwise: {', '.join(differ) or 'none'}", flush=True)


def when(facts: Path, folders: int, act: Any) -> Any:
    """Make what acts on a process once so many folders are finished."""

    def watch(process: int) -> None:
        while len(list(facts.glob("*.facts"))) < folders:
            if memory(process) is None:
                return
            time.sleep(0.1)
        act(process)

    return watch


def kill_a_worker(process: int) -> None:
    """Kill one of the processes that work for a command."""
    workers = workers_of(process)
    os.kill(workers[0], signal.SIGKILL)
    print(f"  killed worker {workers[0]} of {len(workers)}", flush=True)


def several(traces: Path, facts: Path, options: argparse.Namespace) -> None:
    """Work them out by several workers, with all that may go wrong."""

    def go_wrong(process: int) -> None:
        when(facts, options.files // 4, kill_a_worker)(process)
        when(facts, options.files // 2, lambda it: os.kill(it, signal.SIGTERM))(process)

    took, _ = fleet(traces, facts, options.workers, go_wrong)
    done = len(list(facts.glob("*.facts")))
    print(f"{options.workers} workers, one killed, interrupted: {took}; exit {took.code}, {done} finished", flush=True)
    took, counts = fleet(traces, facts, options.workers)
    print(f"resumed: {took}; {counts}", flush=True)
    took, counts = fleet(traces, facts, options.workers)
    print(f"again: {took}; {counts}", flush=True)
    size = sum(file.stat().st_size for file in facts.rglob("*.parquet"))
    print(f"facts: {size / 1e6:.0f} MB, {size / options.files / 1e6:.2f} MB a file", flush=True)
    compare(options.folder, "several", answers(str(facts)))


def one(traces: Path, facts: Path, options: argparse.Namespace) -> None:
    """Work them out by one process."""
    took, counts = fleet(traces, facts, 1)
    print(f"one process: {took}; {counts}", flush=True)
    compare(options.folder, "one", answers(str(facts)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=256)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only", choices=["several", "one", "traces"])
    options = parser.parse_args()
    traces: Path = options.folder / "traces"
    make(traces, options.files)
    size = sum(file.stat().st_size for file in traces.iterdir())
    print(f"{options.files} files, {size / 1e6:.0f} MB, and a damaged one", flush=True)
    if options.only in {None, "several"}:
        several(traces, options.folder / "several", options)
    if options.only in {None, "one"}:
        one(traces, options.folder / "one", options)
    if options.only in {None, "traces"}:
        print("traces", flush=True)
        compare(options.folder, "traces", answers(f"{traces}/rank*"))


if __name__ == "__main__":
    main()
