"""Repeat a command, or two in turns, until the interval is narrow or the budget is spent."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nsys_insight import progress
from nsys_insight.bench import programs
from nsys_insight.bench.conditions import Machine, git_commit, gpu_notes
from nsys_insight.bench.result import Bench, Series, Side
from nsys_insight.bench.statistics import LEAST_REPETITIONS, center
from nsys_insight.bench.verdict import changed
from nsys_insight.compare.benchmark_formats import Printed, Reading, parse_text
from nsys_insight.compare.direction import direction
from nsys_insight.errors import InsightError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_insight.bench.conditions import Watch
    from nsys_insight.compare.direction import Better

Command = str | list[str]
WALL = "wall"
_HINT = "print lines such as RESULT decode 412.5 tok/s, or JSON, or give --metric 'NAME[UNIT]=REGEX'"


@dataclass(frozen=True)
class Plan:
    """How to measure.

    Attributes:
        warmup: Runs of each command that do not count.
        least: Repetitions at the least; the budget may not cut these.
        most: Repetitions at the most.
        budget_s: When this is spent, no repetition begins.
        precision: Half of the interval's width, as a share, at which it is narrow.
        timeout_s: How long one run may take; None is any time.
        metric: The metric that decides; None is the first.
        patterns: By metric a regular expression and the unit, to find it in what is printed.
        output: A file that the command writes, in place of what it prints.
        better: By metric which way it should go, where the user says so.
        parameters: Of the workload, as the user says.
    """

    warmup: int = 1
    least: int = 10
    most: int = 50
    budget_s: float = 120.0
    precision: float = 0.01
    timeout_s: float | None = None
    metric: str | None = None
    patterns: dict[str, tuple[str, str]] = field(default_factory=dict)
    output: Path | None = None
    better: dict[str, Better] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)


@dataclass
class _Collected:
    """What one command measured so far: values and units by metric, and the clock of each repetition."""

    values: dict[str, list[float]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    clocks: list[float | None] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)

    def add(self, printed: Printed, clock: float | None) -> None:
        """Take one repetition; of what it measured several times, the mean.

        Raises:
            InsightError: It measured other things than those before, or no number: turns could not be compared.
        """
        names = {one.name for one in printed.readings}
        if self.values and names != self.values.keys():
            odd = min(names ^ self.values.keys())
            which = "was not" if odd in self.values else "was"
            raise InsightError(
                f"{odd} {which} measured in repetition {len(self.clocks) + 1}, unlike before", "check its output"
            )
        for one in printed.readings:
            if not all(map(math.isfinite, one.values)):
                raise InsightError(
                    f"{one.name} is not a number in repetition {len(self.clocks) + 1}", "check its output"
                )
        for one in printed.readings:
            self.values.setdefault(one.name, []).append(sum(one.values) / len(one.values))
            self.units.setdefault(one.name, one.unit)
        self.clocks.append(clock)
        self.parameters |= printed.parameters


def measure(commands: Sequence[tuple[str, Command]], plan: Plan) -> Bench:
    """Measure one command, or two that take turns.

    In every other turn the second goes first: what drifts slowly then slows both alike.

    Args:
        commands: Their labels and what is run.
        plan: How.

    Raises:
        InsightError: A command failed, or printed nothing that is known.
        UsageError: There is no such program.
    """
    here, begin = Machine.detect(), time.monotonic()
    with progress.at("warming up") as task:
        for _ in range(plan.warmup):
            for _, command in commands:
                _one(command, plan, here)
        before = here.states()
        collected = [_Collected() for _ in commands]
        slowed: set[str] = set()
        for turn in range(plan.most):
            if turn >= plan.least and (time.monotonic() - begin > plan.budget_s or _is_narrow(collected, plan)):
                break
            task.text = f"measuring: {turn + 1} of {plan.least} to {plan.most}"
            order = range(len(commands)) if turn % 2 == 0 else reversed(range(len(commands)))
            for at in order:
                printed, watch = _one(commands[at][1], plan, here)
                collected[at].add(printed, watch.clock)
                slowed |= watch.slowed
    after = here.states()
    notes = [here.note] if here.note else []
    notes += gpu_notes(before, after)
    if slowed:
        notes.append(f"the GPU was throttled while it ran: {', '.join(sorted(slowed))}")
    count = len(collected[0].clocks)
    if not _is_narrow(collected, plan) and count < plan.most:
        notes.append(f"the budget of {plan.budget_s:g} s was spent before the interval was narrow (--budget)")
    elif not _is_narrow(collected, plan):
        notes.append(f"after {count} repetitions the interval is not narrow yet (--most)")
    return Bench(
        tuple(
            _side(label, programs.shown(command), found, plan)
            for (label, command), found in zip(commands, collected, strict=True)
        ),
        turns=len(commands) > 1,
        conditions={**here.conditions(), **git_commit()},
        before=before,
        after=after,
        notes=tuple(notes),
        seconds=time.monotonic() - begin,
    )


def read(paths: Sequence[Path], plan: Plan) -> Bench:
    """Read what a benchmark printed before: one file, or one for each repetition.

    Raises:
        UsageError: A file cannot be read, or holds nothing that is known.
    """
    collected = _Collected()
    for path in paths:
        try:
            printed = parse_text(path.read_text(encoding="utf-8", errors="replace"), plan.patterns)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}", "name what a benchmark printed") from None
        if not printed.readings:
            raise UsageError(f"{path} has no measurements in a known format", _HINT)
        if len(paths) == 1:  # each of its values is a repetition
            collected.values = {one.name: list(one.values) for one in printed.readings}
            collected.units = {one.name: one.unit for one in printed.readings}
            collected.parameters = printed.parameters
        else:
            collected.add(printed, None)
    label = paths[0].name if len(paths) == 1 else f"{len(paths)} files"
    return Bench((_side(label, "", collected, plan),))


def _one(command: Command, plan: Plan, here: Machine) -> tuple[Printed, Watch]:
    """Run a command once, and find what it measured."""
    if plan.output:
        with suppress(OSError):
            plan.output.unlink()  # what an earlier run wrote is not this one's
    with here.watched() as watch:
        ran = programs.run(command, plan.timeout_s)
    if ran.code != 0:
        raise programs.failed(command, ran)
    if plan.output:
        try:
            text = plan.output.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise InsightError(
                f"{programs.shown(command)} did not write {plan.output}: {error.strerror}", "check --results"
            ) from None
        printed = parse_text(text, plan.patterns)
    else:
        printed = parse_text(ran.output, plan.patterns)
        if not printed.readings:
            printed = Printed(parse_text(ran.errors, plan.patterns).readings, printed.parameters)
    missing = [name for name in plan.patterns if name not in {one.name for one in printed.readings}]
    if missing or (plan.output and not printed.readings):
        what = f"nothing that --metric {missing[0]} matches" if missing else "no measurements in a known format"
        raise InsightError(f"{programs.shown(command)} printed {what}: {ran.last_words}", _HINT)
    if not printed.readings:
        printed = Printed((Reading(WALL, "s", (ran.seconds,)),), printed.parameters)
    return printed, watch


def _is_narrow(collected: Sequence[_Collected], plan: Plan) -> bool:
    """Whether the interval of what decides is as narrow as wanted."""
    decides = [one.values.get(deciding(list(one.values), one.units, plan) or "", []) for one in collected]
    if any(len(values) < LEAST_REPETITIONS for values in decides):
        return False
    if len(decides) == 2:
        change = changed(decides[0], decides[1], turns=True)
        return change is not None and change.reach <= plan.precision
    found = center(decides[0])
    return found.reach <= plan.precision * abs(found.middle)


def deciding(names: Sequence[str], units: dict[str, str], plan: Plan) -> str | None:
    """Which metric decides: the one that the user names, else the first of which it is known what is better."""
    if plan.metric:
        return plan.metric if plan.metric in names else None
    known = [name for name in names if plan.better.get(name) or direction(name, units.get(name, ""))]
    return next(iter(known or names), None)


def _side(label: str, command: str, found: _Collected, plan: Plan) -> Side:
    first = deciding(list(found.values), found.units, plan)
    if plan.metric and first is None:
        raise UsageError(f"there is no metric {plan.metric!r}", f"choose one of: {', '.join(found.values)}")
    names = sorted(found.values, key=lambda name: name != first)
    series = tuple(
        Series(
            name,
            found.units[name],
            plan.better.get(name) or direction(name, found.units[name]),
            tuple(found.values[name]),
            tuple(found.clocks) if any(found.clocks) else (),
        )
        for name in names
    )
    return Side(label, command, series, {**found.parameters, **plan.parameters})
