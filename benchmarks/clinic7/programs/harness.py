"""Time or profile the steps of a program of this set: python NAME.py ailing|cured [--profile STEPS]."""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

Step = Callable[[int], None]

WARM_UP_S = 0.6
ROUND_S = 0.6


def mark_profile(*, start: bool) -> None:
    """Start or stop the profile by the CUDA library of the process."""
    name = "ProfilerStart" if start else "ProfilerStop"
    if "cupy" in sys.modules:  # CuPy holds a runtime of its own
        getattr(sys.modules["cupy"].cuda.runtime, name[0].lower() + name[1:])()
        return
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if "libcudart" in line:
            getattr(ctypes.CDLL(line.split()[-1]), f"cuda{name}")()
            return
    getattr(ctypes.CDLL("libcuda.so.1"), f"cu{name}")()


class Build(Protocol):
    """What makes the step of a variant."""

    def __call__(self, *, ailing: bool) -> Step:
        """Return the step."""


def run(build: Build, wait: Callable[[], None]) -> None:
    """Build the variant of the command line. Print the milliseconds of a step, or run a few steps to be profiled."""
    parser = argparse.ArgumentParser()
    parser.add_argument("variant", choices=["ailing", "cured"])
    parser.add_argument("--profile", type=int, default=0, metavar="STEPS")
    arguments = parser.parse_args()
    step = build(ailing=arguments.variant == "ailing")
    number = 0
    start = time.perf_counter()
    while number < 4 or time.perf_counter() - start < WARM_UP_S:  # at least four steps, however slow
        step(number)
        wait()
        number += 1
    if arguments.profile:
        wait()
        mark_profile(start=True)
        for _ in range(arguments.profile):
            step(number)
            number += 1
        wait()
        mark_profile(start=False)
        return
    rounds = []
    for _ in range(2):
        count = 0
        start = time.perf_counter()
        while count < 3 or time.perf_counter() - start < ROUND_S:
            step(number)
            number += 1
            count += 1
            if count % 4 == 0:
                wait()  # the host runs ahead by four steps at most
        wait()
        rounds.append(1000 * (time.perf_counter() - start) / count)
    sys.stdout.write(f"{min(rounds):.3f} ms ({rounds[0]:.3f}, {rounds[1]:.3f})\n")
