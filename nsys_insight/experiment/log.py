"""Read and write the folder of an experiment: its setup and its tries; TOML for programs, log.md for people.

    experiment.toml      the goal, the benchmark, the checks
    0-baseline/          try.toml, bench.json
    1-use-cuda-graphs/   try.toml, bench.json, change.patch
    log.md               written again from these after each step

A step is complete when its folder has a try.toml, which is written last. An interrupted step has no try.toml and is
ignored.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_insight import outputs, own_files
from nsys_insight.bench.result import Bench, from_json, to_json
from nsys_insight.errors import UsageError
from nsys_insight.records import RecordError, make_record, parse_toml
from nsys_insight.render.markdown import escape_prose
from nsys_insight.text.cells import printable, width_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_SETUP, _TRY, BENCH, PATCH, PAGE = "experiment.toml", "try.toml", "bench.json", "change.patch", "log.md"
OPEN_STATUS, KEEP_STATUS = "open", "kept"
MAX_PATCH_LENGTH = 1_000_000  # characters; the rest of a patch is cut off
# TOML keys that differ from the fields of the dataclasses.
_TOML_KEYS = {"bench_settings": "how"}
_BAR_WIDTH, _NAME_WIDTH = 40, 32  # columns


@dataclass(frozen=True)
class Setup:
    """The setup of an experiment.

    Attributes:
        goal: The goal in the user's words.
        command: The benchmark.
        test: A command that fails if results are wrong.
        sanitize: Whether the benchmark also runs under compute-sanitizer.
        output: A file of results, compared with the reference after the tests.
        reference: The reference file.
        rtol: Relative tolerance of numbers.
        atol: Absolute tolerance of numbers.
        bench_settings: Flags of `bench`: repetitions, and the format of the output.
    """

    goal: str
    command: str
    test: str = ""
    sanitize: bool = False
    output: str = ""
    reference: str = ""
    rtol: float = 1e-5
    atol: float = 1e-8
    bench_settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Try:
    """One measured state: the baseline (number 0), or the state after one change.

    Attributes:
        number: Number of the try.
        change: The change in the user's words.
        because: The hypothesis: why the change should help.
        command: The measured command.
        when: Date and time.
        status: `OPEN_STATUS` (the user has not decided yet), `KEEP_STATUS`, or reverted.
        decision: Decision of the rule: accept, unchecked, small, revert, indistinguishable, refused, unknown; baseline.
        sentence: The decision with its numbers.
        metric: The metric that decided, with its unit.
        before: Center of this metric before.
        after: Center of this metric after.
        change_pct: The change as a percentage of before.
        low_pct: Lower end of the interval of the change.
        high_pct: Upper end of the interval.
        tests: passed, failed, or "not run" (no tests).
        checks: Messages of the checks.
        metrics: A sentence for each other metric.
        side_effects: Regressions of other metrics.
        evidence: Findings in the trace: metric = value → finding.
        trace: The trace of this state.
        trace_diff: Result of the comparison of the traces.
        ncu: Nsight Compute measurements of this state.
        ncu_diff: Result of the comparison of these measurements.
        candidates: Next changes to try, from the findings in the trace.
        conditions: The machine, the commit, and the parameters of the workload.
        notes: Notes on the measurement.
    """

    number: int
    change: str
    command: str
    when: str
    status: str
    decision: str
    because: str = ""
    sentence: str = ""
    metric: str = ""
    before: float | None = None
    after: float | None = None
    change_pct: float | None = None
    low_pct: float | None = None
    high_pct: float | None = None
    tests: str = "not run"
    checks: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    side_effects: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    trace: str = ""
    trace_diff: tuple[str, ...] = ()
    ncu: str = ""
    ncu_diff: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    conditions: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """Return the name of the try's folder."""
        words = re.sub(r"[^a-z0-9]+", "-", self.change.lower()).strip("-")[:40].strip("-")
        return f"{self.number}-{words or 'change'}"


@dataclass(frozen=True)
class Log:
    """An experiment and its tries, in order."""

    folder: Path
    setup: Setup
    tries: tuple[Try, ...]

    @property
    def current_try(self) -> Try:
        """Return the state that the next change starts from: the last try with `KEEP_STATUS`, or the baseline."""
        return next(trial for trial in reversed(self.tries) if trial.status == KEEP_STATUS)

    @property
    def open_try(self) -> Try | None:
        """Return the try that waits for the user to keep or revert it; None if there is no such try."""
        return next((trial for trial in self.tries if trial.status == OPEN_STATUS), None)

    def read_bench(self, trial: Try) -> Bench | None:
        """Read the benchmark of a try; None if it was not measured."""
        path = self.folder / trial.folder / BENCH
        return from_json(path.read_text(encoding="utf-8"), path) if path.is_file() else None


def read(folder: Path) -> Log:
    """Read an experiment.

    Raises:
        UsageError: The folder has no experiment, or a file of it is damaged or missing.
    """
    setup = _read_toml(folder / _SETUP)
    if setup is None:
        raise UsageError(
            f"there is no experiment in {folder}", "nsys-insight experiment start --bench COMMAND, or name its --folder"
        )
    trials: list[Try] = [_make_dataclass(Try, _read_toml(path) or {}, path) for path in folder.glob(f"*/{_TRY}")]
    tries = tuple(sorted(trials, key=lambda trial: trial.number))
    if not tries or [trial.number for trial in tries] != list(range(len(tries))):
        raise UsageError(
            f"tries of {folder} are missing", "restore them, or start a new experiment in another --folder"
        )
    return Log(folder, _make_dataclass(Setup, setup, folder / _SETUP), tries)


