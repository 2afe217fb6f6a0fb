"""A user's SQL: split into statements, with bound parameters and the line on which each one begins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import QueryError, UsageError
from nsys_insight.sql.parameters import bind, find_parameters
from nsys_insight.sql.parser import get_locked_connection, tokenize
from nsys_insight.text.suggestions import did_you_mean, find_nearest, format_suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import duckdb

_CREATE = re.compile(
    r"""CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP\s+|TEMPORARY\s+)?(TABLE|VIEW|MACRO|FUNCTION)\s+(?:IF\s+NOT\s+EXISTS\s+)?
        "?(\w+)"?(\s*\.)?""",
    re.IGNORECASE | re.VERBOSE,
)

# SHOW TABLES lists the documented views of the model, and what the user defined.
_LIST_VIEWS = r"""SELECT view_name AS name, comment AS description
FROM duckdb_views()
WHERE database_name = current_database() AND schema_name = 'main' AND view_name NOT LIKE '\_%' ESCAPE '\'
UNION ALL
SELECT table_name, comment
FROM duckdb_tables()
WHERE database_name = current_database() AND schema_name = 'main' AND table_name <> 'scope'
ORDER BY name"""
# Catalog functions and views that list all relations, and the columns with the names of database, schema and relation.
_CATALOGS = {
    "information_schema.tables": ("table_catalog", "table_schema", "table_name"),
    "information_schema.views": ("table_catalog", "table_schema", "table_name"),
    "information_schema.columns": ("table_catalog", "table_schema", "table_name"),
    "duckdb_tables()": ("database_name", "schema_name", "table_name"),
    "duckdb_views()": ("database_name", "schema_name", "view_name"),
    "duckdb_columns()": ("database_name", "schema_name", "table_name"),
}
_CATALOG = re.compile(
    r"""("[^"]*"|'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/)
        |\b(information_schema\s*\.\s*(?:tables|views|columns)\b|duckdb_(?:tables|views|columns)\s*\(\s*\))(?!\s*\.)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Statement:
    """One statement, without its semicolon and the text after it.

    `defined_name` is the name of the table, view or macro that it defines; "" for a query. `line` is the line of the
    text on which the statement begins, counted from 0.
    """

    sql: str
    defined_name: str = ""
    line: int = 0
    is_macro: bool = False


def split_statements(text: str, values: dict[str, Any] | None = None) -> list[Statement]:
    """Split a text into statements, and replace their `$name` parameters by `values`.

    Raises:
        QueryError: The text is not valid SQL, or a statement neither queries nor defines a table, view or macro.
        UsageError: A parameter has no value, or a value no parameter.
    """
    import duckdb

    try:
        text.encode()
    except UnicodeEncodeError:
        raise QueryError("the SQL is not valid UTF-8", "save it as UTF-8: iconv -t UTF-8") from None
    values = values or {}
    parameter_names = find_parameters(text)
    if missing := parameter_names - values.keys():
        name = min(missing)
        raise UsageError(f"the parameter ${name} has no value", f"add --param {name}=VALUE")
    if unknown := values.keys() - parameter_names:
        raise UsageError(f"there is no parameter ${min(unknown)} in the SQL", "write it there as $name")
    text = bind(text, values)
    try:
        statements = get_locked_connection().extract_statements(text)
    except duckdb.Error as error:
        raise explain_failure(error) from None
    user_statements, end = [], 0
    if not all(statement.query.strip() for statement in statements):
        raise QueryError(
            "PIVOT without a list of values takes DuckDB several statements",
            "list them: PIVOT kernels ON stream_id IN (7, 13) USING count(*)",
        )
    for statement in statements:
        start = max(text.find(statement.query.strip(), end), end)
        end = start + len(statement.query.strip())
        sql = _strip_semicolon(statement.query)
        sql = _LIST_VIEWS if re.fullmatch(r"\s*SHOW\s+(ALL\s+)?TABLES\s*", sql, re.IGNORECASE) else _limit_catalogs(sql)
        line = text.count("\n", 0, start + len(statement.query.strip()) - len(statement.query.strip().lstrip()))
        kind, name = _read_definition(_read_type(statement), sql)
        user_statements.append(Statement(sql, name, line, is_macro=kind in ("macro", "function")))
    return user_statements


def _limit_catalogs(sql: str) -> str:
    """Limit catalogs to the model: its documented views, and what the user defined."""

    def limit(match: re.Match[str]) -> str:
        if match[1]:  # a text, a quoted name or a comment
            return match[0]
        catalog = re.sub(r"\s", "", match[2]).lower()
        database, schema, name = _CATALOGS[catalog]
        return (
            rf"(SELECT * FROM {catalog} WHERE {database} = current_database() AND {schema} = 'main'"
            rf" AND {name} NOT LIKE '\_%' ESCAPE '\' AND {name} <> 'scope')"
        )

    return _CATALOG.sub(limit, sql)


def read_one_query(text: str) -> str:
    """Return the single query in `text`, without its semicolon and the text after it.

    Raises:
        QueryError: The text is not valid SQL, or not one query.
    """
    statements = split_statements(text)
    if len(statements) != 1 or statements[0].defined_name:
        raise QueryError("only one SELECT at a time", 'nsys-insight sql trace.sqlite "SELECT * FROM kernels LIMIT 5"')
    return statements[0].sql


