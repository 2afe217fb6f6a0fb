"""Time, profile or save the steps of a program of this set: NAME.py ailing|cured [--profile STEPS] [--save FILE]."""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

Step = Callable[[int], Any]  # what it returns is compared between the variants

WARM_UP = 10
LIMIT = 100_000


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


def save(result: Any, path: str) -> None:
    """Write up to a hundred thousand evenly spaced numbers of a result as FP32."""
    if hasattr(result, "detach"):  # PyTorch
        result = result.detach().float().cpu().numpy()
    elif hasattr(result, "get"):  # CuPy
        result = result.get()
    numbers = np.asarray(result)
    if np.iscomplexobj(numbers):
        numbers = np.stack([numbers.real, numbers.imag], axis=-1)
    numbers = numbers.ravel()
    numbers[:: max(1, numbers.size // LIMIT)].astype(np.float32).tofile(path)


class Build(Protocol):
    """What makes the step of a variant."""

    def __call__(self, *, ailing: bool) -> Step:
        """Return the step."""


def run(build: Build, wait: Callable[[], None], steps: int) -> None:
    """Build the variant of the command line. Print the milliseconds of a step, or run a few steps to be profiled.

    All counts are fixed, so that the processes of a program with two of them take the same steps.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("variant", choices=["ailing", "cured"])
    parser.add_argument("--profile", type=int, default=0, metavar="STEPS")
    parser.add_argument("--save", metavar="FILE")
    arguments = parser.parse_args()
    step = build(ailing=arguments.variant == "ailing")
    first = os.environ.get("RANK", "0") == "0"
    result = step(0)
    if arguments.save and first:
        save(result, arguments.save)
    number = 0
    for _ in range(WARM_UP):
        number += 1
        step(number)
    wait()
    if arguments.profile:
        mark_profile(start=True)
        for _ in range(arguments.profile):
            number += 1
            step(number)
        wait()
        mark_profile(start=False)
        return
    rounds = []
    for _ in range(2):
        start = time.perf_counter()
        for count in range(steps // 2):
            number += 1
            step(number)
            if count % 4 == 3:
                wait()  # the host runs ahead by four steps at most
        wait()
        rounds.append(1000 * (time.perf_counter() - start) / (steps // 2))
    if first:
        sys.stdout.write(f"{min(rounds):.3f} ms ({rounds[0]:.3f}, {rounds[1]:.3f})\n")
