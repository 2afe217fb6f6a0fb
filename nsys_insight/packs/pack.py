"""Packs: one report per `.sql` file, with a TOML header in the opening comment.

A parameter of a pack is a flag on the command line, a keyword in Python, and `$name` in its SQL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError, describe_cause
from nsys_insight.packs.notes import Note, NoteHeader, shared_notes
from nsys_insight.paths import queries_folder
from nsys_insight.records import RecordError, make_record, parse_toml
from nsys_insight.sql.headers import drop_branches, join_lines, split_header
from nsys_insight.sql.names import Names, parse_names, scan_names
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

HINT = "nsys-insight packs new NAME writes a pack to start from"
_COLUMNS_BEFORE_RANKS = 2
# Keys of headers that differ from the fields of the dataclasses.
_KEYS = {"position": "place", "minimum": "least", "param_headers": "params", "note_headers": "notes"}
# Arguments of `Trace.answer`, which takes parameters by name.
_RESERVED_NAMES = frozenset({"report", "steps", "ranks"})
TYPES: dict[str, type] = {"integer": int, "number": float, "text": str, "boolean": bool}

# Reports whose parameter group_by has these choices get the flag --stack and a note about callers.
_CALLER_CHOICES = frozenset({"caller", "stack"})
_CALLER_MEANING = (
    "the caller (the innermost Python frame, else the operator, else the program's own function),"
    " or the caller with the frames around it"
)
# The shared note of a report about the callers of some calls, by the view that lists these callers.
_CALLER_NOTES = {"_sync_callers": "sync_callers", "_gap_callers": "gap_callers"}


@dataclass(frozen=True)
class Param:
    """A parameter of a pack: `$name` in its SQL, a flag on the command line, a keyword in Python.

    Its type follows from its default. Without a default, the header has a `type`, and the value is NULL unless it is
    set. `pattern` is a regular expression that a text must match in full. If it is given, the pack `report` answers,
    which has it as well. `names` is a query of what it can name, and `noun` the word for that.
    """

    name: str
    kind: type
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    pattern: str = ""
    report: str = ""
    names: str = ""
    noun: str = ""

    @property
    def flag(self) -> str:
        """Return the flag on the command line, without the unit in the name: ``--min-gap 5us``."""
        return "--" + self.name.removesuffix("_ns").removesuffix("_bytes_per_s").replace("_", "-")

    @property
    def has_unit(self) -> bool:
        """Return whether the value is written with a unit: a duration, a size, a bandwidth."""
        return self.kind is int and self.name.endswith(("_ns", "_bytes", "_bytes_per_s"))

    @property
    def is_parameter_count(self) -> bool:
        """Return whether the value is the number of a model's parameters: the command line also takes its config."""
        return self.kind is float and self.name == "parameters"

    def value(self, raw: object) -> Any:
        """Check a value of this parameter, and convert it to the parameter's type.

        Raises:
            UsageError: The value is not one of the choices, or not of the type.
        """
        if self.has_unit:
            from nsys_insight.text.units import parse_bytes, parse_duration

            raw = (parse_duration if self.name.endswith("_ns") else parse_bytes)(str(raw), flag=self.flag)
        if self.pattern and not re.fullmatch(self.pattern, str(raw)):
            raise UsageError(f"{self.flag} cannot be {raw!r}", self.help)
        if self.choices and raw not in self.choices:
            raise UsageError(f"{self.flag} cannot be {raw!r}", f"choose one of: {', '.join(self.choices)}")
        try:
            value = self.kind(raw)
        except (TypeError, ValueError):
            raise UsageError(
                f"{self.flag} takes a value of type {self.kind.__name__}, not {raw!r}", self.help
            ) from None
        if self.minimum is not None and value < self.minimum:
            raise UsageError(f"{self.flag} cannot be {value}", f"it is {self.minimum} or more: {self.help}")
        return value


@dataclass(frozen=True)
class ParamHeader:
    """The table ``[params.NAME]`` of a header; see CONTRIBUTING.md."""

    help: str
    default: bool | int | float | str | None = None
    type: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    pattern: str = ""
    report: str = ""
    names: str = ""
    noun: str = ""

    def make_param(self, name: str) -> Param:
        """Make the parameter.

        Raises:
            RecordError: It has neither a default nor a type, or the pattern or the name is not valid.
        """
        if name in _RESERVED_NAMES:
            raise RecordError(f"params.{name} needs another name: every report takes {name!r}")
        if self.default is None and self.type not in TYPES:
            raise RecordError(f"params.{name} lacks 'default' or 'type' ({', '.join(TYPES)})")
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise RecordError(f"params.{name}.pattern is not valid: {error}") from None
        kind = TYPES[self.type] if self.default is None else type(self.default)
        text = join_lines(self.help)
        return Param(
            name, kind, self.default, text, self.choices, self.minimum, self.pattern, self.report, self.names, self.noun
        )


