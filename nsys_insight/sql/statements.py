"""SQL that a user wrote: split into statements, each with its parameters written in and its place in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import QueryError, UsageError
from nsys_insight.sql.parameters import bind, parameters
from nsys_insight.sql.parser import locked
from nsys_insight.text.near import did_you_mean, meant, near

if TYPE_CHECKING:
    from collections.abc import Sequence

_CREATE = re.compile(
    r"""CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP\s+|TEMPORARY\s+)?(TABLE|VIEW|MACRO|FUNCTION)\s+(?:IF\s+NOT\s+EXISTS\s+)?
        "?(\w+)"?(\s*\.)?""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True)
class Statement:
    """One statement, without its semicolon and what follows it.

    `creates` is the name of the table, view or macro that it defines; a query defines none. `line` is the line of the
    text on which it begins, counted from 0.
    """

    sql: str
    creates: str = ""
    line: int = 0
    is_macro: bool = False


def split(text: str, values: dict[str, Any] | None = None) -> list[Statement]:
    """Split a text into its statements, and write `values` in place of their `$name` parameters.

    Raises:
        QueryError: It is no SQL, or a statement is neither a query nor the definition of a table, view or macro.
        UsageError: A parameter has no value, or a value no parameter.
    """
    import duckdb

    try:
        text.encode()
    except UnicodeEncodeError:
        raise QueryError("the SQL is not valid UTF-8", "save it as UTF-8: iconv -t UTF-8") from None
    values = values or {}
    used = parameters(text)
    if missing := used - values.keys():
        name = min(missing)
        raise UsageError(f"the parameter ${name} has no value", f"add --param {name}=VALUE")
    if unknown := values.keys() - used:
        raise UsageError(f"there is no parameter ${min(unknown)} in the SQL", "write it there as $name")
    text = bind(text, values)
    try:
        statements = locked().extract_statements(text)
    except duckdb.Error as error:
        raise failed(error) from None
    found, done = [], 0
    if not all(statement.query.strip() for statement in statements):
        raise QueryError(
            "PIVOT without a list of values takes DuckDB several statements",
            "list them: PIVOT kernels ON stream_id IN (7, 13) USING count(*)",
        )
    for statement in statements:
        at = max(text.find(statement.query.strip(), done), done)
        done = at + len(statement.query.strip())
        sql = _without_end(statement.query)
        line = text.count("\n", 0, at + len(statement.query.strip()) - len(statement.query.strip().lstrip()))
        kind, name = _created(statement.type, sql)
        found.append(Statement(sql, name, line, is_macro=kind in ("macro", "function")))
    return found


def one_query(text: str) -> str:
    """Return the one query that `text` holds, without its semicolon and what follows.

    Raises:
        QueryError: It is no SQL, or not one query.
    """
    found = split(text)
    if len(found) != 1 or found[0].creates:
        raise QueryError("only one SELECT at a time", 'nsys-insight sql trace.sqlite "SELECT * FROM kernels LIMIT 5"')
    return found[0].sql


def as_select(query: str) -> str:
    """Write a statement that answers and is no SELECT, such as DESCRIBE, as one."""
    first = re.match(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(DESCRIBE|DESC|SUMMARIZE|SHOW)\b", query, re.IGNORECASE | re.DOTALL)
    return f"SELECT * FROM (\n{query}\n)" if first else query


def value_of(text: str) -> Any:
    """Read the value of ``--param name=value``: a number, true, false or null; anything else, or 'quoted', is text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    words = {"true": True, "false": False, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    return text[1:-1].replace("''", "'") if re.fullmatch(r"'.*'", text, re.DOTALL) else text


def failed(error: Exception, *, line: int = 0, names: Sequence[str] = (), columns: Sequence[str] = ()) -> QueryError:
    """Say what is wrong with a statement, where, and which name may have been meant.

    DuckDB counts lines from the statement's first; `line` is what to add. `names` are the views that there are,
    `columns` what their columns are called.
    """
    message, _, place = str(error).partition("\n\nLINE ")
    place = _place(place, line)
    hint = "nsys-insight schema lists the views, schema VIEW the columns of one"
    if missing := re.search(r'(?:Table with name|View with name) "?([\w.]+)"? does not exist', message):
        said = f"there is no view {missing[1]!r}"
        hint = did_you_mean(missing[1], names, 2) or "nsys-insight schema lists the views"
    elif missing := re.search(r'column "([^"]+)" not found', message, re.IGNORECASE) or re.search(
        r'does not have a column named "([^"]+)"', message
    ):
        said = f"there is no column {missing[1]!r}"
        # DuckDB names none for a column of an alias.
        likely = re.findall(r'"([^"]+)"', message[missing.end() :]) or near(missing[1], columns, 3)
        hint = meant(name.rpartition(".")[2] for name in likely[:3]) or "nsys-insight schema VIEW lists the columns"
    elif missing := re.search(r"(?:Function|function) with name (\S+) does not exist", message):
        said = f"there is no function {missing[1]!r}"
        hint = meant(re.findall(r'"([^"]+)"', message[missing.end() :])[:3]) or hint
    else:
        said = message
    return QueryError(said + place, hint)


def _place(text: str, line: int) -> str:
    """Write DuckDB's place of an error, a line and a caret below it, with the line counted in the user's own text."""
    match = re.match(r"(\d+): (.*)\n( *)\^", text)
    if not match:
        return ""
    number, source, space = match.groups()
    prefix = f"line {int(number) + line}: "
    caret = len(space) - len(f"LINE {number}: ") + len(prefix)
    return f"\n{prefix}{source}\n{' ' * caret}^"


def _without_end(query: str) -> str:
    import duckdb

    sql = query.strip().encode()  # the tokenizer counts bytes, and leaves comments out
    for end, _ in reversed(duckdb.tokenize(sql.decode())):
        if sql[end : end + 1] != b";":
            break
        sql = sql[:end]
    return sql.decode()


def _created(kind: Any, sql: str) -> tuple[str, str]:
    """What a statement creates, table, view, macro or function, and its name; nothing of a query."""
    import duckdb

    if kind in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        return "", ""
    bare = re.sub(r"^(?:\s|--[^\n]*\n|/\*.*?\*/)*", "", sql, flags=re.DOTALL)
    if kind == duckdb.StatementType.CREATE and (match := _CREATE.match(bare)):
        if match[3]:
            raise QueryError("what SQL defines is temporary and has no schema", "write CREATE TEMP VIEW name AS SELECT")
        return match[1].lower(), match[2].lower()
    raise QueryError(
        f"{' '.join(bare.split()[:2]).upper()} is not allowed: SQL may only query, and define what it queries",
        "begin with SELECT, FROM, WITH or CREATE TEMP TABLE name AS SELECT",
    )
