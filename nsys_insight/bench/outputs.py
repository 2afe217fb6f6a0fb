"""Results of a program compared with a reference: arrays of NumPy, JSON, or text whose numbers may differ a little."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\b(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
# A place in a file, and what is there.
Place = tuple[str, Any]


def compare(output: Path, reference: Path, *, rtol: float, atol: float) -> tuple[bool, str]:
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
        off = _off(one, other, rtol, atol) if place == other_place else math.inf
        if off > 0:
            count += 1
            if off > worst:
                worst, at = off, f"{place} is {one!r}, and {other!r} in {reference.name}"
    if len(found) != len(wanted):
        return False, f"{output.name} holds {len(found)} values, and {reference.name} {len(wanted)}"
    if count:
        return False, f"{count} of {len(found)} values of {output.name} differ: {at}"
    return True, f"{len(found)} values of {output.name} agree with {reference.name} (rtol {rtol:g}, atol {atol:g})"


def _off(one: Any, other: Any, rtol: float, atol: float) -> float:
    """By how much a value is beyond what it may differ by; 0 if it agrees."""
    if not isinstance(one, float) or not isinstance(other, float | int) or isinstance(other, bool):
        if isinstance(one, int) and isinstance(other, float):
            return _off(float(one), other, rtol, atol)
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
        yield from _of_json(json.loads(text), "") if path.suffix == ".json" else _of_text(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}", "give text, JSON, .npy or .npz") from None


def _of_json(found: Any, place: str) -> Iterator[Place]:
    if isinstance(found, dict):
        for name, value in found.items():
            yield f"{place}.{name}", "key"
            yield from _of_json(value, f"{place}.{name}")
    elif isinstance(found, list):
        for at, value in enumerate(found):
            yield from _of_json(value, f"{place}[{at}]")
    else:
        yield place or "the value", found


def _of_text(text: str) -> Iterator[Place]:
    """The numbers of a text, and what stands between them, line by line."""
    for number, line in enumerate(text.splitlines(), 1):
        for at, word in enumerate(_NUMBER.findall(line), 1):
            whole = re.fullmatch(r"[-+]?\d+", word)
            yield f"number {at} of line {number}", int(word) if whole else float(word)
        yield f"line {number}", " ".join(_NUMBER.sub("#", line).split())
