"""The folder of an experiment: what it asks, the tries, and what became of them; TOML for programs, log.md for people.

    experiment.toml      the goal, the benchmark, the checks
    0-baseline/          try.toml, bench.json
    1-use-cuda-graphs/   try.toml, bench.json, change.patch
    log.md               written anew from these after each step

Each step is whole when its folder has a try.toml, which is written last: what was interrupted has none, and is as if it
had not begun.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_insight import outputs
from nsys_insight.bench.result import Bench, from_json, to_json
from nsys_insight.errors import UsageError
from nsys_insight.render.markdown import prose
from nsys_insight.text.cells import printable, width_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_SETUP, _TRY, BENCH, PATCH, PAGE = "experiment.toml", "try.toml", "bench.json", "change.patch", "log.md"
OPEN, KEPT = "open", "kept"
MOST_PATCH = 1_000_000  # characters of a patch that are kept
_BAR_WIDTH, _NAME_WIDTH = 40, 32  # columns


@dataclass(frozen=True)
class Setup:
    """What an experiment is about.

    Attributes:
        goal: What is to get better, in the user's words.
        command: The benchmark.
        metric: The metric that decides; empty is the first.
        test: A command that fails if results are wrong.
        sanitize: Whether the benchmark also runs under compute-sanitizer.
        output: A file of results, and its reference, to be compared after the tests.
        reference: The reference.
        rtol: By how much of its size a number may differ.
        atol: By how much it may differ in any case.
        how: How often the benchmark runs, and what it prints: the flags of `bench`.
    """

    goal: str
    command: str
    metric: str = ""
    test: str = ""
    sanitize: bool = False
    output: str = ""
    reference: str = ""
    rtol: float = 1e-5
    atol: float = 1e-8
    how: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Try:
    """One state that was measured: the baseline (number 0), or the state after one change.

    Attributes:
        number: Its number.
        change: The one change, in the user's words.
        because: Why it should help: the hypothesis.
        command: What was measured.
        when: When, as a date and a time.
        status: open (nobody has said keep or revert), kept, reverted.
        decision: What the rule says: accept, unchecked, small, revert, indistinguishable, refused, unknown; baseline.
        sentence: The same with its numbers.
        metric: The metric that decided, with its unit.
        before: Its middle before.
        after: Its middle after.
        change_pct: The change as a percentage of before.
        low_pct: Where the change's interval begins.
        high_pct: Where it ends.
        tests: passed, failed, or "not looked".
        checks: What the checks said.
        metrics: A sentence for each other metric.
        side_effects: What got worse beside the metric that decided.
        evidence: What the trace showed: metric = value → finding.
        trace: The trace of this state.
        trace_diff: What the comparison of the traces says.
        ncu: What Nsight Compute measured of this state.
        ncu_diff: What the comparison of these says.
        candidates: What could be tried next, of the trace's findings.
        conditions: The machine, the commit, and the parameters of the workload.
        notes: What must be known beside the numbers.
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
    tests: str = "not looked"
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
        """The name of its folder."""
        words = re.sub(r"[^a-z0-9]+", "-", self.change.lower()).strip("-")[:40].strip("-")
        return f"{self.number}-{words or 'change'}"


@dataclass(frozen=True)
class Log:
    """An experiment and its tries, in their order."""

    folder: Path
    setup: Setup
    tries: tuple[Try, ...]

    @property
    def current(self) -> Try:
        """The state to which the next change is made: the last that was kept, or the baseline."""
        return next(one for one in reversed(self.tries) if one.status == KEPT)

    @property
    def open(self) -> Try | None:
        """The try about which nobody has decided yet."""
        return next((one for one in self.tries if one.status == OPEN), None)

    def bench(self, one: Try) -> Bench | None:
        """What was measured; None if it was not."""
        path = self.folder / one.folder / BENCH
        return from_json(path.read_text(encoding="utf-8"), path) if path.is_file() else None


def read(folder: Path) -> Log:
    """Read an experiment.

    Raises:
        UsageError: There is none in the folder, or a file of it is damaged.
    """
    setup = _read(folder / _SETUP)
    if setup is None:
        raise UsageError(
            f"there is no experiment in {folder}", "nsys-insight experiment start --bench COMMAND, or name its --folder"
        )
    found = [_try(path) for path in folder.glob(f"*/{_TRY}")]
    tries = tuple(sorted(found, key=lambda one: one.number))
    if not tries or [one.number for one in tries] != list(range(len(tries))):
        raise UsageError(
            f"tries of {folder} are missing", "restore them, or start a new experiment in another --folder"
        )
    return Log(folder, _parsed(Setup, setup, folder / _SETUP), tries)


def exists(folder: Path) -> bool:
    """Tell whether there is an experiment in a folder."""
    return (folder / _SETUP).exists()


