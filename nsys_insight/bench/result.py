"""What a benchmark measured: series by metric, of one command or of two, and under which conditions; saved as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.compare.benchmark_formats import BENCH_SCHEMA
from nsys_insight.compare.direction import Better  # noqa: TC001 - a type of a field
from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCHEMA = f"{BENCH_SCHEMA}/1"


@dataclass(frozen=True)
class Series:
    """The measurements of one metric.

    Attributes:
        name: The metric.
        unit: Its unit; empty if nobody said.
        better: Whether "higher" or "lower" is better; None if nobody says.
        values: A value for each repetition, in their order.
        clocks: The SM clock in each repetition, MHz; empty or None where it was not read.
    """

    name: str
    unit: str
    better: Better | None
    values: tuple[float, ...]
    clocks: tuple[float | None, ...] = ()

    @property
    def label(self) -> str:
        """The name with its unit."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


@dataclass(frozen=True)
class Side:
    """What one command, or one file, measured."""

    label: str
    command: str
    series: tuple[Series, ...]
    parameters: dict[str, str] = field(default_factory=dict)

    def metric(self, name: str) -> Series | None:
        """A series by its name."""
        return next((one for one in self.series if one.name == name), None)


@dataclass(frozen=True)
class Bench:
    """What was measured.

    Attributes:
        sides: One side, or before and after.
        turns: Whether the two took turns.
        conditions: GPUs, clocks, driver, commit: what is the same for both.
        before: The GPUs before the first repetition; empty where they were not read.
        after: The GPUs after the last.
        notes: What must be known beside the numbers.
        seconds: How long it took.
    """

    sides: tuple[Side, ...]
    turns: bool = False
    conditions: dict[str, str] = field(default_factory=dict)
    before: tuple[dict[str, Any], ...] = ()
    after: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def side(self) -> Side:
        """The only side, or the one after."""
        return self.sides[-1]


def to_json(bench: Bench) -> str:
    """Write a benchmark as JSON, to be read by `from_json`, and by `diff`."""
    return json.dumps({"schema": SCHEMA, **asdict(bench)}, allow_nan=False, indent=1) + "\n"


def from_json(text: str, path: Path) -> Bench:
    """Read what `to_json` wrote.

    Raises:
        UsageError: It is something else, of another version, or damaged.
    """
    try:
        found = json.loads(text)
        if found.pop("schema") != SCHEMA:
            raise KeyError("schema")  # noqa: TRY301 - one sentence for all that may be wrong
        sides = tuple(
            Side(**{**side, "series": tuple(Series(**_tuples(one, "values", "clocks")) for one in side["series"])})
            for side in found["sides"]
        )
        return Bench(**{**_tuples(found, "before", "after", "notes"), "sides": sides})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{path} is not a benchmark file of this version: {error}",
            f"measure again: nsys-insight bench -o {path} -- COMMAND",
        ) from None


def _tuples(found: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: tuple(value) if name in names else value for name, value in found.items()}


def differing(before: Side, after: Side, vary: Sequence[str] = ()) -> dict[str, tuple[str, str]]:
    """The parameters of the workload in which two sides differ, but for those that are meant to."""
    names = dict.fromkeys([*before.parameters, *after.parameters])
    pairs = {name: (before.parameters.get(name, "-"), after.parameters.get(name, "-")) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1] and name not in vary}
