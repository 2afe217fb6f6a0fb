"""Arguments, timing and capture marks that all programs share."""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

SECONDS = 1.2  # that a measurement takes, unless --steps says how many steps
turns: list[TextIO] = []  # held until the program ends


def arguments(text: str | None) -> argparse.Namespace:
    """Read the command line; with TURN_FILE, wait until no other program uses the GPU."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variant", choices=["ailing", "cured"])
    parser.add_argument("--steps", type=int, default=0, help="steps to measure; 0: about a second")
    parser.add_argument("--profile", type=int, default=0, metavar="STEPS", help="run this many steps for a profiler")
    args = parser.parse_args()
    # Rank 1 waits for rank 0 anyway.
    if os.environ.get("RANK") != "1" and (turn := os.environ.get("TURN_FILE")):
        turns.append(Path(turn).open("a"))  # noqa: SIM115
        fcntl.flock(turns[0], fcntl.LOCK_EX)
    return args


def profiler(verb: str) -> None:
    """Call cudaProfilerStart or cudaProfilerStop."""
    libraries = [Path(place) / "nvidia" / "cu13" / "lib" / "libcudart.so.13" for place in sys.path if place]
    name = next((str(path) for path in libraries if path.exists()), "libcudart.so.13")
    getattr(ctypes.CDLL(name), f"cudaProfiler{verb}")()


def report(seconds: float, steps: int) -> None:
    """Print the result as one line of JSON."""
    print(json.dumps({"ms_per_step": round(seconds * 1e3 / steps, 5), "steps": steps}), flush=True)


def measure(
    args: argparse.Namespace,
    step: Callable[[int], object],
    synchronize: Callable[[], object],
    *,
    warmup: int = 5,
    is_marked: bool = True,
) -> None:
    """Time many steps, synchronizing only at the ends, or run a few for a profiler."""
    for index in range(warmup):
        step(index)
    synchronize()
    if args.profile:
        if is_marked:
            profiler("Start")
        for index in range(warmup, warmup + args.profile):
            step(index)
        synchronize()
        if is_marked:
            profiler("Stop")
        return
    count, first = args.steps, warmup
    if not count:
        begin = time.perf_counter()
        for index in range(first, first + 5):
            step(index)
        synchronize()
        first += 5
        count = max(10, min(20000, int(SECONDS * 5 / (time.perf_counter() - begin))))
    begin = time.perf_counter()
    for index in range(first, first + count):
        step(index)
    synchronize()
    report(time.perf_counter() - begin, count)
