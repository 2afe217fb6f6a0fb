"""An opened trace: where its rows are, and how its invalid rows are detected."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsys_insight.ingest.time_bounds import TimeBounds

# The tables that a copy leaves in the export: call stacks, which few queries read, and only for a few calls, and
# strings, which call stacks refer to.
NOT_COPIED = frozenset({"CUDA_CALLCHAINS", "OSRT_CALLCHAINS", "SAMPLING_CALLCHAINS", "StringIds"})
Window = tuple[int, int]
# From 1897 to 2043, if times count from the epoch.
ANY_TIME: Window = (-(1 << 61), 1 << 61)


@dataclass(frozen=True)
class RowChecks:
    """How invalid rows are detected: by times outside `window`. `is_filtered` if they are already left out."""

    window: Window = ANY_TIME
    is_filtered: bool = False


class SharedPid(NamedTuple):
    """One of several processes with the same pid: its `process_id` in the model, its pid, its id as nsys packs it.

    `full_id` is `globalPid >> 24`. `name` is the name of the executable, "" if it is not recorded.
    """

    process_id: int
    pid: int
    full_id: int
    name: str


@dataclass(frozen=True)
class StoredFacts:
    """Facts that are stored next to a trace: relations by table; empty tables are missing.

    `definitions` is the digest of the definitions of facts (`facts.store.digest_definitions`).
    """

    definitions: str
    tables: dict[str, str]


@dataclass(frozen=True)
class Export:
    """A SQLite export that is attached as a catalog, and the tables that are read from it."""

    catalog: str
    file: Path
    tables: frozenset[str]


@dataclass(frozen=True)
class Source:
    """An opened trace: the relation of each raw table, and its columns.

    `find_time_bounds` returns the time bounds of big tables. `export` is where rows can be looked up: rows of all
    tables if it is scanned in place, or of those that a copy left there. `row_checks` detects invalid rows. `facts` are
    stored next to the rows. `shared_pids` are the processes whose pid another process of the trace has too.
    `time_shift_ns` was subtracted from all times.
    """

    relations: dict[str, str]
    columns: dict[str, set[str]]
    find_time_bounds: Callable[[], TimeBounds] = dict
    export: Export | None = None
    row_checks: RowChecks = field(default_factory=RowChecks)
    facts: StoredFacts | None = None
    shared_pids: tuple[SharedPid, ...] = ()
    time_shift_ns: int = 0

    @cached_property
    def time_bounds(self) -> TimeBounds:
        """Return the valid time bounds of big tables; they are read on first use."""
        low, high = self.row_checks.window
        return {
            table: (start, end)
            for table, (start, end) in self.find_time_bounds().items()
            if start is None or end is None or low <= start <= end <= high
        }
