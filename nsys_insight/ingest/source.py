"""An opened trace: where its rows are, and how rows are told that cannot be true."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsys_insight.ingest.extents import Extents

# What a copy leaves in the export: call stacks, which few questions read, and only for a few calls; and strings, which
# call stacks refer to.
NOT_COPIED = frozenset({"CUDA_CALLCHAINS", "OSRT_CALLCHAINS", "SAMPLING_CALLCHAINS", "StringIds"})
Window = tuple[int, int]
# From 1897 to 2043 where times are of the epoch.
ANY_TIME: Window = (-(1 << 61), 1 << 61)


@dataclass(frozen=True)
class Screen:
    """How rows are told that cannot be true: their times are in the `window`; `looked` if all were looked at."""

    window: Window = ANY_TIME
    looked: bool = False


@dataclass(frozen=True)
class Stored:
    """Facts that were found before and lie beside a trace: relations by table; tables without rows are left out.

    `definitions` stands for what said then what facts are (`facts.file.definitions`).
    """

    definitions: str
    tables: dict[str, str]


@dataclass(frozen=True)
class Export:
    """A SQLite export that is attached as a catalog, and which tables are read from it."""

    catalog: str
    file: Path
    tables: frozenset[str]


@dataclass(frozen=True)
class Source:
    """An opened trace: where each raw table's rows are, and which columns they have.

    `find_extents` tells when the events of big tables begin and end. `export` is where rows of some of the tables can
    be looked up: of all, where it is scanned in place, or of those that a copy left there. `screen` tells rows that
    cannot be true. `facts` are those that lie beside the rows.
    """

    relations: dict[str, str]
    columns: dict[str, set[str]]
    find_extents: Callable[[], Extents] = dict
    export: Export | None = None
    screen: Screen = field(default_factory=Screen)
    facts: Stored | None = None

    @cached_property
    def extents(self) -> Extents:
        """When the events of big tables begin and end, as far as that can be true; looked for when it is needed."""
        low, high = self.screen.window
        return {
            table: (start, end)
            for table, (start, end) in self.find_extents().items()
            if start is None or end is None or low <= start <= end <= high
        }
