"""Whether results are still right: the user's tests, compute-sanitizer, and outputs compared with a reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_insight import progress
from nsys_insight.bench import outputs, programs, sanitizer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Check:
    """One look at the results.

    Attributes:
        name: "test", "compare-output", or a tool of compute-sanitizer.
        passed: Whether it found nothing wrong.
        said: What it found, in a sentence.
        errors: What compute-sanitizer reported, by kernel and line.
    """

    name: str
    passed: bool
    said: str
    errors: tuple[sanitizer.Error, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """What is to be looked at.

    Attributes:
        test: A command that fails if the results are wrong.
        sanitize: A command to run under compute-sanitizer.
        outputs: A file of results and its reference, or none.
        rtol: By how much of its size a number may differ.
        atol: By how much it may differ in any case.
        timeout_s: How long a command may take.
    """

    test: str | None = None
    sanitize: str | list[str] | None = None
    outputs: tuple[Path, Path] | None = None
    rtol: float = 1e-5
    atol: float = 1e-8
    timeout_s: float | None = None


def look(wanted: Wanted) -> tuple[Check, ...]:
    """Run the checks that are wanted, the tests first: they may write the outputs.

    Raises:
        ToolError: There is no compute-sanitizer.
        UsageError: An output is of a kind that cannot be read.
    """
    found = []
    if wanted.test:
        with progress.at("running the tests"):
            ran = programs.run(wanted.test, wanted.timeout_s)
        how = "did not end in time" if ran.code is None else f"exit code {ran.code}"
        words = f": {ran.last_words}" if ran.code and ran.last_words else ""
        found.append(Check("test", ran.code == 0, f"{wanted.test}: " + ("passed" if ran.code == 0 else how + words)))
    if wanted.outputs:
        same, said = outputs.compare(*wanted.outputs, rtol=wanted.rtol, atol=wanted.atol)
        found.append(Check("compare-output", same, said))
    if wanted.sanitize:
        found += [
            Check(report.tool, report.clean, report.said, report.errors)
            for report in sanitizer.run(wanted.sanitize, wanted.timeout_s)
        ]
    return tuple(found)


def passed(checks: Sequence[Check]) -> bool | None:
    """Whether all checks passed; None if nobody looked.

    compute-sanitizer alone finds errors, but does not tell that results are right.
    """
    if not all(check.passed for check in checks):
        return False
    return True if any(check.name in ("test", "compare-output") for check in checks) else None