@dataclass(frozen=True, kw_only=True)
class Header:
    """The header of a pack; see CONTRIBUTING.md.

    Attributes:
        advice: What to do where the answer is empty because CUDA was not traced; part of what an empty answer means.
        param_headers: Its parameters as declared; `params` in the header.
        note_headers: Its notes as declared; `notes` in the header.
        topic: Its topic in `topics.toml`: its group in the help, the README and the page; "" for a user's pack.
        position: Its position in the topic; `place` in the header.
        question: The question that it answers, for the README.
        examples: Example arguments after its name and the trace. The help shows all, the page of reports the first.
        page: Whether the page shows it.
        ranks: How to sum it over the ranks of a run, as in the header (`rank_sums`); empty if it cannot be summed.
        main: The columns that matter most, in the order in which a terminal shows them. A terminal that is too narrow
            hides the other columns first, then these from the last.
        details: The columns that a terminal hides first, except those in `main`. Terminals and pages also hide them if
            all their values are unknown.
        shares: The denominators of columns in percent whose names do not contain it.
    """

    title: str
    description: str
    reading: str
    empty: str
    columns: dict[str, str]
    advice: str = ""
    param_headers: dict[str, ParamHeader] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    note_headers: dict[str, NoteHeader] = field(default_factory=dict)
    main: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    shares: dict[str, str] = field(default_factory=dict)
    topic: str = ""
    position: int = 0
    question: str = ""
    examples: tuple[str, ...] = ()
    page: bool = True
    in_help: bool = False
    ranks: dict[str, Any] = field(default_factory=dict)


def _check_characters(header: Header) -> None:
    """Refuse texts that would control a terminal: the help shows them.

    Raises:
        RecordError: A text has a control character.
    """
    texts = [
        header.title,
        header.description,
        header.reading,
        header.empty,
        header.advice,
        header.question,
        *header.examples,
    ]
    for text in [*texts, *header.columns.values(), *(param.help for param in header.param_headers.values())]:
        if bad := next((char for char in text if not char.isprintable() and char not in "\n\t"), ""):
            raise RecordError(f"a text has the control character {bad!a}")


@dataclass(frozen=True, kw_only=True)
class Pack(Header):
    """One report. The name is the file's name; everything else is in the file."""

    name: str
    path: Path
    sql: str
    params: dict[str, Param]
    notes: dict[str, Note]

    @property
    def is_built_in(self) -> bool:
        """Return whether it comes with the package. Tests check its SQL, so it is not checked again when it runs."""
        return self.path.is_relative_to(queries_folder())

    @property
    def empty_text(self) -> str:
        """Return what an empty answer means, with the advice for a trace without CUDA."""
        return "; ".join(filter(None, (self.empty, self.advice)))

    @property
    def names(self) -> Names:
        """Return the relations that its query reads and the functions that it calls."""
        return scan_names(self.sql) if self.is_built_in else parse_names(self.sql)

    def with_notes(self, names: Collection[str]) -> Pack:
        """Return the report with only these notes, and without a topic: no note says which data are missing."""
        return replace(self, notes={name: note for name, note in self.notes.items() if name in names}, topic="")

    def display_position(self, column: str) -> int | None:
        """Return the position of a column among the main columns of a terminal; None for other columns.

        For several traces, `trace` and `rank` come first. For summed ranks, the added columns come after the first two
        main columns.
        """
        if column in ("trace", "rank") and self.main and column not in self.columns:
            return -2 if column == "trace" else -1
        if self.main and column not in self.columns:
            return min(len(self.main), _COLUMNS_BEFORE_RANKS)
        return self.main.index(column) if column in self.main else None

    def statement(self, params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the SQL with bound parameters, and the values of the parameters.

        Raises:
            UsageError: A parameter does not exist, or has an impossible value.
        """
        unknown = set(params) - set(self.params)
        if unknown:
            takes = ", ".join(self.params) or "no parameters"
            raise UsageError(f"{self.name} has no parameter {min(unknown)!r}", f"it takes {takes}")
        values: dict[str, Any] = {}
        for name, param in self.params.items():
            value = params.get(name)
            values[name] = param.default if value is None else param.value(value)
        return bind(drop_branches(self.sql, values), values), values


def parse_pack(path: Path) -> Pack:
    """Read the file of a pack.

    Raises:
        UsageError: The file has no header, or the header is incomplete or invalid.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read: {describe_cause(error)}", "nsys-insight packs lists all packs"
        ) from None
    header, sql = split_header(text)
    if header is None:
        raise UsageError(f"{path.name} does not begin with a header: /* … */ that holds TOML", HINT)
    try:
        declared = make_record(Header, parse_toml(header), names=_KEYS)
        _check_characters(declared)
        params = {name: entry.make_param(name) for name, entry in declared.param_headers.items()}
        notes = {
            name: entry.make_note(name, shared_notes(), needs_query=True)
            for name, entry in declared.note_headers.items()
        }
        params, notes = _add_callers(params, notes, sql)
        texts = {name: join_lines(getattr(declared, name)) for name in ("description", "reading", "empty")}
        return Pack(name=path.stem, path=path, sql=sql, params=params, notes=notes, **vars(declared) | texts)
    except RecordError as error:
        raise UsageError(f"the header of {path.name} is not valid: {error}", HINT) from None


_STACK = Param("stack", int, 5, "With --group-by stack: number of frames, from the caller outwards", minimum=1)


def _add_callers(
    params: dict[str, Param], notes: dict[str, Note], sql: str
) -> tuple[dict[str, Param], dict[str, Note]]:
    """Add the flag --stack, an explanation of the choices, and a note to a report that groups by caller."""
    group_by = params.get("group_by")
    if not group_by or not set(group_by.choices) >= _CALLER_CHOICES:
        return params, notes
    explained_group_by = replace(group_by, help=f"{group_by.help}, {_CALLER_MEANING}")
    note = next((note for view, note in _CALLER_NOTES.items() if view in sql), "callers")
    return {**params, "group_by": explained_group_by, "stack": _STACK}, {"callers": shared_notes()[note], **notes}
