"""The steps of an experiment: start, try, keep or revert. The user's repository is read, and never changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import outputs
from nsys_insight.bench.answer import decided
from nsys_insight.bench.answer import notes as bench_notes
from nsys_insight.bench.checks import Check, Wanted, passed, run_checks
from nsys_insight.bench.conditions import git_commit, git_diff
from nsys_insight.bench.measure import Plan, measure
from nsys_insight.bench.statistics import center
from nsys_insight.errors import InsightError, UsageError
from nsys_insight.experiment import log

if TYPE_CHECKING:
    from nsys_insight.bench.answer import Decision
    from nsys_insight.bench.result import Bench, Side
    from nsys_insight.experiment.log import Log, Setup, Try


def start(folder: Path, setup: Setup, plan: Plan, seen: dict[str, object]) -> Log:
    """Measure the baseline, and begin the log.

    Args:
        folder: Where the experiment is kept.
        setup: What it is about.
        plan: How the benchmark runs.
        seen: Fields of `Try` that a trace filled in.

    Raises:
        UsageError: There is one already.
        InsightError: The benchmark fails, or a check does: what is broken before a change cannot be judged after it.
    """
    if log.exists(folder):
        raise UsageError(
            f"there is an experiment in {folder}", "nsys-insight experiment log, or start another with --folder NAME"
        )
    checks = run_checks(_wanted(setup, setup.command, plan))
    if failed := [check for check in checks if not check.passed]:
        raise InsightError(f"before any change: {failed[0].said}", "fix it, then start")
    bench = measure([("before", setup.command)], plan)
    side = bench.side
    first = side.series[0]
    found = center(first.values)
    one = _try(
        0, "baseline", setup.command, log.KEPT, "baseline", checks, bench,
        sentence=f"{first.label} {found.middle:,.4g}", metric=first.label, after=found.middle,
        **seen,
    )  # fmt: skip
    log.write_setup(folder, setup)
    log.write_try(folder, one, bench, git_diff())
    return _written(folder)


def attempt(  # noqa: PLR0913 - what is known of a change
    found: Log, what: str, plan: Plan, seen: dict[str, object], *, command: str = "", because: str = ""
) -> Log:
    """Test and measure one change; the rule decides, and nobody has yet kept or reverted it.

    A change that breaks a check is not measured: how fast wrong results come says nothing. If the change has a command
    of its own, it takes turns with the one before; else it is compared with what was measured when that was kept.

    Raises:
        UsageError: The last change is neither kept nor reverted.
    """
    if open_ := found.open:
        raise UsageError(
            f"{open_.number}. {open_.change} is neither kept nor reverted",
            "nsys-insight experiment keep, or nsys-insight experiment revert",
        )
    if not what.strip():
        raise UsageError("the change has no name", 'nsys-insight experiment try "one change"')
    before, number = found.current, len(found.tries)
    after = command or before.command
    checks = run_checks(_wanted(found.setup, after, plan))
    seen = {**seen, "because": because}
    if passed(checks) is False:
        failed = next(check for check in checks if not check.passed)
        one = _try(number, what, after, log.OPEN, "revert", checks, None, sentence=f"revert: {failed.said}", **seen)
        log.write_try(found.folder, one, None, git_diff())
        return _written(found.folder)
    try:
        bench = _measured(found, before, after, plan)
    except UsageError:
        raise
    except InsightError as error:
        checks = (*checks, Check("benchmark", passed=False, said=error.message))
        one = _try(number, what, after, log.OPEN, "revert", checks, None, sentence=f"revert: {error.message}", **seen)
        log.write_try(found.folder, one, None, git_diff())
        return _written(found.folder)
    decision = decided(bench, checks)
    log.write_try(found.folder, _judged(number, what, after, checks, bench, decision, seen), bench, git_diff())
    return _written(found.folder)


def settle(found: Log, status: str) -> Log:
    """Keep or revert the open try.

    Raises:
        UsageError: None is open.
    """
    open_ = found.open
    if open_ is None:
        raise UsageError("no change is open", 'nsys-insight experiment try "one change"')
    log.write_try(found.folder, replace(open_, status=status))
    return _written(found.folder)


def _measured(found: Log, before: Try, after: str, plan: Plan) -> Bench:
    if after != before.command:
        return measure([("before", before.command), ("after", after)], plan)
    saved = found.bench(before)
    if saved is None:
        raise UsageError(
            f"{before.number}. {before.change} was kept without being measured",
            "give the change a command: --bench CMD",
        )
    now = measure([("after", after)], plan)
    old = replace(saved.side, label="before")
    machine = [name for name in ("gpu", "driver", "cuda", "application_clock_mhz") if name in now.conditions]
    sides = [
        replace(side, parameters={**side.parameters, **{name: of.conditions.get(name, "-") for name in machine}})
        for side, of in ((old, saved), (now.side, now))
    ]
    return replace(now, sides=(sides[0], sides[1]))


def _judged(  # noqa: PLR0913, PLR0917 - what is known of a change
    number: int, what: str, command: str, checks: tuple[Check, ...], bench: Bench, decision: Decision,
    seen: dict[str, object],
) -> Try:  # fmt: skip
    before, after = bench.sides[0], bench.side
    if not decision.verdicts:
        return _try(number, what, command, log.OPEN, decision.word, checks, bench, sentence=decision.sentence, **seen)
    first = decision.verdicts[0]
    known = first.change is not None and first.change.reach != float("inf")
    worse = [one.name for one in decision.verdicts[1:] if one.word == "worse"]
    effects = [_moved(name, before, after) for name in worse]
    others = tuple(
        f"{_moved(one.name, before, after)}: {one.word}" for one in decision.verdicts[1:] if one.word != "noise"
    )
    series, old = after.metric(first.name), before.metric(first.name)
    assert series is not None and old is not None  # noqa: S101, PT018 - a verdict is of both
    listed = seen.pop("side_effects", ())
    return _try(
        number, what, command, log.OPEN, decision.word, checks, bench,
        sentence=decision.sentence, metric=series.label,
        before=center(old.values).middle, after=center(series.values).middle,
        change_pct=first.change_pct,
        low_pct=100 * first.change.low if first.change and known else None,
        high_pct=100 * first.change.high if first.change and known else None,
        metrics=others, side_effects=(*effects, *(listed if isinstance(listed, tuple) else ())),
        **seen,
    )  # fmt: skip


def _moved(name: str, before: Side, after: Side) -> str:
    old, new = before.metric(name), after.metric(name)
    assert old is not None and new is not None  # noqa: S101, PT018 - a verdict is of both
    return f"{new.label} {center(old.values).middle:,.4g} → {center(new.values).middle:,.4g}"


def _try(  # noqa: PLR0913, PLR0917 - fields
    number: int, what: str, command: str, status: str, decision: str, checks: tuple[Check, ...], bench: Bench | None,
    **facts: object,
) -> Try:  # fmt: skip
    tests = {True: "passed", False: "failed", None: "not looked"}[passed(checks)]
    conditions = {**bench.conditions, **bench.side.parameters} if bench else git_commit()
    return log.Try(
        number=number, change=" ".join(what.split()), command=command, status=status, decision=decision,
        when=f"{datetime.now().astimezone():%Y-%m-%d %H:%M}", tests=tests, checks=tuple(one.said for one in checks),
        conditions=conditions,
        notes=tuple(bench_notes(bench, checks, brief=True)) if bench else (),
        **facts,  # type: ignore[arg-type]
    )  # fmt: skip


def _wanted(setup: Setup, command: str, plan: Plan) -> Wanted:
    files = (Path(setup.output), Path(setup.reference)) if setup.output else None
    return Wanted(
        setup.test or None, command if setup.sanitize else None, files, setup.rtol, setup.atol, plan.timeout_s
    )


def _written(folder: Path) -> Log:
    found = log.read(folder)
    outputs.save(folder / log.PAGE, log.log_page(found))
    return found
