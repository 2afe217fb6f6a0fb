"""What DuckDB may use of the machine: threads, and the memory that queries hold before they spill to disk."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MB = 10**6
# Measured on 6.5 million kernels: `diagnose`, `report` and `syncs` then take 1.4 GB at most for the whole process.
_BASE = 800 * _MB
# More threads scan an export in place faster (`launches`: 3.1 s with four, 2.0 s with eight). What facts do is to read
# and write memory, which on a server with 16 cores eight did no faster than four, with a third more memory.
_MOST_THREADS, _MOST_OF_COPY = 8, 4
# Of a small machine's memory, queries hold no more than this share, but what any report needs.
_SHARE, _LEAST = 0.25, 256 * _MB
# Smaller files are answered as fast by one thread, and others only cost the machine: of `diagnose` on a sample trace, a
# quarter of its CPU time.
_SMALL = 16 * _MB


@dataclass(frozen=True)
class Limits:
    """The user's limits; None leaves the choice to `settled`.

    `memory` is a size as DuckDB reads it, such as ``"2GB"``.
    """

    memory: str | None = None
    threads: int | None = None
    widened: bool = False

    @property
    def settled(self) -> tuple[str, int]:
        """The limits that hold: memory and threads."""
        threads = self.threads or min(_cores(), _MOST_THREADS)
        if self.memory:
            return self.memory, threads
        if self.widened:
            return f"{min(4 * _BASE, max(_BASE, ram() // 2)) // _MB}MB", min(threads, 2)
        # Where there is less, fewer threads share it: spilling is slow, and not to fit is worse.
        return f"{max(min(_BASE, int(_SHARE * ram())), _LEAST) // _MB}MB", threads

    @property
    def of_copy(self) -> Limits:
        """The limits where a copy of the export is made or asked."""
        return replace(self, threads=self.threads or min(_cores(), _MOST_OF_COPY))

    def wider(self) -> Limits | None:
        """The limits for a query that did not fit: fewer threads and more memory; None where the user has set it."""
        return None if self.memory or self.widened else replace(self, widened=True)


def suited(files: Sequence[Path], memory: str | None, threads: int | None) -> Limits:
    """The user's limits, and one thread for files so small that more gain nothing."""
    return Limits(memory, threads or (1 if are_small(files) else None))


def are_small(files: Sequence[Path]) -> bool:
    """Whether questions about files are nearly all planning."""
    return all(file.is_file() for file in files) and sum(file.stat().st_size for file in files) < _SMALL


def _cores() -> int:
    """The processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ram() -> int:
    """The machine's memory in bytes; of a machine that does not say, 8 GB."""
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 8_000 * _MB
