"""Whether results are still right: the user's tests, compute-sanitizer, and outputs compared with a reference."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_insight import progress
from nsys_insight.bench import programs, sanitizer
from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\b(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
# A place in a file, and the value there.
Place = tuple[str, Any]


@dataclass(frozen=True)
class Check:
    """The result of one check.

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
    """Which checks to run.

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


def run_checks(wanted: Wanted) -> tuple[Check, ...]:
    """Run the checks, the tests first: they may write the outputs.

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
        same, said = compare_outputs(*wanted.outputs, rtol=wanted.rtol, atol=wanted.atol)
        found.append(Check("compare-output", same, said))
    if wanted.sanitize:
        found += [
            Check(report.tool, report.clean, report.said, report.errors)
            for report in sanitizer.run(wanted.sanitize, wanted.timeout_s)
        ]
    return tuple(found)


def passed(checks: Sequence[Check]) -> bool | None:
    """Whether all checks passed; None if no check can show that results are right.

    compute-sanitizer alone finds errors, but does not tell that results are right.
    """
    if not all(check.passed for check in checks):
        return False
    return True if any(check.name in ("test", "compare-output") for check in checks) else None


def compare_outputs(output: Path, reference: Path, *, rtol: float, atol: float) -> tuple[bool, str]:
    """Tell whether two files hold the same results, and what differs the most.

    A number agrees if it differs by no more than atol + rtol |reference|, as in NumPy; NaN agrees with NaN. Integers
    and texts have to be the same.

    Raises:
        UsageError: A file cannot be read.
    """
    if output.suffix in (".npy", ".npz"):
        return _arrays(output, reference, rtol, atol)
    found, wanted = list(_values(output)), list(_values(reference))
    count, worst, at = 0, -1.0, ""
    for (place, one), (other_place, other) in zip(found, wanted, strict=False):
        off = _excess(one, other, rtol, atol) if place == other_place else math.inf
        if off > 0:
            count += 1
            if off > worst:
                worst, at = off, f"{place} is {one!r}, and {other!r} in {reference.name}"
    if len(found) != len(wanted):
        return False, f"{output.name} holds {len(found)} values, and {reference.name} {len(wanted)}"
    if count:
        return False, f"{count} of {len(found)} values of {output.name} differ: {at}"
    return True, f"{len(found)} values of {output.name} agree with {reference.name} (rtol {rtol:g}, atol {atol:g})"


def _excess(one: Any, other: Any, rtol: float, atol: float) -> float:
    """By how much a difference exceeds the tolerance; 0 if the values agree."""
    if not isinstance(one, float) or not isinstance(other, float | int) or isinstance(other, bool):
        if isinstance(one, int) and isinstance(other, float):
            return _excess(float(one), other, rtol, atol)
        return 0.0 if one == other and type(one) is type(other) else math.inf
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    beyond = abs(one - other) - (atol + rtol * abs(other))
    return math.inf if math.isnan(beyond) else max(beyond, 0.0)


def _arrays(output: Path, reference: Path, rtol: float, atol: float) -> tuple[bool, str]:
    import numpy as np

    def loaded(path: Path) -> dict[str, Any]:
        try:
            found = np.load(path, allow_pickle=False)
            return {name: found[name] for name in found.files} if path.suffix == ".npz" else {path.stem: found}
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} cannot be read: {error}", "give arrays that numpy.save wrote") from None

    found, wanted = loaded(output), loaded(reference)
    if output.suffix == ".npy" and reference.suffix == ".npy":
        wanted = dict(zip(found, wanted.values(), strict=True))
    if found.keys() != wanted.keys():
        return (
            False,
            f"{output.name} holds {', '.join(sorted(found))}, and {reference.name} {', '.join(sorted(wanted))}",
        )
    values = 0
    for name, one in found.items():
        other = wanted[name]
        if one.shape != other.shape:
            return False, f"{name} of {output.name} has the shape {one.shape}, and {other.shape} in {reference.name}"
        exact = not (np.issubdtype(one.dtype, np.inexact) or np.issubdtype(other.dtype, np.inexact))
        same = one == other if exact else np.isclose(one, other, rtol=rtol, atol=atol, equal_nan=True)
        if not same.all():
            where = tuple(int(at) for at in np.argwhere(~same)[0]) if one.ndim else ()
            count = int((~same).sum())
            first = f"the first at {list(where)} is {one[where]}, and {other[where]} in {reference.name}"
            return False, f"{count} of {one.size} values of {name} differ: {first}"
        values += one.size
    return True, f"{values} values of {output.name} agree with {reference.name} (rtol {rtol:g}, atol {atol:g})"


def _values(path: Path) -> Iterator[Place]:
    try:
        text = path.read_text(encoding="utf-8")
        yield from _json_values(json.loads(text), "") if path.suffix == ".json" else _text_values(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}", "give text, JSON, .npy or .npz") from None


def _json_values(found: Any, place: str) -> Iterator[Place]:
    if isinstance(found, dict):
        for name, value in found.items():
            yield f"{place}.{name}", "key"
            yield from _json_values(value, f"{place}.{name}")
    elif isinstance(found, list):
        for at, value in enumerate(found):
            yield from _json_values(value, f"{place}[{at}]")
    else:
        yield place or "the value", found


def _text_values(text: str) -> Iterator[Place]:
    """The numbers of a text and the words between them, line by line."""
    for number, line in enumerate(text.splitlines(), 1):
        for at, word in enumerate(_NUMBER.findall(line), 1):
            whole = re.fullmatch(r"[-+]?\d+", word)
            yield f"number {at} of line {number}", int(word) if whole else float(word)
        yield f"line {number}", " ".join(_NUMBER.sub("#", line).split())
