"""Which relations a statement reads and which functions it calls.

DuckDB parses a user's SQL (`parse_names`). Built-in SQL follows a convention that a pattern can read in a twentieth of
the time (`scan_names`): every relation is in a list of names after FROM or JOIN, and no CTE has the name of a view that
the same statement reads. A diagnosis looks up the names of 200 statements. `tests/test_names.py` compares both for
every file of `queries/`.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from nsys_insight.errors import QueryError
from nsys_insight.sql.parser import parse_tree, tokenize

# Quoted names and texts may contain the characters that start a comment.
_COMMENT = r"--[^\r\n]*|/\*.*?\*/"
_NAME_OR_TEXT_OR_COMMENT = re.compile(rf"""("[^"]*"|'(?:[^']|'')*')|{_COMMENT}""", re.DOTALL)
_TEXT_OR_COMMENT = re.compile(rf"'(?:[^']|'')*'|{_COMMENT}", re.DOTALL)
# The convention of built-in SQL. A pattern that begins with fixed letters is searched for in a third of the time.
_RELATIONS = re.compile(
    # IS DISTINCT FROM is an operator. A list of names is read to its end.
    r"(?:from|join)(?<!\w....)(?<!distinct ....)\s+((?:[\w.]+(?:\s+as\s+\w+)?\s*,\s*)*[\w.]+)\b(?!\s*\()"
)
# In the reversed text: the name of a CTE or of a function, before a parenthesis.
_BEFORE_PARENTHESIS = re.compile(r"\((?:(?:\s+dezilairetam(?:\s+ton)?)?\s+sa\s+(\w+)|\s*(\w+))")
_STATEMENT = re.compile(r"(?:'(?:[^']|'')*'|[^;])+")
# The text before the query of a definition, an INSERT or an EXPLAIN.
_BEFORE_QUERY = re.compile(
    r"""\s*(?:
        CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP(?:ORARY)?\s+)?
            (?:(?:TABLE|VIEW)\b[^;]*?\bAS\b|(?P<macro>(?:MACRO|FUNCTION)\b[^;]*?\)\s*AS\b(?:\s*TABLE\b)?))
        | INSERT\s+INTO\s+[\w."]+\s*(?:\([^)]*\)\s*)?(?:BY\s+NAME\b)?
        | EXPLAIN\b(?:\s*ANALYZE\b)?
    )""",
    re.IGNORECASE | re.VERBOSE,
)


class Names(NamedTuple):
    """The names in a text, in lower case: its relations as (schema or "", name), and the functions that it calls.

    `queries` is the number of queries in the text. It is 0 for an invalid text, for one with other statements, and
    where nothing counted the queries.
    """

    relations: frozenset[tuple[str, str]]
    functions: frozenset[str]
    queries: int = 0

    @property
    def model_relations(self) -> frozenset[str]:
        """Return the relations that can be views of the model: those in the main schema, or without a schema."""
        return frozenset(name for schema, name in self.relations if schema in ("", "main"))

    @property
    def model_names(self) -> frozenset[str]:
        """Return the names that can be views or macros of the model."""
        return self.model_relations | self.functions

    def relations_in(self, schema: str) -> frozenset[str]:
        """Return the relations that the text qualifies with this schema."""
        return frozenset(name for qualifier, name in self.relations if qualifier == schema)


@cache
def parse_names(sql: str) -> Names:
    """Parse the relations and functions that a user's statements use, without the CTEs that they define.

    For a statement that DuckDB's parser rejects, every word is a name. So all relations that it can refer to exist when
    it runs, and DuckDB reports what is wrong with it.

    Raises:
        QueryError: Its expressions are nested too deeply.
    """
    try:
        return _parse_names(sql)
    except RecursionError:
        raise QueryError(
            "the SQL is nested too deeply", "write it as several queries: WITH a AS (…), b AS (…)"
        ) from None


def _parse_names(sql: str) -> Names:
    if not _BEFORE_QUERY.match(_without_comments(sql)) and (statements := parse_tree(sql)) is not None:
        return _read_tree(statements)._replace(queries=len(statements))
    per_statement = [_parse_statement(statement) for statement in _STATEMENT.findall(_without_comments(sql))]
    relations = (names.relations for names in per_statement)
    return Names(frozenset().union(*relations), frozenset().union(*(names.functions for names in per_statement)))