def as_select(query: str) -> str:
    """Wrap a statement that returns rows but is not a SELECT, such as DESCRIBE, in a SELECT."""
    first = re.match(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(DESCRIBE|DESC|SUMMARIZE|SHOW)\b", query, re.IGNORECASE | re.DOTALL)
    return f"SELECT * FROM (\n{query}\n)" if first else query


def parse_value(text: str) -> Any:
    """Parse the value of ``--param name=value``: a number, true, false or null; else text, as is 'quoted' text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    words = {"true": True, "false": False, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    return text[1:-1].replace("''", "'") if re.fullmatch(r"'.*'", text, re.DOTALL) else text


def explain_failure(  # noqa: PLR0913 - what it may suggest, by keyword
    error: Exception,
    *,
    line: int = 0,
    names: Sequence[str] = (),
    columns: Sequence[str] = (),
    query_columns: Mapping[str, Sequence[str]] | None = None,
    describe_report: Callable[[str], str] = lambda _: "",
) -> QueryError:
    """Explain what is wrong with a statement, and where, and suggest a similar name.

    DuckDB counts lines from the first one of the statement; `line` is added to that. `names` are the names of all
    views, `columns` those of their columns, `query_columns` the columns of the views that the statement reads.
    `describe_report` returns a hint if there is a report with the name of a missing view.
    """
    message, _, location = str(error).partition("\n\nLINE ")
    location = _locate_error(location, line)
    hint = "nsys-insight schema lists the views, schema VIEW the columns of one"
    if missing := re.search(r'(?:Table with name|View with name) "?([\w.]+)"? does not exist', message):
        sentence = f"there is no view {missing[1]!r}"
        hint = (
            describe_report(missing[1]) or did_you_mean(missing[1], names, 2) or "nsys-insight schema lists the views"
        )
    elif missing := re.search(r'column "([^"]+)" not found', message, re.IGNORECASE) or re.search(
        r'does not have a column named "([^"]+)"', message
    ):
        sentence = f"there is no column {missing[1]!r}"
        longer = [name for group in (query_columns or {}).values() for name in group if missing[1] in name.split("_")]
        # DuckDB suggests no names for a column of an alias.
        likely = longer or re.findall(r'"([^"]+)"', message[missing.end() :]) or find_nearest(missing[1], columns, 3)
        hint = (
            format_suggestion(name.rpartition(".")[2] for name in likely[:3])
            or "nsys-insight schema VIEW lists the columns"
        )
        for view, view_columns in (query_columns or {}).items():
            hint += f"{'' if hint.endswith('?') else '.'} {view} has {', '.join(view_columns)}"
    elif missing := re.search(r"(?:Function|function) with name (\S+) does not exist", message):
        sentence = f"there is no function {missing[1]!r}"
        hint = format_suggestion(re.findall(r'"([^"]+)"', message[missing.end() :])[:3]) or hint
    else:
        sentence = message
    return QueryError(sentence + location, hint)


def _locate_error(text: str, line: int) -> str:
    """Format the location of an error as DuckDB does, a line and a caret, with the line number in the user's text."""
    match = re.match(r"(\d+): (.*)\n( *)\^", text)
    if not match:
        return ""
    number, source, space = match.groups()
    prefix = f"line {int(number) + line}: "
    caret = len(space) - len(f"LINE {number}: ") + len(prefix)
    return f"\n{prefix}{source}\n{' ' * caret}^"


def _strip_semicolon(query: str) -> str:
    sql = query.strip().encode()  # the tokenizer counts bytes
    for end, _ in reversed(tokenize(sql.decode())):
        if sql[end : end + 1] != b";":
            break
        sql = sql[:end]
    return sql.decode()


def _read_type(statement: duckdb.Statement) -> duckdb.StatementType | None:
    """Return the type of a statement; None for one that DuckDB's parser knows, but not its Python package.

    In 2.0.1 there is no name for UPDATE EXTENSIONS.
    """
    try:
        return statement.type
    except ValueError:
        return None


def _read_definition(kind: Any, sql: str) -> tuple[str, str]:
    """Return the kind (table, view, macro or function) and name of a statement's definition; "" for a query."""
    import duckdb

    if kind == duckdb.StatementType.SELECT:
        return "", ""
    if kind == duckdb.StatementType.EXPLAIN:
        raise QueryError(
            "EXPLAIN is not available", "nsys-insight sql QUERY --explain prints the SQL and the views that it reads"
        )
    if kind == duckdb.StatementType.COPY:
        raise QueryError(
            "COPY is not allowed: SQL writes no files",
            "write the rows of a query with -o FILE, the whole trace with nsys-insight convert",
        )
    bare = re.sub(r"^(?:\s|--[^\n]*\n|/\*.*?\*/)*", "", sql, flags=re.DOTALL)
    if kind == duckdb.StatementType.CREATE and (match := _CREATE.match(bare)):
        if match[3]:
            raise QueryError("what SQL defines is temporary and has no schema", "write CREATE TEMP VIEW name AS SELECT")
        return match[1].lower(), match[2].lower()
    raise QueryError(
        f"{' '.join(bare.split()[:2]).upper()} is not allowed: the trace is read-only",
        "begin with SELECT, FROM, WITH or CREATE TEMP TABLE name AS SELECT",
    )
