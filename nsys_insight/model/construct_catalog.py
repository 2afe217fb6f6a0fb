"""The catalog of constructs: what an operation is, whether it is efficient, and what replaces it.

A construct is what a person would call an operation: "LU factorization of a batch", "radix sort". The files of
`queries/catalog/constructs`, one per domain, have its names and what is known about it. A user's own files come first:
those of the folder `constructs` in ``$NSYS_INSIGHT_CATALOG_DIR``, else in the folder `catalog` of the user's
configuration.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError
from nsys_insight.paths import package_folder, queries_folder, user_folder
from nsys_insight.records import RecordError, check, make_record, parse_toml
from nsys_insight.sql.headers import join_lines
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FOLDER = "constructs"
# Syntax that is not read: classes in classes, quotes, characters by number, names of groups.
_OTHER_SYNTAX = re.compile(r"\[\^?\[:|\\[pPQCx0-7]|\(\?[^:)a-z]")
# What stands for different texts: a flag, a class, an escape, any character, a position.
_VARIABLE_TEXT = re.compile(r"\(\?[a-z]+\)|\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|[.^$]")
_GROUP = re.compile(r"\((?:\?[a-z]*:)?([^()]*)\)(?![?*{])")
_OPTIONAL_GROUP = re.compile(r"\([^()]*\)(?:[?*]|\{[^}]*\})")
# What may be absent, or stand there several times.
_REPEATED_TEXT = re.compile(r".(?:[?*]|\{[^}]*\})\??|\+")
# Keys of the files that differ from the fields.
_KEYS = {"description": "what", "origin": "seen", "condition": "where"}


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """What does the work of a construct better, and when.

    Conditions and estimates are SQL over the columns of a row of `step_operations`. Texts are as in the header of a
    finding's rule.

    `title`: the problem, as a title. `when`: the condition. `evidence`: clauses over the columns of `_replacements`.
    `fix`: the cure for each framework, one of them for `any`. `skip_if`: when it does not hold.
    `estimate_low` and `estimate_high`: ns per step that the replacement takes on the GPU for what this row does; less
    than 0 where it also shortens other operations. `launches`: operations per step that are left of this row; all of
    them where it is empty. `saving_low` and `saving_high` instead of these: ns per step that are saved, where the cure
    changes how the step runs.
    `includes`: other constructs whose operations the replacement also does: their time counts as well.
    `explains`: the rules whose findings are shown below this one, in addition to the generic ones. `blocks`: the
    symptoms and rules whose cure needs this one to be gone first. `reported_by`: the rules whose findings report this;
    NSI701 leaves it to them.
    """

    title: str
    when: str
    fix: dict[str, str]
    skip_if: str
    source: str
    estimate_low: str = ""
    estimate_high: str = ""
    saving_low: str = ""
    saving_high: str = ""
    evidence: tuple[str, ...] = ()
    launches: str = ""
    includes: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    reported_by: tuple[str, ...] = ()
    effort: str = "line"
    numerics: str = "same"


@dataclass(frozen=True, kw_only=True)
class Construct:
    """One entry of the catalog.

    `description` (`what` in the file): what it does, in one or two sentences. `library`: the library or framework that
    has it.
    `kernels`: regular expressions (RE2) that are searched in the demangled name of a kernel. `operations`: the same for
    the names of other operations and of API calls: "H2D copy", "memset", "cudaMalloc"; `condition` (`where` in the
    file) is what these must meet. `examples`: names that are this construct. `not_examples`: similar names that are
    not. `origin` (`seen` in the file): the trace or the source file that has these names, or "unseen".
    `efficient`: the condition under which nothing is to gain. `is_generic`: tried after all entries that are not.

    An entry without patterns is a kind. It names nothing: its replacements count for the operations of any construct
    that meet `where` and that the entry of their construct does not judge.
    """

    name: str
    description: str
    library: str
    origin: str
    kernels: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    condition: str = ""
    examples: tuple[str, ...] = ()
    not_examples: tuple[str, ...] = ()
    efficient: str = ""
    is_generic: bool = False
    replacement: tuple[Replacement, ...] = ()
    domain: str = ""

    @property
    def is_kind(self) -> bool:
        """Return whether this entry is a kind."""
        return not (self.kernels or self.operations)


def read_constructs() -> list[Construct]:
    """Read all entries in the order in which they are tried.

    Raises:
        UsageError: A file of the user is not valid.
    """
    entries = [*_read_user_entries(), *_read_built_in()]
    return sorted(entries, key=lambda entry: entry.is_generic)


def write_macros() -> list[str]:
    """Write the SQL that creates the macros of the catalog: its tables, constructs() and construct_replacements()."""
    entries = read_constructs()
    return [_write_construct_table(entries), _write_replacement_table(entries)]


def check_conditions(entries: Sequence[Construct], columns: Sequence[str]) -> None:
    """Bind all conditions and estimates of entries over an empty row with these columns, each with its type.

    Raises:
        UsageError: An expression is not valid.
    """
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE operation ({', '.join(columns)})")
        for entry in entries:
            for name, expression in _list_expressions(entry):
                try:
                    connection.execute(f"SELECT {expression} FROM operation").fetchall()
                except duckdb.Error as error:
                    reason = str(error).partition("\n")[0]
                    raise UsageError(f"{name} of the construct {entry.name!r} is not valid: {reason}") from None


def _list_expressions(entry: Construct) -> list[tuple[str, str]]:
    conditions = [("where", entry.condition), ("efficient", entry.efficient)]
    conditions += [("when", replacement.when) for replacement in entry.replacement]
    numbers = [
        (name, expression)
        for replacement in entry.replacement
        for name, expression in (
            ("estimate_low", replacement.estimate_low),
            ("estimate_high", replacement.estimate_high),
            ("launches", replacement.launches),
            ("saving_low", replacement.saving_low),
            ("saving_high", replacement.saving_high),
        )
    ]
    patterns = [("a pattern", f"regexp_matches('', {literal(_join(entry.kernels))})")] if entry.kernels else []
    patterns += [("a pattern", f"regexp_matches('', {literal(_join(entry.operations))})")] if entry.operations else []
    return [
        *((name, f"({text})::BOOLEAN") for name, text in conditions if text),
        *((name, f"({text})::DOUBLE") for name, text in numbers if text),
        *patterns,
    ]


@cache
def _read_built_in() -> tuple[Construct, ...]:
    folder = queries_folder() / "catalog" / _FOLDER
    return tuple(entry for path in sorted(folder.glob("*.toml")) for entry in parse_file(path))


def parse_file(path: Path) -> list[Construct]:
    """Read the entries of a file.

    Raises:
        RecordError: It has another format.
    """
    tables = parse_toml(path.read_text(encoding="utf-8"))
    rows = check(tables.get("construct"), list[Any] | None, "construct")
    if rows is None:
        raise RecordError("it lacks 'construct'")
    entries = [make_record(Construct, row, f"construct[{number}]", names=_KEYS) for number, row in enumerate(rows)]
    if nameless := [entry.name for entry in entries if entry.is_kind and not entry.condition]:
        raise RecordError(f"the construct {nameless[0]!r} has neither 'kernels' nor 'operations' nor 'where'")
    return [replace(entry, domain=path.stem) for entry in entries]


def _read_user_entries() -> list[Construct]:
    """Read the user's files.

    Raises:
        UsageError: A file does not have the format of the catalog, or an expression in it is not valid.
    """
    entries: list[Construct] = []
    for path in sorted((user_folder("catalog") / _FOLDER).glob("*.toml")):
        hint = "write it as the files of queries/catalog/constructs (docs/constructs.md), or move it away"
        try:
            own_entries = parse_file(path)
            check_conditions(own_entries, list_columns())
        except (OSError, ValueError, UsageError) as error:
            raise UsageError(f"{path} is not valid: {str(error).partition(chr(10))[0]}", hint) from None
        entries += own_entries
    return entries


def list_columns() -> list[str]:
    """Return the columns of `step_operations` that conditions can use, each with its type."""
    declared = parse_toml((package_folder() / "facts" / "step_operations" / "tables.toml").read_text(encoding="utf-8"))
    return [column.partition(":")[0] for column in declared["tables"]["step_operations"]["columns"]]


def _join(patterns: Sequence[str]) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns)


def find_texts(patterns: Sequence[str]) -> list[str]:
    """Return lower-case texts: each name that matches has one of them. If none is known, "" is one.

    Names are searched for these first: compiling all patterns of the catalog takes longer than most questions.
    """
    return sorted(set[str]().union(*map(_find_needed, patterns)))


def _find_needed(pattern: str) -> set[str]:
    """Return texts: each match of a pattern has one of them.

    A match has one complete alternative in it, and so the longest text of that. Alternatives are what stands between
    two `|`: at the top, or in groups as well.
    """
    if _OTHER_SYNTAX.search(pattern):
        return {""}
    choices = []
    for opens_groups in (True, False):
        text, inner = "", _VARIABLE_TEXT.sub("\0", pattern)
        while text != inner:
            text, inner = inner, _GROUP.sub(r"\0\1\0" if opens_groups else "\0", _OPTIONAL_GROUP.sub("\0", inner))
        alternatives = _REPEATED_TEXT.sub("\0", text).lower().split("|")
        choices.append({max(alternative.split("\0"), key=len) for alternative in alternatives})
    return max(choices, key=lambda texts: min(map(len, texts)))


def _write_construct_table(entries: Sequence[Construct]) -> str:
    columns = (
        "construct", "domain", "what", "library", "kernels", "kernel_texts", "operations", "condition", "efficient",
        "is_kind", "place",
    )  # fmt: skip
    rows = [
        (
            entry.name, entry.domain, join_lines(entry.description), entry.library,
            _join(entry.kernels) or None, find_texts(entry.kernels), _join(entry.operations) or None,
            entry.condition or None, entry.efficient or None, entry.is_kind,
            number,
        )
        for number, entry in enumerate(entries)
    ]  # fmt: skip
    return _write_table("constructs", columns, rows)


def _write_replacement_table(entries: Sequence[Construct]) -> str:
    columns = (
        "construct", "replacement", "title", "condition", "evidence", "fix", "skip_if", "estimate_low",
        "estimate_high", "saving_low", "saving_high", "launches", "includes", "explains", "blocks", "reported_by",
        "effort", "numerics", "source",
    )  # fmt: skip
    rows = [
        (
            entry.name, number, join_lines(item.title), item.when, list(map(join_lines, item.evidence)),
            {framework: join_lines(text) for framework, text in item.fix.items()}, join_lines(item.skip_if),
            item.estimate_low or None, item.estimate_high or None, item.saving_low or None, item.saving_high or None,
            item.launches or None, list(item.includes), list(item.explains),
            list(item.blocks), list(item.reported_by),
            item.effort, item.numerics, join_lines(item.source),
        )
        for entry in entries
        for number, item in enumerate(entry.replacement)
    ]  # fmt: skip
    return _write_table("construct_replacements", columns, rows)


def _write_table(name: str, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> str:
    """Write a table and a macro that reads it: DuckDB would bind each cell again for each use of a list of values."""
    nulls = ", ".join(f"NULL::VARCHAR AS {column}" for column in columns)
    values = ",\n".join(f"({', '.join(map(_write_cell, row))})" for row in rows)
    select = f"FROM (VALUES\n{values}\n) AS t({', '.join(columns)})" if rows else f"SELECT {nulls} WHERE false"
    return (
        f"CREATE SCHEMA IF NOT EXISTS internal; CREATE OR REPLACE TABLE internal.{name} AS {select};"
        f" CREATE OR REPLACE MACRO {name}() AS TABLE FROM internal.{name}"
    )


def _write_cell(cell: object) -> str:
    return f"{literal(cell)}::VARCHAR[]" if isinstance(cell, list) else literal(cell)
