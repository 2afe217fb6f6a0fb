"""Check that results are still right: the user's tests, compute-sanitizer, and outputs compared with a reference."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_insight import programs, progress
from nsys_insight.bench import sanitizer
from nsys_insight.errors import UsageError, describe_cause
from nsys_insight.records import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# JSON keys of a check that differ from its attributes.
JSON_KEYS = {"message": "said"}
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\b(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
# A location in a file, and the value there.
LocatedValue = tuple[str, Any]


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
        name: "test", "compare-output", or a tool of compute-sanitizer.
        passed: Whether the check found no error.
        message: The finding in a sentence.
        errors: Errors that compute-sanitizer reported, by kernel and line.
    """

    name: str
    passed: bool
    message: str
    errors: tuple[sanitizer.SanitizerError, ...] = ()


@dataclass(frozen=True)
class CheckOptions:
    """The checks to run.

    Attributes:
        test: A command that fails if the results are wrong.
        sanitize: A command to run under compute-sanitizer.
        outputs: A file of results and its reference; None to skip this check.
        rtol: Relative tolerance of numbers.
        atol: Absolute tolerance of numbers.
        timeout_s: Maximum time of a command in seconds.
    """

    test: str | None = None
    sanitize: str | list[str] | None = None
    outputs: tuple[Path, Path] | None = None
    rtol: float = 1e-5
    atol: float = 1e-8
    timeout_s: float | None = None


def run_checks(options: CheckOptions) -> tuple[Check, ...]:
    """Run the checks. The tests run first, because they may write the outputs.

    Raises:
        ToolError: compute-sanitizer is not installed.
        UsageError: An output file has an unsupported format.
    """
    checks = []
    if options.test:
        with progress.show_task("running the tests"):
            test_result = programs.run(options.test, options.timeout_s)
        is_ok = test_result.code == 0
        failure = "did not end in time" if test_result.code is None else f"exit code {test_result.code}"
        last_lines_text = f": {test_result.last_lines}" if test_result.code and test_result.last_lines else ""
        outcome = "passed" if is_ok else failure + last_lines_text
        checks.append(Check("test", is_ok, f"{options.test}: {outcome}"))
    if options.outputs:
        is_equal, message = compare_outputs(*options.outputs, rtol=options.rtol, atol=options.atol)
        checks.append(Check("compare-output", is_equal, message))
    if options.sanitize:
        checks += [
            Check(report.tool, report.is_clean, report.message, report.errors)
            for report in sanitizer.run(options.sanitize, options.timeout_s)
        ]
    return tuple(checks)


def check_fields(check: Check) -> dict[str, Any]:
    """Return the fields of a check under their JSON keys."""
    return {JSON_KEYS.get(name, name): value for name, value in asdict(check).items()}


def have_passed(checks: Sequence[Check]) -> bool | None:
    """Return whether all checks passed; None if no check can show that results are right.

    compute-sanitizer alone finds errors, but it cannot show that results are right.
    """
    if not all(check.passed for check in checks):
        return False
    return True if any(check.name in ("test", "compare-output") for check in checks) else None


def compare_outputs(output: Path, reference: Path, *, rtol: float, atol: float) -> tuple[bool, str]:
    """Return whether two files hold the same results, and a sentence that names the largest difference.

    A number agrees if it differs by no more than atol + rtol |reference|, as in NumPy. NaN agrees with NaN. Integers
    and texts must be equal.

    Raises:
        UsageError: A file cannot be read.
    """
    if output.suffix in (".npy", ".npz"):
        return _compare_arrays(output, reference, rtol, atol)
    output_values, reference_values = list(_iter_values(output)), list(_iter_values(reference))
    count, largest_excess, example = 0, -1.0, ""
    for (location, value), (other_location, reference_value) in zip(output_values, reference_values, strict=False):
        excess = _tolerance_excess(value, reference_value, rtol, atol) if location == other_location else math.inf
        if excess > 0:
            count += 1
            if excess > largest_excess:
                largest_excess, example = (
                    excess,
                    f"{location} is {value!r}, and {reference_value!r} in {reference.name}",
                )
    if len(output_values) != len(reference_values):
        return False, f"{output.name} holds {len(output_values)} values, and {reference.name} {len(reference_values)}"
    if count:
        return False, f"{count} of {len(output_values)} values of {output.name} differ: {example}"
    return (
        True,
        f"{len(output_values)} values of {output.name} agree with {reference.name} (rtol {rtol:g}, atol {atol:g})",
    )


