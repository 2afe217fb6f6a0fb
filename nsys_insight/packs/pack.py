"""Packs: one question, one `.sql` file, whose opening comment says in TOML what it asks and answers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.errors import UsageError
from nsys_insight.sql.headers import chosen, flow, split
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from pathlib import Path

HINT = "nsys-insight packs new NAME writes a pack to begin with"
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


class AgentTable(NamedTuple):
    """The part of an answer that a coding agent is shown."""

    rows: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Pack:
    """One report. The name is the file's name; everything else is in the file.

    Attributes:
        topic: What it is about, as `packs.topics` has it: its group in the help, the README and the page; "" of a
            user's own.
        place: Where it stands in its topic.
        question: The question that it answers, for the README.
        example: What to type behind its name in the README.
        page: Whether the page has it.
        agent: What a coding agent is shown of it: how many rows of which columns.
        main: The columns that matter most, in the order in which a terminal shows them; where it is too narrow, the
            others are hidden first, then the last of these.
        details: The columns that a terminal hides first, and pages, too, where nothing is known of them.
    """

    name: str
    path: Path
    sql: str
    title: str
    description: str
    reading: str
    empty: str
    params: dict[str, Param]
    columns: dict[str, str]
    aliases: tuple[str, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)
    main: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    topic: str = ""
    place: int = 0
    question: str = ""
    example: str = ""
    page: bool = True
    agent: AgentTable | None = None

    def place_of(self, column: str) -> int | None:
        """Where a terminal shows a column, among the main ones; of several traces, `trace` comes before all."""
        if column == "trace" and self.main:
            return -1
        return self.main.index(column) if column in self.main else None

    def statement(self, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the SQL with its parameters written in, and the parameters' values.

        Raises:
            UsageError: A parameter does not exist, or has an impossible value.
        """
        unknown = set(given) - set(self.params)
        if unknown:
            takes = ", ".join(self.params) or "no parameters"
            raise UsageError(f"{self.name} has no parameter {min(unknown)!r}", f"it takes {takes}")
        values: dict[str, Any] = {}
        for name, param in self.params.items():
            value = given.get(name)
            values[name] = param.default if value is None else param.value(value)
        return bind(chosen(self.sql, values), values), values


def parse(path: Path) -> Pack:
    """Read a pack's file.

    Raises:
        UsageError: The file has no header, or the header lacks something.
    """
    import tomllib

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}", "nsys-insight packs lists the packs that there are"
        ) from None
    header, sql = split(text)
    if header is None:
        raise UsageError(f"{path.name} does not begin with a header: /* … */ that holds TOML", HINT)
    try:
        facts = tomllib.loads(header)
        return Pack(
            name=path.stem,
            path=path,
            sql=sql,
            title=facts["title"],
            description=flow(facts["description"]),
            reading=flow(facts["reading"]),
            empty=flow(facts["empty"]),
            params={name: _param(name, entry) for name, entry in facts.get("params", {}).items()},
            columns=facts["columns"],
            aliases=tuple(facts.get("aliases", ())),
            notes=facts.get("notes", {}),
            main=tuple(facts.get("main", ())),
            details=tuple(facts.get("details", ())),
            topic=facts.get("topic", ""),
            place=facts.get("place", 0),
            question=facts.get("question", ""),
            example=facts.get("example", ""),
            page=facts.get("page", True),
            agent=AgentTable(facts["agent"]["rows"], tuple(facts["agent"]["columns"])) if "agent" in facts else None,
        )
    except KeyError as error:
        raise UsageError(f"the header of {path.name} lacks {error}", HINT) from None
    except (tomllib.TOMLDecodeError, AttributeError, TypeError) as error:
        raise UsageError(f"the header of {path.name} is not as it should be: {error}", HINT) from None


def _param(name: str, entry: dict[str, Any]) -> Param:
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
