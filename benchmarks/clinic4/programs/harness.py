"""Arguments, timing and capture marks that the Python programs share."""

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

SECONDS = 0.6  # that a round takes; two rounds, the faster one counts
turns: list[TextIO] = []  # held until the program ends


def arguments(text: str | None) -> argparse.Namespace:
    """Read the command line; with TURN_FILE, wait until no other program uses the GPU."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("variant", choices=["ailing", "cured"])
    parser.add_argument("--profile", type=int, default=0, metavar="STEPS", help="run this many steps for a profiler")
    args = parser.parse_args()
    if turn := os.environ.get("TURN_FILE"):
        turns.append(Path(turn).open("a"))  # noqa: SIM115
        fcntl.flock(turns[0], fcntl.LOCK_EX)
    return args


def profiler(verb: str) -> None:
    """Call cudaProfilerStart or cudaProfilerStop."""
    libraries = [Path(place) / "nvidia" / "cu13" / "lib" / "libcudart.so.13" for place in sys.path if place]
    name = next((str(path) for path in libraries if path.exists()), "libcudart.so.13")
    getattr(ctypes.CDLL(name), f"cudaProfiler{verb}")()


def measure(
    args: argparse.Namespace,
    step: Callable[[int], object],
    synchronize: Callable[[], object],
    warmup: int = 5,
) -> None:
    """Time two rounds of steps, synchronizing only at their ends, or run a few steps for a profiler."""
    position = 0

    def run(count: int) -> float:
        nonlocal position
        begin = time.perf_counter()
        for index in range(position, position + count):
            step(index)
        synchronize()
        position += count
        return (time.perf_counter() - begin) / count

    run(warmup)
    if args.profile:
        profiler("Start")
        run(args.profile)
        profiler("Stop")
        return
    count = max(3, min(5000, int(SECONDS / run(3))))
    seconds = min(run(count), run(count))
    print(json.dumps({"ms_per_step": round(seconds * 1e3, 5), "steps": count}), flush=True)
