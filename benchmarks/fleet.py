"""Measure `nsys-insight fleet` on hundreds of ranks made from two real ones, and compare its answers with one process.

    python benchmarks/fleet.py --files 256 --folder /tmp/fleet

Each file is a rank of tests/data/ranks with shifted times, so that every rank has its own clock. One more file is
damaged. There are three modes, and `--only` selects one:

- `several`: a local Dask cluster processes the files. One worker is killed after a quarter of the files. The cluster is
  interrupted after half of them and started again.
- `one`: one process processes the files.
- `traces`: no preparation; each question reads all traces.

Each mode answers the same questions. Its answers are compared with the answers that other modes left in the folder.
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

REPOSITORY = Path(__file__).resolve().parent.parent
REAL_RANKS = [REPOSITORY / "tests/data/ranks" / f"ddp_a_rank{rank}.sqlite" for rank in range(2)]
TIME_COLUMNS = ("start", "end", "timestamp", "rawTimestamp")
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


class Usage(NamedTuple):
    """The resources that a command used: wall and CPU time in s, and peak memory of its largest process in MB."""

    wall: float
    cpu: float
    peak: float
    code: int
    output: str

    roles: dict[str, float]

    def __str__(self) -> str:
        """Format as the cell of a table."""
        roles = "".join(f", {role} {peak:.0f} MB" for role, peak in self.roles.items())
        return f"{self.wall:.1f} s, CPU {self.cpu:.1f} s, {self.peak:.0f} MB{roles}"


def make_ranks(folder: Path, files: int) -> None:
    """Write the ranks and a damaged file. The clock of each rank is 1 ms ahead of the previous rank's."""
    folder.mkdir(parents=True, exist_ok=True)
    damaged = folder / "damaged.sqlite"
    if not damaged.exists():
        damaged.write_bytes(REAL_RANKS[0].read_bytes()[:100_000])
    for number in range(files):
        target = folder / f"rank{number}.sqlite"
        if target.exists():
            continue
        shutil.copyfile(REAL_RANKS[number % 2], target)
        with closing(sqlite3.connect(target)) as database, database:
            for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
                shifts = [f'"{name}" = "{name}" + {number * 1_000_000}' for name in columns if name in TIME_COLUMNS]
                if shifts and not table.startswith(("META_", "TARGET_", "ANALYSIS")):
                    database.execute(f'UPDATE "{table}" SET {", ".join(shifts)}')


def run_command(*arguments: str, meanwhile: Any = None) -> Usage:
    """Run a command. While it runs, call `meanwhile` with its process id."""
    start_s = time.perf_counter()
    roles: dict[str, float] = {}
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        watch = threading.Thread(target=record_memory, args=(run.pid, roles))
        watch.start()
        if meanwhile:
            meanwhile(run.pid)
        output = run.stdout.read() if run.stdout else ""
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        watch.join()
    cpu = usage.ru_utime + usage.ru_stime
    return Usage(time.perf_counter() - start_s, cpu, usage.ru_maxrss / 1000, run.returncode, output, roles)


def record_memory(process: int, roles: dict[str, float]) -> None:
    """Record the peak memory of a command while it has workers and after them, and the peak memory of its workers."""
    while (own_peak := peak_memory(process)) is not None:
        worker_peaks = [peak for child in find_workers(process) if (peak := peak_memory(child)) is not None]
        if worker_peaks:
            roles["a worker"] = max([roles.get("a worker", 0.0), *worker_peaks])
        role = "the command next to them" if worker_peaks else "the command after them" if roles else ""
        if role:
            roles[role] = max(roles.get(role, 0.0), own_peak)
        time.sleep(0.5)


