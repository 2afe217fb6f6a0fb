"""Packs: one question, one `.sql` file, whose opening comment says in TOML what it asks and answers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError
from nsys_insight.paths import queries_folder
from nsys_insight.sql_file import chosen, flow, split
from nsys_insight.sqltext import literal

if TYPE_CHECKING:
    from collections.abc import Iterator
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
            from nsys_insight.units import parse_bytes, parse_duration

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


@dataclass(frozen=True)
class Pack:
    """One report. The name is the file's name; everything else is in the file.

    `details` are the columns that a table leaves out, and says so, where a row does not fit on one line.
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
    details: tuple[str, ...] = ()

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


def bind(sql: str, values: dict[str, Any]) -> str:
    """Write values in place of `$name` parameters, wherever DuckDB's own tokenizer sees one."""
    text, pieces, done = sql.encode(), [], 0
    for name, start, end in _places(sql):
        if name in values:
            pieces += [text[done:start], literal(values[name]).encode()]
            done = end
    return b"".join([*pieces, text[done:]]).decode()


def parameters(sql: str) -> set[str]:
    """The names of the `$name` parameters in a statement."""
    return {name for name, _, _ in _places(sql)}


def _places(sql: str) -> Iterator[tuple[str, int, int]]:
    """Find the parameters of a statement: name, first byte (the tokenizer counts bytes), and the byte after it."""
    import duckdb

    text = sql.encode()
    for (start, _), (following, _) in pairwise(duckdb.tokenize(sql)):
        if text[start : start + 1] == b"$" and following == start + 1:
            match = re.compile(rb"\w+").match(text, following)
            if match:
                yield match[0].decode(), start, match.end()


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
            details=tuple(facts.get("details", ())),
        )
    except KeyError as error:
        raise UsageError(f"the header of {path.name} lacks {error}", HINT) from None
    except (tomllib.TOMLDecodeError, AttributeError, TypeError) as error:
        raise UsageError(f"the header of {path.name} is not as it should be: {error}", HINT) from None


@cache
def built_in() -> dict[str, Pack]:
    """All packs of the package by name, in alphabetical order."""
    return {path.stem: _ours(path) for path in sorted(queries_folder().glob("*.sql"))}


@cache
def _ours(path: Path) -> Pack:
    return parse(path)


def named(name: str) -> Pack | None:
    """The pack of the package, else the user's, with this name or alias; the others are not read if it need not be."""
    path = queries_folder() / f"{name}.sql"
    if path in queries_folder().glob("*.sql"):
        return _ours(path)
    from nsys_insight.user_packs import load

    aliases = {alias: pack for pack in built_in().values() for alias in pack.aliases}
    return aliases.get(name) or load().packs.get(name)


def known() -> dict[str, Pack]:
    """All packs of the package and the user's own by name."""
    from nsys_insight.user_packs import load

    return built_in() | load().packs


def find(name: str) -> Pack:
    """Return the pack with this name or alias, or in this file; underscores may stand for dashes.

    Raises:
        UsageError: There is none.
    """
    from pathlib import Path

    if name.endswith(".sql"):
        return parse(Path(name))
    if pack := named(name) or named(name.replace("_", "-")):
        return pack
    import difflib

    packs = known()
    near = difflib.get_close_matches(name.replace("_", "-"), packs, n=1)
    raise UsageError(
        f"there is no report {name!r}", f"did you mean {near[0]}?" if near else f"reports: {', '.join(packs)}"
    )


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


def tables_read(sql: str) -> list[str]:
    """The tables and views that a query reads, by DuckDB's own parser; without those that it defines itself."""
    import duckdb

    with duckdb.connect() as connection:
        parsed = connection.execute(f"SELECT json_serialize_sql({literal(sql)})").fetchall()[0][0]
    defined = set(re.findall(r'"key":"(\w+)"', parsed))
    return sorted(set(re.findall(r'"table_name":"(\w+)"', parsed)) - defined)
