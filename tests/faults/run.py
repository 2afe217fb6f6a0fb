"""Answers and leftovers of a command under faults: many runs at once, a kill, a full disk, a file that changes.

    python tests/faults/run.py [TRACE] [--times 50] [--only killed]        (just faults)

The trace is treated as a large one, so that its copy and its facts go to files. A command must give the same answer as
without the fault, or end with exit code 1, 3 or 4 and a sentence. The next command must give the correct answer, and
must leave no files of the previous one. Prints a line for each kind of fault.
"""

from __future__ import annotations

import argparse
import difflib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

COMMAND = [
    sys.executable,
    "-c",
    (
        "from nsys_insight.session import open_strategies; open_strategies._BIG_BYTES = 0; "
        "from nsys_insight.__main__ import main; main()"
    ),
]
SAMPLE = Path(__file__).parents[2] / "sample_traces" / "decode_eager.sqlite"
QUESTION = ("idle", "--cache", "--format", "csv")
FAILED = {1, 3, 4}
# A user's, with a name as the program's own temporary folders have; and the list of the program's own files.
USER_FILE = "nsys-insight-main/thesis.tex"
MANIFEST = ".nsys-insight-files"


class Workspace:
    """A folder with a trace, a cache folder and a folder for temporary files."""

    def __init__(self, trace: Path, work: Path) -> None:
        self.trace, self.work = work / "trace.sqlite", work
        self.cache, self.temporary = work / "cache", work / "tmp"
        self.temporary.mkdir()
        self.forget()
        os.link(trace, self.trace) if trace.stat().st_dev == work.stat().st_dev else shutil.copyfile(trace, self.trace)

    def start(self, *prefix: str, question: tuple[str, ...] = QUESTION) -> subprocess.Popen[str]:
        """Start the command; `prefix` are the words before it."""
        name, *arguments = question
        environment = {**os.environ, "NSYS_INSIGHT_CACHE_DIR": str(self.cache), "TMPDIR": str(self.temporary)}
        return subprocess.Popen(
            [*prefix, *COMMAND, name, str(self.trace), *arguments], env=environment, cwd=self.work,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def ask(self, *prefix: str, question: tuple[str, ...] = QUESTION) -> tuple[int, str, str]:
        """Run the command, and return the exit code, stdout and stderr."""
        process = self.start(*prefix, question=question)
        out, err = process.communicate()
        return process.returncode, out, err

    @property
    def leftover_files(self) -> list[str]:
        """Names of files that a command should have removed."""
        return [
            path.name for folder in (self.cache, self.temporary) if folder.is_dir()
            for path in folder.iterdir()
            if "nsys-insight-" in path.name and path.name not in (MANIFEST, Path(USER_FILE).parts[0])
        ]  # fmt: skip

    @property
    def lost_files(self) -> list[str]:
        """The user's files that are not as they were."""
        paths = [folder / USER_FILE for folder in (self.cache, self.temporary)]
        return [str(path) for path in paths if not path.is_file() or path.read_text(encoding="utf-8") != "mine\n"]

    def forget(self) -> None:
        """Empty the cache, and write the user's files."""
        shutil.rmtree(self.cache, ignore_errors=True)
        self.cache.mkdir(mode=0o700)
        for folder in (self.cache, self.temporary):
            (folder / USER_FILE).parent.mkdir(exist_ok=True)
            (folder / USER_FILE).write_text("mine\n", encoding="utf-8")


class Figures:
    """Exit codes of commands, and errors."""

    def __init__(self, right: str) -> None:
        self.right, self.codes, self.errors = right, Counter[int](), list[str]()

    def judge(self, description: str, outcome: tuple[int, str, str], *, must: bool = False) -> None:
        """Check an outcome; with `must` the answer is required."""
        code, out, err = outcome
        self.codes[code] += 1
        if "Traceback" in err or (code and not ("error: " in err or code < 0)):
            self.errors.append(f"{description}: {code}: {err[-700:]}")
        elif not code and out != self.right:
            self.errors.append(f"{description}: another answer: {_difference(self.right, out)}")
        elif code and (must or code not in FAILED):
            self.errors.append(f"{description}: {code}: {err[-300:]}")

    def __str__(self) -> str:
        counts = ", ".join(f"{count} ended with {code}" for code, count in sorted(self.codes.items()))
        return f"{counts}; {len(self.errors)} wrong" + "".join(f"\n    {error}" for error in self.errors[:10])


def _difference(right: str, output: str) -> str:
    lines = difflib.unified_diff(right.splitlines(), output.splitlines(), n=0, lineterm="")
    return " | ".join(list(lines)[2:])[:600]


def run_at_once(place: Workspace, figures: Figures, times: int) -> None:
    """Run eight processes on one cold cache."""
    for turn in range(max(1, times // 10)):
        place.forget()
        running = [place.start() for _ in range(8)]
        for number, process in enumerate(running):
            out, err = process.communicate()
            figures.judge(f"turn {turn}, process {number}", (process.returncode, out, err), must=True)
        if place.leftover_files:
            figures.errors.append(f"turn {turn}: left {place.leftover_files}")


def kill_runs(place: Workspace, figures: Figures, times: int) -> None:
    """Kill a run with SIGKILL at evenly spread times, then ask the same question again."""
    place.forget()
    started = time.monotonic()
    place.ask()
    run_s = time.monotonic() - started
    for turn in range(times):
        place.forget()
        process = place.start()
        time.sleep(run_s * (turn + 0.5) / times)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        figures.judge(f"killed at {turn / times:.0%}", place.ask(), must=True)
        if place.leftover_files:
            figures.errors.append(f"killed at {turn / times:.0%}: left {place.leftover_files}")


def fill_disk(place: Workspace, figures: Figures, times: int) -> None:
    """Run with small disks for the cache and temporary files: a tmpfs for root, or a limit on the size of files."""
    size = place.trace.stat().st_size
    for turn in range(times):
        room = int(size * 1.2 * (turn + 0.5) / times)
        place.forget()
        with _small_disk(place, room) as before:
            figures.judge(f"{room // 1000} kB", place.ask(*before))
        if place.leftover_files:
            figures.errors.append(f"{room // 1000} kB: left {place.leftover_files}")
    place.forget()
    figures.judge("with room again", place.ask(), must=True)


@contextmanager
def _small_disk(place: Workspace, room: int) -> Iterator[tuple[str, ...]]:
    if (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={room // 1024}k", "none", place.temporary], check=False
        ).returncode
    ):
        cache, place.cache = place.cache, place.temporary / "cache"
        try:
            yield ()
        finally:
            place.cache = cache
            subprocess.run(["umount", place.temporary], check=True)
    else:
        yield ("sh", "-c", f'ulimit -f {room // 512}; trap "" XFSZ; exec "$@"', "sh")


def replace_trace(place: Workspace, figures: Figures, times: int) -> None:
    """Replace the trace with another copy while it is read. A command gives the correct answer or an error."""
    other = place.work / "other.sqlite"
    chance = random.Random(0)  # noqa: S311 - not for secrets
    for turn in range(times):
        place.forget()
        shutil.copyfile(place.trace, other)
        process = place.start(question=("idle", "--format", "csv"))
        time.sleep(chance.random() * 3)
        other.replace(place.trace)
        out, err = process.communicate()
        figures.judge(f"turn {turn}", (process.returncode, out, err))
        figures.judge(f"after turn {turn}", place.ask(question=("idle", "--format", "csv")), must=True)


def change_clock(place: Workspace, figures: Figures, times: int) -> None:
    """Run on files that were made with a clock a year ahead or behind."""
    for turn in range(max(2, times // 10)):
        place.forget()
        place.ask()
        process = place.start()
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        when = time.time() + (-1) ** turn * 365 * 86400
        for path in [*place.cache.rglob("*"), *place.temporary.rglob("*"), place.trace]:
            with suppress(OSError):
                os.utime(path, (when, when))
        figures.judge(f"turn {turn}", place.ask(), must=True)
        if place.leftover_files:
            figures.errors.append(f"turn {turn}: left {place.leftover_files}")


KINDS: dict[str, Callable[[Workspace, Figures, int], None]] = {
    "at_once": run_at_once, "killed": kill_runs, "no_room": fill_disk, "replaced": replace_trace,
    "clock": change_clock,
}  # fmt: skip


def main() -> None:
    """Run all kinds of faults, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path, nargs="?", default=SAMPLE)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--only", choices=KINDS)
    arguments = parser.parse_args()
    errors = 0
    with tempfile.TemporaryDirectory() as work:
        place = Workspace(arguments.trace.resolve(), Path(work))
        code, right, err = place.ask(question=("idle", "--no-cache", "--format", "csv"))
        if code:
            sys.exit(err)
        for name, kind in KINDS.items():
            if arguments.only in (None, name):
                started, figures = time.monotonic(), Figures(right)
                kind(place, figures, arguments.times)
                if place.lost_files:
                    figures.errors.append(f"lost {place.lost_files}")
                errors += len(figures.errors)
                print(f"{name}, {(time.monotonic() - started) / 60:.1f} minutes: {figures}", flush=True)
    sys.exit(bool(errors))


if __name__ == "__main__":
    main()
