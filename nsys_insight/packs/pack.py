"""Packs: one question, one `.sql` file, whose opening comment says in TOML what it asks and answers.

A parameter of a pack is a flag on the command line, a keyword in Python, and `$name` in its SQL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.errors import UsageError
from nsys_insight.paths import queries_folder
from nsys_insight.sql.headers import chosen, flow, split
from nsys_insight.sql.names import Names, mentioned, mentioned_by_ours
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from pathlib import Path

HINT = "nsys-insight packs new NAME writes a pack to start from"
_BEFORE_RANKS = 2
TYPES: dict[str, type] = {"integer": int, "number": float, "text": str, "boolean": bool}

# Reports whose parameter group_by has these choices get --stack and a note on callers.
_BY_CALLER = frozenset({"caller", "stack"})
_MEANING = (
    "the caller (the innermost Python frame, else the operator, else the program's own function),"
    " or the caller with the frames around it"
)
# Asked for nothing but these choices: what tells callers takes time to find.
_NOTE = """
FROM (
    SELECT NULL AS sentence WHERE false
    UNION ALL
    SELECT sentence FROM {} WHERE $group_by IN ('caller', 'stack')
) WHERE EXISTS (FROM answer)"""
# The view that has the note for a report on the callers of some calls, by the view that it has them from.
_OF_SOME = {"_few_callers": "_few_caller_sentence", "_gap_callers": "_gap_caller_sentence"}


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


class AgentTable(NamedTuple):
    """The part of an answer that a coding agent is shown."""

    rows: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Pack:
    """One report. The name is the file's name; everything else is in the file.

    Attributes:
        topic: What it is about, as `topics.toml` has it: its group in the help, the README and the page; "" of a
            user's own.
        place: Where it stands in its topic.
        question: The question that it answers, for the README.
        examples: What to type behind its name and the trace; the help shows them, the page of reports the first.
        page: Whether the page has it.
        agent: What a coding agent is shown of it: how many rows of which columns.
        ranks: How the ranks of a run are added up, as the header says it; empty if they are not.
        main: The columns that matter most, in the order in which a terminal shows them; where it is too narrow, the
            others are hidden first, then the last of these.
        details: The columns that a terminal hides first, but for those in `main`, and where nothing is known of them it
            shows none, nor do pages.
        shares: Of what columns in percent are a share, where their names do not say it.
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
    shares: dict[str, str] = field(default_factory=dict)
    topic: str = ""
    place: int = 0
    question: str = ""
    examples: tuple[str, ...] = ()
    page: bool = True
    agent: AgentTable | None = None
    ranks: dict[str, Any] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        """Whether it comes with the package: its SQL is tested, and not checked again when it runs."""
        return self.path.is_relative_to(queries_folder())

    @property
    def names(self) -> Names:
        """The relations that its query reads and the functions that it calls."""
        return mentioned_by_ours(self.sql) if self.is_ours else mentioned(self.sql)

    def place_of(self, column: str) -> int | None:
        """Where a terminal shows a column, among the main ones.

        Of several traces, `trace` and `rank` come before all; what is told of ranks that are added up comes behind the
        first two, which say of what it is how much.
        """
        if column in ("trace", "rank") and self.main and column not in self.columns:
            return -2 if column == "trace" else -1
        if self.main and column not in self.columns:
            return min(len(self.main), _BEFORE_RANKS)
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
        raise UsageError(f"{path} cannot be read: {error}", "nsys-insight packs lists all packs") from None
    header, sql = split(text)
    if header is None:
        raise UsageError(f"{path.name} does not begin with a header: /* … */ that holds TOML", HINT)
    try:
        facts = tomllib.loads(header)
        params = {name: declared(name, entry) for name, entry in facts.get("params", {}).items()}
        params, notes = _with_callers(params, facts.get("notes", {}), sql)
        return Pack(
            name=path.stem,
            path=path,
            sql=sql,
            title=facts["title"],
            description=flow(facts["description"]),
            reading=flow(facts["reading"]),
            empty=flow(facts["empty"]),
            params=params,
            columns=facts["columns"],
            aliases=tuple(facts.get("aliases", ())),
            notes=notes,
            main=tuple(facts.get("main", ())),
            details=tuple(facts.get("details", ())),
            shares=facts.get("shares", {}),
            topic=facts.get("topic", ""),
            place=facts.get("place", 0),
            question=facts.get("question", ""),
            examples=tuple(facts.get("examples", ())),
            page=facts.get("page", True),
            agent=AgentTable(facts["agent"]["rows"], tuple(facts["agent"]["columns"])) if "agent" in facts else None,
            ranks=facts.get("ranks", {}),
        )
    except KeyError as error:
        raise UsageError(f"the header of {path.name} lacks {error}", HINT) from None
    except (tomllib.TOMLDecodeError, AttributeError, TypeError) as error:
        raise UsageError(f"the header of {path.name} is not valid: {error}", HINT) from None


_STACK = Param("stack", int, 5, "With --group-by stack: number of frames, from the caller outwards", least=1)


def _with_callers(params: dict[str, Param], notes: dict[str, str], sql: str) -> tuple[dict[str, Param], dict[str, str]]:
    """Add the flag --stack, what its choices mean, and a note to a report that groups by caller."""
    group_by = params.get("group_by")
    if not group_by or not set(group_by.choices) >= _BY_CALLER:
        return params, notes
    explained = replace(group_by, help=f"{group_by.help}, {_MEANING}")
    view = next((sentence for callers, sentence in _OF_SOME.items() if callers in sql), "_caller_sentence")
    return {**params, "group_by": explained, "stack": _STACK}, {"callers": _NOTE.format(view), **notes}