def has_experiment(folder: Path) -> bool:
    """Return whether a folder has an experiment."""
    return (folder / _SETUP).exists()


def write_setup(folder: Path, setup: Setup) -> None:
    """Write the setup of an experiment."""
    folder.mkdir(parents=True, exist_ok=True)
    own_files.adopt(folder)
    _write_toml(folder / _SETUP, {_TOML_KEYS.get(name, name): value for name, value in asdict(setup).items()})


def write_try(folder: Path, trial: Try, bench: Bench | None = None, patch: str = "") -> None:
    """Write a try. The TOML file comes last: with it, the try is complete."""
    own_files.adopt(folder)
    try_folder = folder / trial.folder
    try_folder.mkdir(parents=True, exist_ok=True)
    if bench:
        outputs.write_listed(try_folder / BENCH, to_json(bench))
    if patch:
        outputs.write_listed(try_folder / PATCH, patch[:MAX_PATCH_LENGTH])
    _write_toml(try_folder / _TRY, asdict(trial))


def _write_toml(path: Path, settings: dict[str, Any]) -> None:
    import tomli_w

    plain_values = {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
    text = tomli_w.dumps({name: value for name, value in plain_values.items() if value not in (None, "", [], {})})
    outputs.write_listed(path, text)


def _read_toml(path: Path) -> dict[str, Any] | None:
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}", "restore it, or start a new experiment in another --folder"
        ) from None


def _make_dataclass(dataclass_type: Any, settings: dict[str, Any], path: Path) -> Any:
    try:
        return make_record(dataclass_type, settings, names=_TOML_KEYS)
    except RecordError as error:
        raise UsageError(
            f"{path} is damaged: {error}", "restore it, or start a new experiment in another --folder"
        ) from None


def format_log(log: Log) -> str:
    """Format the log as Markdown: a table, a plot, and the details of each try."""
    return "\n".join(_format_page(log)) + "\n"


def plot_tries(log: Log) -> list[str]:
    """Draw a bar for each measured try with the current metric and unit, in the order of the tries."""
    metric = log.current_try.metric
    measured_tries = [trial for trial in log.tries if trial.after is not None and trial.metric == metric]
    max_value = max((trial.after or 0 for trial in measured_tries), default=0)
    if max_value <= 0:
        return []
    names = [_shorten_text(f"{trial.number} {trial.change}", _NAME_WIDTH) for trial in measured_tries]
    width = max(map(width_of, names))
    lines = [f"{metric}"]
    for name, trial in zip(names, measured_tries, strict=True):
        value = trial.after or 0
        bar = "█" * max(1, round(_BAR_WIDTH * value / max_value))
        suffix = {"kept": "", "reverted": " reverted", "open": " open"}[trial.status]
        lines.append(f"{name}{' ' * (width - width_of(name))} {bar} {value:,.4g}{suffix}")
    return lines


def _format_page(log: Log) -> Iterator[str]:
    setup = log.setup
    yield f"# {_escape_text(setup.goal)}"
    yield ""
    yield f"- benchmark: `{_escape_code(setup.command)}`"
    yield f"- tests: {f'`{_escape_code(setup.test)}`' if setup.test else 'none, so nothing can be accepted'}"
    yield ""
    yield "| # | change | status | decision | before | after | change % | tests |"
    yield "|---:|---|---|---|---:|---:|---:|---|"
    for trial in log.tries:
        cells = (
            str(trial.number), _escape_text(trial.change), trial.status, trial.decision, _format_number(trial.before),
            _format_number(trial.after), "" if trial.change_pct is None else f"{trial.change_pct:+.1f}", trial.tests,
        )  # fmt: skip
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    plot_lines = plot_tries(log)
    if plot_lines:
        yield from ("", "```text", *plot_lines, "```")
    for trial in log.tries:
        yield from _format_try(trial)


def _format_try(trial: Try) -> Iterator[str]:
    yield from ("", f"## {trial.number}. {_escape_text(trial.change)}", "")
    yield f"{trial.when}, {trial.status}. **{_escape_text(trial.sentence)}**"
    yield ""
    if trial.because:
        yield f"- hypothesis: {_escape_text(trial.because)}"
    if trial.number:
        yield f"- command: `{_escape_code(trial.command)}`"
    if trial.low_pct is not None and trial.high_pct is not None:
        yield f"- interval of the change, 95%: {trial.low_pct:+.1f}% to {trial.high_pct:+.1f}%"
    for title, texts in (
        ("evidence", trial.evidence), ("check", trial.checks), ("other metric", trial.metrics),
        ("side effect", trial.side_effects), ("trace", trial.trace_diff), ("ncu", trial.ncu_diff),
        ("next candidate", trial.candidates), ("note", trial.notes),
    ):  # fmt: skip
        for text in texts:
            yield f"- {title}: {_escape_text(text)}"
    if trial.conditions:
        condition_list = ", ".join(f"{name} {value}" for name, value in trial.conditions.items())
        yield "- measured with: " + _escape_text(condition_list)


def _format_number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"


def _escape_text(text: str) -> str:
    return escape_prose(printable(text))


def _escape_code(text: str) -> str:
    return printable(text).replace("`", "'")


def _shorten_text(text: str, width: int) -> str:
    text = printable(text)
    while width_of(text) > width:
        text = text[:-2] + "…"
    return text
