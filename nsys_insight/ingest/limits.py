"""How many threads DuckDB may use, and how much memory queries may take before they spill to disk."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MB = 10**6
# Measured on 6.5 million kernels: with this limit `diagnose`, `report` and `syncs` take at most 1.4 GB for the process.
_BASE_BYTES = 800 * _MB
# More threads scan an export in place faster (`launches`: 3.1 s with four, 2.0 s with eight). Facts mostly read and
# write memory: on a server with 16 cores eight threads are no faster than four, and take a third more memory.
_MAX_THREADS, _MAX_COPY_THREADS = 8, 4
# On a small machine, queries get this share of the memory, but at least the amount that every report needs.
_MEMORY_SHARE, _MIN_BYTES = 0.25, 256 * _MB
# On smaller files one thread is as fast. More threads cost CPU time: a quarter of it for `diagnose` on a sample trace.
_SMALL_BYTES = 16 * _MB


@dataclass(frozen=True)
class Limits:
    """The user's limits; `effective` fills in the missing ones.

    `memory` is a size as DuckDB reads it, such as ``"2GB"``. `is_widened` is set for a query that did not fit
    (`widen`).
    """

    memory: str | None = None
    threads: int | None = None
    is_widened: bool = False

    @property
    def effective(self) -> tuple[str, int]:
        """Return the limits to use: memory and threads."""
        threads = self.threads or min(_count_cores(), _MAX_THREADS)
        if self.memory:
            return self.memory, threads
        if self.is_widened:
            return f"{min(4 * _BASE_BYTES, max(_BASE_BYTES, read_total_memory() // 2)) // _MB}MB", min(threads, 2)
        # A smaller limit means more spilling, which is slow. A query that does not fit at all is worse.
        return f"{max(min(_BASE_BYTES, int(_MEMORY_SHARE * read_total_memory())), _MIN_BYTES) // _MB}MB", threads

    @property
    def for_copy(self) -> Limits:
        """Return the limits for making and querying a copy of the export."""
        return replace(self, threads=self.threads or min(_count_cores(), _MAX_COPY_THREADS))

    def widen(self) -> Limits | None:
        """Return limits for a query that did not fit: fewer threads, more memory; None if the user set the memory."""
        return None if self.memory or self.is_widened else replace(self, is_widened=True)


def choose_limits(files: Sequence[Path], memory: str | None, threads: int | None) -> Limits:
    """Return the user's limits, with one thread for small files: more threads gain nothing there."""
    return Limits(memory, threads or (1 if are_small_files(files) else None))


def are_small_files(files: Sequence[Path]) -> bool:
    """Return whether queries on these files spend nearly all of their time on planning."""
    return all(file.is_file() for file in files) and sum(file.stat().st_size for file in files) < _SMALL_BYTES


def _count_cores() -> int:
    """Return the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def read_total_memory() -> int:
    """Return the machine's memory in bytes, or 8 GB if it is unknown."""
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 8_000 * _MB