@cache
def scan_names(sql: str) -> Names:
    """Scan a built-in statement for relations and functions; functions include SQL keywords before a parenthesis."""
    text = _TEXT_OR_COMMENT.sub(" ", sql.lower())
    before_parenthesis = _BEFORE_PARENTHESIS.findall(text[::-1])
    ctes = {cte[::-1] for cte, _ in before_parenthesis}
    functions = frozenset(function[::-1] for _, function in before_parenthesis if function)
    qualified = (name.split()[0].rpartition(".") for names in _RELATIONS.findall(text) for name in names.split(","))
    relations = {(schema, name) for schema, _, name in qualified if schema or name not in ctes}
    return Names(frozenset(relations), functions)


def _without_comments(sql: str) -> str:
    return _NAME_OR_TEXT_OR_COMMENT.sub(lambda piece: piece[1] or " ", sql)


def _parse_statement(statement: str) -> Names:
    before = _BEFORE_QUERY.match(statement)
    query = statement[before.end() :] if before else statement
    parsed = parse_tree(query) if query.strip() else []
    if parsed is None and before and before["macro"]:
        parsed = parse_tree(f"SELECT ({query})")
    if parsed is not None:
        return _read_tree(parsed)
    all_words = find_words(statement)
    schemas = re.findall(r"\b(\w+)\s*\.\s*(\w+)", _TEXT_OR_COMMENT.sub(" ", statement.lower()))
    return Names(frozenset({("", word) for word in all_words} | set(schemas)), all_words)


def _read_tree(statements: list[dict[str, Any]]) -> Names:
    relations: set[tuple[str, str]] = set()
    functions: set[str] = set()
    _collect(statements, frozenset(), relations, functions)
    return Names(frozenset(relations), frozenset(functions))


def _collect(node: Any, defined: frozenset[str], relations: set[tuple[str, str]], functions: set[str]) -> None:
    """Add the names in a node of the tree; `defined` are the names that the enclosing queries define."""
    if isinstance(node, list):
        for child in node:
            _collect(child, defined, relations, functions)
    if not isinstance(node, dict):
        return
    if node.get("type") == "RECURSIVE_CTE_NODE":
        defined |= {node["cte_name"].lower()}
    for entry in node.get("cte_map", {}).get("map", ()):
        _collect(entry["value"], defined, relations, functions)  # a CTE sees the CTEs before it
        defined |= {entry["key"].lower()}
    schema, name = node.get("schema_name", "").lower(), node.get("table_name", "").lower()
    if name and (schema or name not in defined):
        relations.add((schema, name))
    if "function_name" in node:
        functions.add(node["function_name"].lower())
    for key, value in node.items():
        if isinstance(value, dict | list) and key != "cte_map":
            _collect(value, defined, relations, functions)


def list_tables_read(sql: str) -> list[str]:
    """List the tables and views that a query reads, in any schema."""
    return sorted({name for _, name in parse_names(sql).relations})


@cache
def find_words(sql: str) -> frozenset[str]:
    """Find all words of a statement outside of comments and texts, in lower case."""
    return frozenset(re.findall(r"\w+", _TEXT_OR_COMMENT.sub(" ", sql.lower())))


def find_called_functions(sql: str) -> set[str]:
    """Find the names that a statement calls as functions, with DuckDB's own tokenizer, in lower case."""
    import duckdb

    # DuckDB's parser reads characters without width, and other separators, as spaces. Its tokenizer does not.
    sql = "".join(char if char.isprintable() or char == "\n" else " " for char in sql)
    text = sql.encode()  # the tokenizer counts bytes
    names = set()
    for (start, kind), (following, _) in pairwise(tokenize(sql)):
        if text[following : following + 1] == b"(" and kind in (
            duckdb.token_type.identifier,
            duckdb.token_type.keyword,
        ):
            word = text[start:following].decode().strip()
            names.add((word[1:].partition('"')[0] if word[0] == '"' else _leading_name(word)).lower())
    return names


def _leading_name(text: str) -> str:
    match = re.match(r"\w+", text)
    return match[0] if match else ""