def _tolerance_excess(value: Any, reference: Any, rtol: float, atol: float) -> float:
    """Return by how much a difference exceeds the tolerance; 0 if the values agree."""
    if not isinstance(value, float) or not isinstance(reference, float | int) or isinstance(reference, bool):
        if isinstance(value, int) and isinstance(reference, float):
            return _tolerance_excess(float(value), reference, rtol, atol)
        return 0.0 if value == reference and type(value) is type(reference) else math.inf
    if value == reference or (math.isnan(value) and math.isnan(reference)):
        return 0.0
    excess = abs(value - reference) - (atol + rtol * abs(reference))
    return math.inf if math.isnan(excess) else max(excess, 0.0)


def _compare_arrays(output: Path, reference: Path, rtol: float, atol: float) -> tuple[bool, str]:
    import numpy as np

    def load_arrays(path: Path) -> dict[str, Any]:
        try:
            data = np.load(path, allow_pickle=False)
            return {name: data[name] for name in data.files} if path.suffix == ".npz" else {path.stem: data}
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{path} cannot be read: {describe_cause(error)}", "give arrays that numpy.save wrote"
            ) from None

    arrays, reference_arrays = load_arrays(output), load_arrays(reference)
    if output.suffix == ".npy" and reference.suffix == ".npy":
        reference_arrays = dict(zip(arrays, reference_arrays.values(), strict=True))
    if arrays.keys() != reference_arrays.keys():
        names, reference_names = (", ".join(sorted(side)) for side in (arrays, reference_arrays))
        return False, f"{output.name} holds {names}, and {reference.name} {reference_names}"
    value_count = 0
    for name, array in arrays.items():
        expected = reference_arrays[name]
        if array.shape != expected.shape:
            return (
                False,
                f"{name} of {output.name} has the shape {array.shape}, and {expected.shape} in {reference.name}",
            )
        is_exact = not (np.issubdtype(array.dtype, np.inexact) or np.issubdtype(expected.dtype, np.inexact))
        is_equal = array == expected if is_exact else np.isclose(array, expected, rtol=rtol, atol=atol, equal_nan=True)
        if not is_equal.all():
            index = tuple(int(axis_index) for axis_index in np.argwhere(~is_equal)[0]) if array.ndim else ()
            count = int((~is_equal).sum())
            first = f"the first at {list(index)} is {array[index]}, and {expected[index]} in {reference.name}"
            return False, f"{count} of {array.size} values of {name} differ: {first}"
        value_count += array.size
    return True, f"{value_count} values of {output.name} agree with {reference.name} (rtol {rtol:g}, atol {atol:g})"


def _iter_values(path: Path) -> Iterator[LocatedValue]:
    try:
        text = path.read_text(encoding="utf-8")
        yield from _iter_json_values(parse_json(text), "") if path.suffix == ".json" else _iter_text_values(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {describe_cause(error)}", "give text, JSON, .npy or .npz") from None


def _iter_json_values(data: Any, location: str) -> Iterator[LocatedValue]:
    if isinstance(data, dict):
        for name, value in data.items():
            yield f"{location}.{name}", "key"
            yield from _iter_json_values(value, f"{location}.{name}")
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _iter_json_values(value, f"{location}[{index}]")
    else:
        yield location or "the value", data


def _iter_text_values(text: str) -> Iterator[LocatedValue]:
    """Yield the numbers of a text and the words between them, line by line."""
    for line_number, line in enumerate(text.splitlines(), 1):
        for position, word in enumerate(_NUMBER.findall(line), 1):
            is_integer = re.fullmatch(r"[-+]?\d+", word)
            yield f"number {position} of line {line_number}", int(word) if is_integer else float(word)
        yield f"line {line_number}", " ".join(_NUMBER.sub("#", line).split())