def write_setup(folder: Path, setup: Setup) -> None:
    """Write what an experiment is about."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / _SETUP, asdict(setup))


def write_try(folder: Path, one: Try, bench: Bench | None = None, patch: str = "") -> None:
    """Write a try: what was measured first, for it is whole when it has its TOML."""
    place = folder / one.folder
    place.mkdir(parents=True, exist_ok=True)
    if bench:
        outputs.save(place / BENCH, to_json(bench))
    if patch:
        (place / PATCH).write_text(patch[:MOST_PATCH], encoding="utf-8")
    _write(place / _TRY, asdict(one))


def _write(path: Path, found: dict[str, Any]) -> None:
    import tomli_w

    kept = {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}
    text = tomli_w.dumps({name: value for name, value in kept.items() if value not in (None, "", [], {})})
    made = path.with_suffix(".new")
    made.write_text(text, encoding="utf-8")
    made.replace(path)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}", "restore it, or start a new experiment in another --folder"
        ) from None


def _try(path: Path) -> Try:
    found: Try = _parsed(Try, _read(path) or {}, path)
    return found


def _parsed(kind: Any, found: dict[str, Any], path: Path) -> Any:
    known = {one.name for one in fields(kind)}
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
    try:
        return kind(**{name: value for name, value in values.items() if name in known})
    except TypeError as error:
        raise UsageError(
            f"{path} is damaged: {error}", "restore it, or start a new experiment in another --folder"
        ) from None


def log_page(log: Log) -> str:
    """The log as Markdown: a table, a plot, and each try in full."""
    return "\n".join(_page_lines(log)) + "\n"


def plot_tries(log: Log) -> list[str]:
    """Draw a bar for each state that was measured, in the order of the tries; those of one metric and unit."""
    metric = log.current.metric
    shown = [one for one in log.tries if one.after is not None and one.metric == metric]
    most = max((one.after or 0 for one in shown), default=0)
    if most <= 0:
        return []
    names = [_fit(f"{one.number} {one.change}", _NAME_WIDTH) for one in shown]
    width = max(map(width_of, names))
    lines = [f"{metric}"]
    for name, one in zip(names, shown, strict=True):
        value = one.after or 0
        bar = "█" * max(1, round(_BAR_WIDTH * value / most))
        mark = {"kept": "", "reverted": " reverted", "open": " open"}[one.status]
        lines.append(f"{name}{' ' * (width - width_of(name))} {bar} {value:,.4g}{mark}")
    return lines


def _page_lines(log: Log) -> Iterator[str]:
    setup = log.setup
    yield f"# {_text(setup.goal)}"
    yield ""
    yield f"- benchmark: `{_code(setup.command)}`"
    yield f"- tests: {f'`{_code(setup.test)}`' if setup.test else 'none, so nothing can be accepted'}"
    yield ""
    yield "| # | change | status | decision | before | after | change % | tests |"
    yield "|---:|---|---|---|---:|---:|---:|---|"
    for one in log.tries:
        cells = (
            str(one.number), _text(one.change), one.status, one.decision, _number(one.before), _number(one.after),
            "" if one.change_pct is None else f"{one.change_pct:+.1f}", one.tests,
        )  # fmt: skip
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    drawn = plot_tries(log)
    if drawn:
        yield from ("", "```text", *drawn, "```")
    for one in log.tries:
        yield from _try_lines(one)


def _try_lines(one: Try) -> Iterator[str]:
    yield from ("", f"## {one.number}. {_text(one.change)}", "")
    yield f"{one.when}, {one.status}. **{_text(one.sentence)}**"
    yield ""
    if one.because:
        yield f"- hypothesis: {_text(one.because)}"
    if one.number:
        yield f"- command: `{_code(one.command)}`"
    if one.low_pct is not None and one.high_pct is not None:
        yield f"- interval of the change, 95 %: {one.low_pct:+.1f} % to {one.high_pct:+.1f} %"
    for title, texts in (
        ("evidence", one.evidence), ("check", one.checks), ("other metric", one.metrics),
        ("side effect", one.side_effects), ("trace", one.trace_diff), ("ncu", one.ncu_diff),
        ("next candidate", one.candidates), ("note", one.notes),
    ):  # fmt: skip
        for text in texts:
            yield f"- {title}: {_text(text)}"
    if one.conditions:
        yield "- measured with: " + _text(", ".join(f"{name} {value}" for name, value in one.conditions.items()))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"


def _text(text: str) -> str:
    return prose(printable(text))


def _code(text: str) -> str:
    return printable(text).replace("`", "'")


def _fit(text: str, width: int) -> str:
    text = printable(text)
    while width_of(text) > width:
        text = text[:-2] + "…"
    return text
