"""Repeat a command, or two in turn, until the interval is narrow or the time budget is spent."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nsys_insight import outputs, programs, progress
from nsys_insight.bench.conditions import GpuWatch, Machine, describe_gpu_changes
from nsys_insight.bench.repository import read_git_commit
from nsys_insight.bench.result import Bench, Series, Side
from nsys_insight.bench.statistics import MIN_REPETITIONS, estimate_center
from nsys_insight.bench.verdict import estimate_change
from nsys_insight.compare.benchmark_formats import NAME_HINT, BenchmarkOutput, Reading, parse_text
from nsys_insight.compare.direction import Better, infer_direction
from nsys_insight.errors import InsightError, UsageError, read_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


Command = str | list[str]
WALL = "wall"
_HINT = "print lines such as RESULT decode 412.5 tok/s, or JSON, or give --metric 'NAME[UNIT]=REGEX'"


@dataclass(frozen=True)
class Plan:
    """How to measure.

    Attributes:
        warmup: Number of runs of each command before the measurement.
        min_repetitions: Minimum number of repetitions, also if they exceed the budget.
        max_repetitions: Maximum number of repetitions.
        budget_s: Time budget in seconds. No repetition starts after it is spent.
        precision: Largest half width of a narrow interval, as a share of the center.
        timeout_s: Maximum time of one run in seconds; None for no limit.
        metric: The metric that decides; None for the first one.
        patterns: By metric: a regular expression that finds it in the output, and its unit.
        output: File with the results, if the command writes them to a file instead of stdout.
        better: By metric: whether "higher" or "lower" is better, if the user gave it.
        parameters: Parameters of the workload that the user gave.
    """

    warmup: int = 1
    min_repetitions: int = 10
    max_repetitions: int = 50
    budget_s: float = 120.0
    precision: float = 0.01
    timeout_s: float | None = None
    metric: str | None = None
    patterns: dict[str, tuple[str, str]] = field(default_factory=dict)
    output: Path | None = None
    better: dict[str, Better] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)


@dataclass
class _Measurements:
    """The measurements of one command so far: values and units by metric, and the clock of each repetition."""

    values: dict[str, list[float]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    clocks: list[float | None] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)

    def add(self, benchmark_output: BenchmarkOutput, clock: float | None) -> None:
        """Add one repetition. If it has several values of a metric, add their mean.

        Raises:
            InsightError: The metrics differ from the earlier repetitions, or a value is not finite. Then the
                repetitions cannot be compared.
        """
        names = {reading.name for reading in benchmark_output.readings}
        if self.values and names != self.values.keys():
            differing_name = min(names ^ self.values.keys())
            verb = "was not" if differing_name in self.values else "was"
            raise InsightError(
                f"{differing_name} {verb} measured in repetition {len(self.clocks) + 1}, unlike before",
                "check its output",
            )
        for reading in benchmark_output.readings:
            if not all(map(math.isfinite, reading.values)):
                raise InsightError(
                    f"{reading.name} is not a number in repetition {len(self.clocks) + 1}", "check its output"
                )
        for reading in benchmark_output.readings:
            self.values.setdefault(reading.name, []).append(sum(reading.values) / len(reading.values))
            self.units.setdefault(reading.name, reading.unit)
        self.clocks.append(clock)
        self.parameters |= benchmark_output.parameters


def measure(commands: Sequence[tuple[str, Command]], plan: Plan) -> Bench:
    """Measure one command, or two in turn.

    The order of the two changes with each turn, so that a slow drift affects both equally.

    Args:
        commands: Label and command of each side.
        plan: How to measure.

    Raises:
        InsightError: A command failed, or it printed no measurements in a known format.
        UsageError: A program does not exist.
    """
    machine, start_s = Machine.detect(), time.monotonic()
    with progress.show_task("warming up") as task:
        for _ in range(plan.warmup):
            for _, command in commands:
                _run_once(command, plan, machine)
        before = machine.read_states()
        measurements = [_Measurements() for _ in commands]
        throttle_reasons: set[str] = set()
        for turn in range(plan.max_repetitions):
            if turn >= plan.min_repetitions and (
                time.monotonic() - start_s > plan.budget_s or _is_narrow(measurements, plan)
            ):
                break
            task.text = f"run {turn + 1} (min {plan.min_repetitions}, max {plan.max_repetitions})"
            order = range(len(commands)) if turn % 2 == 0 else reversed(range(len(commands)))
            for index in order:
                benchmark_output, watch = _run_once(commands[index][1], plan, machine)
                measurements[index].add(benchmark_output, watch.max_clock_mhz)
                throttle_reasons |= watch.throttle_reasons
    after = machine.read_states()
    notes = [machine.note] if machine.note else []
    notes += describe_gpu_changes(before, after)
    if throttle_reasons:
        notes.append(f"the GPU was throttled while it ran: {', '.join(sorted(throttle_reasons))}")
    count = len(measurements[0].clocks)
    if not _is_narrow(measurements, plan) and count < plan.max_repetitions:
        notes.append(f"the budget of {plan.budget_s:g} s was spent before the interval was narrow (--budget)")
    elif not _is_narrow(measurements, plan):
        notes.append(f"Interval still wider than ±{100 * plan.precision:g}% after {count} runs (raise --max-runs).")
    return Bench(
        tuple(
            _make_side(label, programs.format_command(command), side_measurements, plan)
            for (label, command), side_measurements in zip(commands, measurements, strict=True)
        ),
        turns=len(commands) > 1,
        conditions={**machine.read_conditions(), **read_git_commit()},
        before=before,
        after=after,
        notes=tuple(notes),
        seconds=time.monotonic() - start_s,
    )


def read(paths: Sequence[Path], plan: Plan) -> Bench:
    """Read files with the output of a benchmark: one file, or one for each repetition.

    Raises:
        UsageError: A file cannot be read, or has no measurements in a known format.
    """
    measurements = _Measurements()
    for path in paths:
        benchmark_output = parse_text(read_text(path, NAME_HINT, "replace"), plan.patterns)
        if not benchmark_output.readings:
            raise UsageError(f"{path} has no measurements in a known format", _HINT)
        if len(paths) == 1:  # each value in the file is a repetition
            measurements.values = {reading.name: list(reading.values) for reading in benchmark_output.readings}
            measurements.units = {reading.name: reading.unit for reading in benchmark_output.readings}
            measurements.parameters = benchmark_output.parameters
        else:
            measurements.add(benchmark_output, None)
    label = paths[0].name if len(paths) == 1 else f"{len(paths)} files"
    return Bench((_make_side(label, "", measurements, plan),))


def _run_once(command: Command, plan: Plan, machine: Machine) -> tuple[BenchmarkOutput, GpuWatch]:
    old_results = _OldResults(plan.output) if plan.output else None
    try:
        return _run_and_read(command, plan, machine, old_results)
    except BaseException:
        if old_results:
            old_results.restore()
        raise


def _run_and_read(
    command: Command, plan: Plan, machine: Machine, old_results: _OldResults | None
) -> tuple[BenchmarkOutput, GpuWatch]:
    with GpuWatch(machine) as watch:
        result = programs.run(command, plan.timeout_s)
    if result.code != 0:
        raise programs.make_command_error(command, result)
    if old_results:
        text = old_results.read_new(programs.format_command(command))
        benchmark_output = parse_text(text, plan.patterns)
    else:
        benchmark_output = parse_text(result.output, plan.patterns)
        if not benchmark_output.readings:
            benchmark_output = BenchmarkOutput(
                parse_text(result.errors, plan.patterns).readings, benchmark_output.parameters
            )
    missing_metrics = [
        name for name in plan.patterns if name not in {reading.name for reading in benchmark_output.readings}
    ]
    if missing_metrics or (plan.output and not benchmark_output.readings):
        problem = (
            f"nothing that --metric {missing_metrics[0]} matches"
            if missing_metrics
            else "no measurements in a known format"
        )
        raise InsightError(f"{programs.format_command(command)} printed {problem}: {result.last_lines}", _HINT)
    if not benchmark_output.readings:
        benchmark_output = BenchmarkOutput((Reading(WALL, "s", (result.seconds,)),), benchmark_output.parameters)
    return benchmark_output, watch


class _OldResults:
    """The results of an earlier run, in a file that the next run replaces. They do not count, and are not lost."""

    def __init__(self, file: Path) -> None:
        self._file, self._content, self._identity = file, b"", None
        with suppress(OSError):
            self._identity, self._content = self._identify(), file.read_bytes()

    def read_new(self, command: str) -> str:
        """Return what a command wrote to the file; of a file that it appended to, only the new part.

        Raises:
            InsightError: It did not write the file.
        """
        try:
            content, is_new = self._file.read_bytes(), self._identify() != self._identity
        except OSError as error:
            raise InsightError(f"{command} did not write {self._file}: {error.strerror}", "check --results") from None
        if not is_new:
            raise InsightError(f"{command} did not write {self._file}: it is unchanged", "check --results")
        new = content.removeprefix(self._content) if len(content) > len(self._content) else content
        return new.decode("utf-8", errors="replace")

    def restore(self) -> None:
        """Write the old results again, if a command that failed has changed the file."""
        with suppress(OSError, InsightError):
            if self._identity and self._identify() != self._identity:
                outputs.write_output(self._file, self._content, force=True)

    def _identify(self) -> tuple[int, int, int]:
        status = self._file.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns


def _is_narrow(measurements: Sequence[_Measurements], plan: Plan) -> bool:
    """Return whether the interval of the deciding metric is as narrow as the plan requires."""
    deciding_values = [
        side.values.get(find_deciding_metric(list(side.values), side.units, plan) or "", []) for side in measurements
    ]
    if any(len(values) < MIN_REPETITIONS for values in deciding_values):
        return False
    if len(deciding_values) == 2:
        change = estimate_change(deciding_values[0], deciding_values[1], turns=True)
        return change is not None and change.half_width <= plan.precision
    center = estimate_center(deciding_values[0])
    return center.half_width <= plan.precision * abs(center.estimate)


def find_deciding_metric(names: Sequence[str], units: dict[str, str], plan: Plan) -> str | None:
    """Return the metric that decides: the user's metric, else the first with a known direction, else the first."""
    if plan.metric:
        return plan.metric if plan.metric in names else None
    known_names = [name for name in names if plan.better.get(name) or infer_direction(name, units.get(name, ""))]
    return next(iter(known_names or names), None)


def _make_side(label: str, command: str, measurements: _Measurements, plan: Plan) -> Side:
    deciding_metric = find_deciding_metric(list(measurements.values), measurements.units, plan)
    if plan.metric and deciding_metric is None:
        raise UsageError(f"there is no metric {plan.metric!r}", f"choose one of: {', '.join(measurements.values)}")
    names = sorted(measurements.values, key=lambda name: name != deciding_metric)
    series = tuple(
        Series(
            name,
            measurements.units[name],
            plan.better.get(name) or infer_direction(name, measurements.units[name]),
            tuple(measurements.values[name]),
            tuple(measurements.clocks) if any(measurements.clocks) else (),
        )
        for name in names
    )
    return Side(label, command, series, {**measurements.parameters, **plan.parameters})
