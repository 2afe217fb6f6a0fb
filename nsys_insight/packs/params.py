"""The parameters of packs: a flag on the command line, a keyword in Python, `$name` in SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from nsys_insight.errors import UsageError
from nsys_insight.sql.headers import flow

TYPES: dict[str, type] = {"integer": int, "number": float, "text": str, "boolean": bool}


@dataclass(frozen=True)
class Param:
    """A parameter of a pack: `$name` in its SQL, a flag on the command line, a keyword in Python.

    Its type follows from its default; without a default, `type` says it and the value is NULL until given.
    `pattern` is what a text must match as a whole.
    """

    name: str
    kind: type
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    pattern: str = ""

    @property
    def flag(self) -> str:
        """The flag on the command line; one that takes units does not carry them: ``--min-gap 5us``."""
        return "--" + self.name.removesuffix("_ns").removesuffix("_bytes_per_s").replace("_", "-")

    @property
    def has_unit(self) -> bool:
        """Whether the value is written with its unit: a duration, a size, a bandwidth."""
        return self.kind is int and self.name.endswith(("_ns", "_bytes", "_bytes_per_s"))

    def value(self, given: object) -> Any:
        """Check a value that was given for this parameter, and convert it to its type.

        Raises:
            UsageError: The value is not one of the choices, or not of the type.
        """
        if self.has_unit:
            from nsys_insight.text.units import parse_bytes, parse_duration

            given = (parse_duration if self.name.endswith("_ns") else parse_bytes)(str(given), flag=self.flag)
        if self.pattern and not re.fullmatch(self.pattern, str(given)):
            raise UsageError(f"{self.flag} cannot be {given!r}", self.help)
        if self.choices and given not in self.choices:
            raise UsageError(f"{self.flag} cannot be {given!r}", f"choose one of: {', '.join(self.choices)}")
        try:
            value = self.kind(given)
        except (TypeError, ValueError):
            raise UsageError(
                f"{self.flag} takes a value of type {self.kind.__name__}, not {given!r}", self.help
            ) from None
        if self.least is not None and value < self.least:
            raise UsageError(f"{self.flag} cannot be {value}", f"it is {self.least} or more: {self.help}")
        return value


def declared(name: str, entry: dict[str, Any]) -> Param:
    """The parameter that a header declares: ``[params.name]``.

    Raises:
        KeyError: It has neither default nor type, or no help.
    """
    default = entry.get("default")
    kind = TYPES[entry["type"]] if default is None else type(default)
    return Param(
        name=name,
        kind=kind,
        default=default,
        help=flow(entry["help"]),
        choices=tuple(entry.get("choices", ())),
        least=entry.get("least"),
        pattern=entry.get("pattern", ""),
    )
