"""Read JSON and TOML that others may have written: the annotations of a dataclass are the schema of a table."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_MAX_INT = 1 << 63
_NAMES = {
    str: "a text", int: "an integer", float: "a number", bool: "true or false", list: "a list", tuple: "a list",
    dict: "a table", NoneType: "null",
}  # fmt: skip


class RecordError(ValueError):
    """A file holds something else than it should; the text says where, and what should be there."""


def parse_json(text: str | bytes) -> Any:
    """Parse JSON.

    Raises:
        RecordError: The text is not JSON, or nested too deeply.
    """
    return _parse("JSON", json.loads, text)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        RecordError: The text is not TOML, or nested too deeply.
    """
    import tomllib

    return cast("dict[str, Any]", _parse("TOML", tomllib.loads, text))


def _parse(format_name: str, load: Callable[[Any], Any], text: str | bytes) -> Any:
    try:
        return load(text)
    except RecursionError:
        raise RecordError("it is nested too deeply") from None
    except ValueError as error:
        raise RecordError(f"it is not {format_name}: {error}") from None


def make_record(kind: type[T], data: Any, place: str = "", *, names: dict[str, str] | None = None) -> T:
    """Make a dataclass from a table, whose entries have the names and types of its fields.

    `place` says where the table is, for errors. `names` are the names of entries, for fields that are called otherwise.

    Raises:
        RecordError: An entry is missing, unknown or of another type.
    """
    record: T = _make_dataclass(kind, data, place, names or {})
    return record


def check(value: Any, kind: Any, place: str = "", names: dict[str, str] | None = None) -> Any:
    """Return a value if it has an annotated type: lists become tuples, tables dataclasses, where it says so.

    Raises:
        RecordError: It has another type, or is an integer of more than 64 bits.
    """
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _make_dataclass(kind, value, place, names or {})
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, UnionType):
        return _check_union(value, arguments, place, names)
    if origin is Literal:
        _check_choice(value, arguments, place)
    else:
        _check_type(value, origin, place)
    if isinstance(value, list) and arguments:
        items = [check(item, arguments[0], f"{place}[{number}]", names) for number, item in enumerate(value)]
        return tuple(items) if origin is tuple else items
    if isinstance(value, dict) and arguments:
        return {key: check(item, arguments[1], f"{place}.{key}".lstrip("."), names) for key, item in value.items()}
    return value


def _check_choice(value: Any, choices: tuple[Any, ...], place: str) -> None:
    if value not in choices:
        raise RecordError(f"{place or 'it'} should be one of: {', '.join(map(str, choices))}")


def _check_type(value: Any, kind: type, place: str) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and isinstance(value, int) and not -_MAX_INT <= value < _MAX_INT:
        raise RecordError(f"{place or 'it'} has more than 64 bits")
    expected = {float: int | float, tuple: list}.get(kind, kind)
    if not isinstance(value, expected) or (kind in (int, float) and not is_number):
        raise RecordError(f"{place or 'it'} should be {_NAMES.get(kind, kind.__name__)}")


def _check_union(value: Any, kinds: tuple[Any, ...], place: str, names: dict[str, str] | None) -> Any:
    if value is None and NoneType in kinds:
        return None
    other_kinds = [kind for kind in kinds if kind is not NoneType]
    for number, kind in enumerate(other_kinds, 1):
        try:
            return check(value, kind, place, names)
        except RecordError:
            if number == len(other_kinds):
                raise
    return value


def _make_dataclass(kind: Any, data: Any, place: str, names: dict[str, str]) -> Any:
    if not isinstance(data, dict):
        raise RecordError(f"{place or 'it'} should be a table")
    fields_by_key = {names.get(field.name, field.name): field for field in fields(kind)}
    if unknown := data.keys() - fields_by_key.keys():
        raise RecordError(f"{place or 'it'} has an unknown entry {min(map(str, unknown))!r}")
    values = {}
    for key, field in fields_by_key.items():
        if key in data:
            values[field.name] = check(data[key], _read_hints(kind)[field.name], f"{place}.{key}".lstrip("."), names)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise RecordError(f"{place or 'it'} lacks {key!r}")
    return kind(**values)


@cache
def _read_hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