def peak_memory(process: int) -> float | None:
    """Return the peak memory of a process so far in MB; None after it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM")), None)


def find_workers(process: int) -> list[int]:
    """Return the ids of the worker processes of a command."""
    listing = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    children = [line.split(None, 2) for line in listing.splitlines()[1:]]
    return [int(pid) for pid, parent, command in children if parent == str(process) and "spawn_main" in command]


def run_fleet(traces: Path, facts: Path, workers: int, meanwhile: Any = None) -> tuple[Usage, dict[str, int]]:
    """Process the traces. Return the usage, and the number of files in each state."""
    usage = run_command(
        "fleet", str(traces), "-o", str(facts), "--workers", str(workers), "-f", "json", meanwhile=meanwhile
    )
    counts: dict[str, int] = {}
    for row in json.loads(usage.output)["rows"] if usage.output else ():
        counts[row["state"]] = counts.get(row["state"], 0) + 1
    return usage, counts


def ask_all(source: str) -> dict[str, tuple[Usage, Any]]:
    """Ask all questions. Return the usage of each, and its answer without the names of files and commands."""
    answers_by_question = {}
    for name, *options in QUESTIONS:
        usage = run_command(name, source, *options, "--format", "json", "--no-cache")
        answer: dict[str, Any] = {"rows": [], "exit": usage.code}
        if usage.output:
            # Sums of floats depend on the order of the rows in the last of sixteen digits.
            answer = json.loads(usage.output.replace(source, "IT"), parse_float=lambda text: f"{float(text):.12g}")
        answer.pop("trace", None)
        answer["notes"] = [note for note in answer.get("notes", ()) if "fleet could not read" not in note]
        for row in answer["rows"]:
            row.pop("command", None)
        answers_by_question[name] = usage, answer
        print(f"  {name}: {usage}, {len(answer['rows'])} rows", flush=True)
    return answers_by_question


def compare_answers(folder: Path, part: str, answers_by_question: dict[str, tuple[Usage, Any]]) -> None:
    """Store the answers, and compare them with those of the other modes."""
    new_answers = {name: answer for name, (_, answer) in answers_by_question.items()}
    (folder / f"{part}.json").write_text(json.dumps(new_answers), encoding="utf-8")
    for other in {"several", "one", "traces"} - {part}:
        with suppress(OSError):
            other_answers = json.loads((folder / f"{other}.json").read_text(encoding="utf-8"))
            equal_names = [
                name for name in new_answers if json.loads(json.dumps(new_answers[name])) == other_answers[name]
            ]
            different_names = sorted(new_answers.keys() - set(equal_names))
            print(
                f"  as {other}: {', '.join(equal_names)}; otherwise: {', '.join(different_names) or 'none'}", flush=True
            )


def act_after(facts: Path, folders: int, act: Any) -> Any:
    """Return a function that calls `act` on a process after this number of folders is finished."""

    def watch(process: int) -> None:
        while len(list(facts.glob("*.facts"))) < folders:
            if peak_memory(process) is None:
                return
            time.sleep(0.1)
        act(process)

    return watch


def kill_a_worker(process: int) -> None:
    """Kill one of the worker processes of a command."""
    workers = find_workers(process)
    os.kill(workers[0], signal.SIGKILL)
    print(f"  killed worker {workers[0]} of {len(workers)}", flush=True)


def measure_workers(traces: Path, facts: Path, options: argparse.Namespace) -> None:
    """Process the traces with several workers, including a killed worker and an interruption."""

    def go_wrong(process: int) -> None:
        act_after(facts, options.files // 4, kill_a_worker)(process)
        act_after(facts, options.files // 2, lambda it: os.kill(it, signal.SIGTERM))(process)

    usage, _ = run_fleet(traces, facts, options.workers, go_wrong)
    finished_count = len(list(facts.glob("*.facts")))
    print(
        f"{options.workers} workers, one killed, interrupted: {usage}; exit {usage.code}, {finished_count} finished",
        flush=True,
    )
    usage, counts = run_fleet(traces, facts, options.workers)
    print(f"resumed: {usage}; {counts}", flush=True)
    usage, counts = run_fleet(traces, facts, options.workers)
    print(f"again: {usage}; {counts}", flush=True)
    size = sum(file.stat().st_size for file in facts.rglob("*.parquet"))
    print(f"facts: {size / 1e6:.0f} MB, {size / options.files / 1e6:.2f} MB a file", flush=True)
    compare_answers(options.folder, "several", ask_all(str(facts)))


def measure_one_process(traces: Path, facts: Path, options: argparse.Namespace) -> None:
    """Process the traces with one process."""
    usage, counts = run_fleet(traces, facts, 1)
    print(f"one process: {usage}; {counts}", flush=True)
    compare_answers(options.folder, "one", ask_all(str(facts)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=256)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only", choices=["several", "one", "traces"])
    arguments = parser.parse_args()
    traces: Path = arguments.folder / "traces"
    make_ranks(traces, arguments.files)
    size = sum(file.stat().st_size for file in traces.iterdir())
    print(f"{arguments.files} files, {size / 1e6:.0f} MB, and a damaged one", flush=True)
    if arguments.only in {None, "several"}:
        measure_workers(traces, arguments.folder / "several", arguments)
    if arguments.only in {None, "one"}:
        measure_one_process(traces, arguments.folder / "one", arguments)
    if arguments.only in {None, "traces"}:
        print("traces", flush=True)
        compare_answers(arguments.folder, "traces", ask_all(f"{traces}/rank*"))


if __name__ == "__main__":
    main()
