"""The result of a benchmark: series by metric of one or two commands, and the conditions. It is saved as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nsys_insight.compare.benchmark_formats import BENCH_SCHEMA
from nsys_insight.compare.direction import Better  # noqa: TC001 - a type of a field
from nsys_insight.errors import UsageError
from nsys_insight.records import RecordError, make_record, parse_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCHEMA = f"{BENCH_SCHEMA}/1"


@dataclass(frozen=True)
class Series:
    """The measurements of one metric.

    Attributes:
        name: The metric.
        unit: Its unit; empty if unknown.
        better: Whether "higher" or "lower" is better; None if unknown.
        values: A value for each repetition, in order.
        clocks: SM clock in each repetition, in MHz; empty or None if it was not read.
    """

    name: str
    unit: str
    better: Better | None
    values: tuple[float, ...]
    clocks: tuple[float | None, ...] = ()

    @property
    def label(self) -> str:
        """Return the name with its unit."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


@dataclass(frozen=True)
class Side:
    """The measurements of one command or one file."""

    label: str
    command: str
    series: tuple[Series, ...]
    parameters: dict[str, str] = field(default_factory=dict)

    def metric(self, name: str) -> Series | None:
        """Return the series of a metric; None if it was not measured."""
        return next((series for series in self.series if series.name == name), None)


@dataclass(frozen=True)
class Bench:
    """A finished benchmark.

    Attributes:
        sides: One side, or before and after.
        turns: Whether the two sides took turns.
        conditions: Conditions of both sides: GPUs, clocks, driver, commit.
        before: State of the GPUs before the first repetition; empty if it was not read.
        after: State of the GPUs after the last repetition.
        notes: Notes for the reader of the numbers.
        seconds: Total time in seconds.
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
        """Return the only side, or the side after the change."""
        return self.sides[-1]


def to_json(bench: Bench) -> str:
    """Return a benchmark as JSON. `from_json` and the command `diff` read it."""
    return json.dumps({"schema": SCHEMA, **asdict(bench)}, allow_nan=False, indent=1) + "\n"


def from_json(text: str, path: Path) -> Bench:
    """Read the JSON of `to_json`.

    Raises:
        UsageError: The text is not a benchmark, of another version, or damaged.
    """
    try:
        data = parse_json(text)
        if not isinstance(data, dict) or data.pop("schema", None) != SCHEMA:
            raise RecordError(f"its schema is not {SCHEMA}")  # noqa: TRY301 - one message for all errors
        return make_record(Bench, data)
    except RecordError as error:
        raise UsageError(
            f"{path} is not a benchmark file of this version: {error}",
            f"measure again: nsys-insight bench -o {path} -- COMMAND",
        ) from None


def compare_with_old(old: Bench, new: Bench) -> Bench:
    """Combine an earlier benchmark (before) with a new one (after). Conditions of the machine become parameters."""
    names = [name for name in ("gpu", "driver", "cuda", "application_clock_mhz") if name in new.conditions]
    before, after = (
        replace(
            bench.side, label=label, parameters=bench.side.parameters | {n: bench.conditions.get(n, "-") for n in names}
        )
        for label, bench in (("before", old), ("after", new))
    )
    return replace(new, sides=(before, after), turns=False)


def list_different_parameters(before: Side, after: Side, vary: Sequence[str] = ()) -> dict[str, tuple[str, str]]:
    """Return the workload parameters that differ between two sides, except the names in `vary`."""
    names = dict.fromkeys([*before.parameters, *after.parameters])
    pairs = {name: (before.parameters.get(name, "-"), after.parameters.get(name, "-")) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1] and name not in vary}
