"""What a command leaves and answers when its machine fails it: many at once, killed, no room, a file that changes.

    python tests/faults/run.py [TRACE] [--times 50] [--only killed]        (just faults)

The trace is taken for a big one, so that its copy and its facts go to files. What must hold: a command answers as it
does when nothing happens, or ends with 1, 3 or 4 and a sentence; nothing of it stays behind after the next one; and the
next one answers right. Prints a line for each kind of fault.
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
    "from nsys_insight.ingest import ways; ways._BIG = 0; from nsys_insight.__main__ import main; main()",
]
SAMPLE = Path(__file__).parents[2] / "sample_traces" / "decode_eager.sqlite"
QUESTION = ("idle", "--cache", "--format", "csv")
FAILED = {1, 3, 4}


class Place:
    """A trace in a folder of its own, with a cache folder and one for temporary files."""

    def __init__(self, trace: Path, work: Path) -> None:
        self.trace, self.work = work / "trace.sqlite", work
        self.cache, self.temporary = work / "cache", work / "tmp"
        self.temporary.mkdir()
        os.link(trace, self.trace) if trace.stat().st_dev == work.stat().st_dev else shutil.copyfile(trace, self.trace)

    def start(self, *before: str, question: tuple[str, ...] = QUESTION) -> subprocess.Popen[str]:
        """Ask; `before` is what the command is started with."""
        name, *rest = question
        kept = {**os.environ, "NSYS_INSIGHT_CACHE_DIR": str(self.cache), "TMPDIR": str(self.temporary)}
        return subprocess.Popen(
            [*before, *COMMAND, name, str(self.trace), *rest], env=kept, cwd=self.work,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def ask(self, *before: str, question: tuple[str, ...] = QUESTION) -> tuple[int, str, str]:
        """Ask, and return the exit code, and what it said on stdout and stderr."""
        process = self.start(*before, question=question)
        out, err = process.communicate()
        return process.returncode, out, err

    @property
    def left(self) -> list[str]:
        """What lies around that a command removes when it ends."""
        return [
            path.name for folder in (self.cache, self.temporary) if folder.is_dir()
            for path in folder.iterdir() if "nsys-insight-" in path.name
        ]  # fmt: skip

    def forget(self) -> None:
        """Empty the cache."""
        shutil.rmtree(self.cache, ignore_errors=True)


class Figures:
    """How commands ended, and what was wrong."""

    def __init__(self, right: str) -> None:
        self.right, self.codes, self.wrong = right, Counter[int](), list[str]()

    def judge(self, what: str, ended: tuple[int, str, str], *, must: bool = False) -> None:
        """Hold an outcome against what must be; `must` if the answer has to be there."""
        code, out, err = ended
        self.codes[code] += 1
        if "Traceback" in err or (code and not ("error: " in err or code < 0)):
            self.wrong.append(f"{what}: {code}: {err[-700:]}")
        elif not code and out != self.right:
            self.wrong.append(f"{what}: another answer: {_difference(self.right, out)}")
        elif code and (must or code not in FAILED):
            self.wrong.append(f"{what}: {code}: {err[-300:]}")

    def __str__(self) -> str:
        ended = ", ".join(f"{count} ended with {code}" for code, count in sorted(self.codes.items()))
        return f"{ended}; {len(self.wrong)} wrong" + "".join(f"\n    {each}" for each in self.wrong[:10])


def _difference(right: str, wrong: str) -> str:
    lines = difflib.unified_diff(right.splitlines(), wrong.splitlines(), n=0, lineterm="")
    return " | ".join(list(lines)[2:])[:600]


def at_once(place: Place, figures: Figures, times: int) -> None:
    """Eight processes on one cold cache."""
    for turn in range(max(1, times // 10)):
        place.forget()
        running = [place.start() for _ in range(8)]
        for number, process in enumerate(running):
            out, err = process.communicate()
            figures.judge(f"turn {turn}, process {number}", (process.returncode, out, err), must=True)
        if place.left:
            figures.wrong.append(f"turn {turn}: left {place.left}")


def killed(place: Place, figures: Figures, times: int) -> None:
    """kill -9 at moments spread over a run, then the same question."""
    place.forget()
    started = time.monotonic()
    place.ask()
    whole_s = time.monotonic() - started
    for turn in range(times):
        place.forget()
        process = place.start()
        time.sleep(whole_s * (turn + 0.5) / times)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        figures.judge(f"killed at {turn / times:.0%}", place.ask(), must=True)
        if place.left:
            figures.wrong.append(f"killed at {turn / times:.0%}: left {place.left}")


def no_room(place: Place, figures: Figures, times: int) -> None:
    """Small disks for cache and temporary files: for root a tmpfs, else a limit for how large a file may be."""
    size = place.trace.stat().st_size
    for turn in range(times):
        room = int(size * 1.2 * (turn + 0.5) / times)
        place.forget()
        with _small_disk(place, room) as before:
            figures.judge(f"{room // 1000} kB", place.ask(*before))
        if place.left:
            figures.wrong.append(f"{room // 1000} kB: left {place.left}")
    place.forget()
    figures.judge("with room again", place.ask(), must=True)


@contextmanager
def _small_disk(place: Place, room: int) -> Iterator[tuple[str, ...]]:
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


def replaced(place: Place, figures: Figures, times: int) -> None:
    """The trace is replaced by itself in another shape while it is read; the answer is right, or none."""
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


def clock(place: Place, figures: Figures, times: int) -> None:
    """What was made when the clock was a year ahead, or behind."""
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
        if place.left:
            figures.wrong.append(f"turn {turn}: left {place.left}")


KINDS: dict[str, Callable[[Place, Figures, int], None]] = {
    "at_once": at_once, "killed": killed, "no_room": no_room, "replaced": replaced, "clock": clock,
}  # fmt: skip


def main() -> None:
    """Run all kinds, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path, nargs="?", default=SAMPLE)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--only", choices=KINDS)
    asked = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as work:
        place = Place(asked.trace.resolve(), Path(work))
        code, right, err = place.ask(question=("idle", "--no-cache", "--format", "csv"))
        if code:
            sys.exit(err)
        for name, kind in KINDS.items():
            if asked.only in (None, name):
                started, figures = time.monotonic(), Figures(right)
                kind(place, figures, asked.times)
                wrong += len(figures.wrong)
                print(f"{name}, {(time.monotonic() - started) / 60:.1f} minutes: {figures}", flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
