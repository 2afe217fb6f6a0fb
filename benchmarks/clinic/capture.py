"""Run the programs of corpus.toml on this machine: time them, then capture them with nsys.

    python3 capture.py run OUT [--nsys NSYS] [--deadline SECONDS] [--only time|trace] [--jobs N]
                        [NAME or NAME_VARIANT ...]
    python3 capture.py fill OUT       write the times of OUT/times.json into corpus.toml

The programs and the built CUDA programs are expected in /srv/app, where capture.sh puts them.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

APP = Path("/srv/app")
CORPUS = Path(__file__).with_name("corpus.toml")
WITHOUT_CURE = {"healthy", "paced"}
AT_A_TIME = 5  # one uses the GPU; the others import their libraries or write their reports
LARGEST = 15 << 20  # bytes in a package
# nsys deletes the session of another run whose process id it cannot see. So each run has a folder of its own.
PRIVATE = 'mkdir -p /tmp/nvidia && mount -t tmpfs none /tmp/nvidia && exec "$@"'

Pair = dict[str, Any]


def clean_environment(home: Path) -> dict[str, str]:
    """Return an environment that tells nothing of this machine."""
    return {
        "HOME": str(home),
        "USER": "user",
        "LANG": "C.UTF-8",
        "PATH": os.environ["PATH"],
        "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""),
        "TORCHINDUCTOR_CACHE_DIR": str(home / "inductor"),
        "TURN_FILE": str(APP / "turn"),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        # Without multicast: a program that dies while it uses it can leave the GPUs out of order.
        "NCCL_NVLS_ENABLE": "0",
        "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
        "NVSHMEM_DISABLE_NVLS": "1",
    }


@dataclass
class Session:
    """One run over the pairs."""

    out: Path
    nsys: str
    deadline: float
    at_a_time: int
    start: float = field(default_factory=time.monotonic)
    times: dict[str, dict[str, float]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    gpu_lock: Lock = field(default_factory=Lock)

    def command(self, pair: Pair, variant: str) -> list[str]:
        program = Path(pair["program"])
        start = ["python3", program.name] if program.suffix == ".py" else [str(APP / program.stem)]
        return [*start, variant]

    def execute(self, label: str, pair: Pair, command: list[str]) -> str | None:
        """Run a command of a pair, in a PID namespace of its own; return its output, or None when it failed."""
        seconds_left = self.deadline - (time.monotonic() - self.start)
        if seconds_left < 0:
            self.failures[label] = "no time left"
            return None
        home = Path(tempfile.mkdtemp()) if pair.get("fresh") else Path("/tmp/home")  # noqa: S108
        home.mkdir(exist_ok=True)
        namespace = ["unshare", "-fpm", "--mount-proc", "--kill-child", "sh", "-c", PRIVATE, "sh"]
        try:
            result = subprocess.run(
                [*namespace, *command],
                cwd=APP,
                env=clean_environment(home),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=min(240, seconds_left + 90),
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            self.failures[label] = f"timed out\n{str(error.stderr)[-1500:]}"
            return None
        if result.returncode:
            self.failures[label] = f"exit {result.returncode}\n{result.stdout[-800:]}\n{result.stderr[-1500:]}"
            return None
        return result.stdout

    def measure(self, pair: Pair, variant: str) -> None:
        label = f"{pair['name']}_{variant}"
        start = time.monotonic()
        output = self.execute(label, pair, self.command(pair, variant))
        if output is None:
            return
        results = re.findall(r'^\{"ms_per_step".*\}$', output, re.MULTILINE)
        if not results:
            self.failures[label] = f"no result\n{output[-500:]}"
            return
        self.times.setdefault(pair["name"], {})[variant] = json.loads(results[-1])["ms_per_step"]
        print(f"{label}: {results[-1]} {time.monotonic() - start:.1f} s", flush=True)

    def trace(self, pair: Pair, variant: str) -> None:
        name = f"{pair['name']}_{variant}"
        program = [*self.command(pair, variant), "--profile", str(pair["steps"])]
        profile = [self.nsys, "profile", *pair["capture"].split(), "-f", "true", "-o", "/srv/app/reports/NAME"]
        command = shlex.join([*profile, *program])
        names = [name] if pair["gpus"] == 1 else [f"{name}_rank{rank}" for rank in range(pair["gpus"])]
        # Each rank has a profiler of its own. Sessions of nsys in different PID namespaces mix up the processes that
        # their programs start.
        with self.gpu_lock if pair["gpus"] > 1 else nullcontext():
            runs = [
                f"{'RANK=' + run_name[-1] if len(names) > 1 else ''} {command.replace('NAME', run_name)} &"
                for run_name in names
            ]
            output = self.execute(f"trace {name}", pair, ["sh", "-c", " ".join([*runs, "wait"])])
        for name in names:
            self.export(name, pair, output)

    def export(self, name: str, pair: Pair, output: str | None) -> None:
        label, start = f"trace {name}", time.monotonic()
        report, database = APP / "reports" / f"{name}.nsys-rep", APP / "reports" / f"{name}.sqlite"
        if not report.exists():
            self.failures.setdefault(label, f"no report\n{(output or '')[-1500:]}")
            return
        export = [self.nsys, "export", "--type", "sqlite", "--include-blobs=true", "-f", "true", "-o", str(database)]
        if self.execute(label, {**pair, "fresh": False}, [*export, str(report)]) is None:
            return
        with sqlite3.connect(database) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name LIKE 'CUPTI%RUNTIME'").fetchall():
                self.failures[label] = "no CUDA events"
                return
        with database.open("rb") as source, lzma.open(f"{database}.xz", "wb", preset=6) as target:
            shutil.copyfileobj(source, target)
        size = Path(f"{database}.xz").stat().st_size
        print(f"{label}: {size >> 10} KB {time.monotonic() - start:.1f} s", flush=True)

    def work_through(self, jobs: list[tuple[Pair, str]], action: str) -> None:
        with ThreadPoolExecutor(self.at_a_time) as pool:
            list(pool.map(lambda job: getattr(self, action)(*job), jobs))
        self.save()

    def save(self) -> None:
        device = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.split("\n")[0]
        (self.out / "times.json").write_text(json.dumps({"device": device, "times": self.times}, indent=1))
        text = "\n".join(f"=== {label}: {failure}" for label, failure in self.failures.items())
        (self.out / "failures.txt").write_text(text)

    def pack(self) -> None:
        """Put the compressed databases into as few packages as the largest size allows."""
        groups: list[list[Path]] = [[]]
        for path in sorted((APP / "reports").glob("*.sqlite.xz")):
            if sum(p.stat().st_size for p in [*groups[-1], path]) > LARGEST:
                groups.append([])
            groups[-1].append(path)
        for index, group in enumerate(groups):
            with tarfile.open(self.out / f"traces_{index}.tar", "w") as package:
                for path in group:
                    package.add(path, path.name)


def gpu_count() -> int:
    """Return the number of GPUs of this machine."""
    result = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return len(result.stdout.splitlines())


def run(args: argparse.Namespace) -> None:
    """Time and capture the pairs of the command line, or all."""
    pairs = tomllib.loads(CORPUS.read_text())["pair"]
    gpus = gpu_count()
    jobs = [
        (pair, variant)
        for pair in pairs
        for variant in ("ailing", "cured")
        if pair["gpus"] <= gpus
        and (variant == "ailing" or pair["ailment"] not in WITHOUT_CURE)
        and (not args.names or {pair["name"], f"{pair['name']}_{variant}"} & set(args.names))
    ]
    args.out.mkdir(parents=True, exist_ok=True)
    (APP / "reports").mkdir(exist_ok=True)
    session = Session(args.out, args.nsys, args.deadline, args.jobs)
    if args.only != "trace":
        session.work_through(jobs, "measure")
        print(f"timed after {time.monotonic() - session.start:.0f} s", flush=True)
    if args.only != "time":
        session.work_through([job for job in jobs if f"{job[0]['name']}_{job[1]}" not in session.failures], "trace")
        print(f"captured after {time.monotonic() - session.start:.0f} s", flush=True)
    session.pack()


def fill(args: argparse.Namespace) -> None:
    """Write measured times into corpus.toml."""
    result = json.loads((args.out / "times.json").read_text())
    blocks = CORPUS.read_text().split("[[pair]]\n")
    for index, block in enumerate(blocks[1:], 1):
        name = tomllib.loads(block)["name"]
        if name not in result["times"]:
            continue
        lines = [line for line in block.rstrip().split("\n") if not line.startswith(("ms_", "device"))]
        lines += [f"ms_{variant} = {value:.4g}" for variant, value in sorted(result["times"][name].items())]
        lines.append(f'device = "{result["device"]}"')
        blocks[index] = "\n".join(lines) + "\n\n"
    CORPUS.write_text("[[pair]]\n".join(blocks).rstrip() + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["run", "fill"])
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--nsys", default="nsys")
    parser.add_argument("--deadline", type=float, default=3600, help="seconds after which nothing new starts")
    parser.add_argument("--jobs", type=int, default=AT_A_TIME, help="programs that run at once")
    parser.add_argument("--only", choices=["time", "trace"])
    args = parser.parse_intermixed_args()
    {"run": run, "fill": fill}[args.action](args)


if __name__ == "__main__":
    main()
