"""Which relations a statement reads and which functions it calls.

SQL of a user is parsed by DuckDB. Our own SQL keeps to a convention that a pattern can read, in a twentieth of the
time: every relation is in a list of names after FROM or JOIN, and no CTE has the name of a view that the same statement
reads. A diagnosis asks this of 200 statements. `tests/test_names.py` compares both for every file of `queries/`.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from nsys_insight.sql.parser import tree

# A quoted name or a text may contain what begins a comment elsewhere.
_COMMENT = r"--[^\r\n]*|/\*.*?\*/"
_NAME_OR_TEXT_OR_COMMENT = re.compile(rf"""("[^"]*"|'(?:[^']|'')*')|{_COMMENT}""", re.DOTALL)
_TEXT_OR_COMMENT = re.compile(rf"'(?:[^']|'')*'|{_COMMENT}", re.DOTALL)
# The convention of our own SQL.
_RELATIONS = re.compile(
    # IS DISTINCT FROM is an operator. All names of a list are read.
    r"(?<!distinct )\b(?:from|join)\s+((?:[\w.]+(?:\s+as\s+\w+)?\s*,\s*)*[\w.]+)\b(?!\s*\()"
)
_CALL = re.compile(r"\b(\w+)\s*\(")
_CTE = re.compile(r"\b(\w+)\s+as\s+(?:(?:not\s+)?materialized\s+)?\(")
_STATEMENT = re.compile(r"(?:'(?:[^']|'')*'|[^;])+")
# What stands before the query of a definition, of an INSERT and of an EXPLAIN.
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
    """What a text mentions, in lower case: relations as (schema or "", name), and the functions it calls.

    `queries` is the number of queries that it consists of; 0 if it is no SQL, contains anything else, or is not known.
    """

    relations: frozenset[tuple[str, str]]
    functions: frozenset[str]
    queries: int = 0

    @property
    def relations_of_model(self) -> frozenset[str]:
        """What may be a view of the model: relations of the main schema, or of none that is named."""
        return frozenset(name for schema, name in self.relations if schema in ("", "main"))

    @property
    def of_model(self) -> frozenset[str]:
        """What may be a view or a macro of the model."""
        return self.relations_of_model | self.functions

    def of_schema(self, schema: str) -> frozenset[str]:
        """The relations of a schema that is named."""
        return frozenset(name for of, name in self.relations if of == schema)


@cache
def mentioned(sql: str) -> Names:
    """Parse what the statements of a user's text read and call, without the CTEs they define.

    A statement that DuckDB's parser rejects mentions every word in it: whatever it means then exists when it runs, and
    DuckDB says what is wrong with it.
    """
    if not _BEFORE_QUERY.match(_without_comments(sql)) and (statements := tree(sql)) is not None:
        return _of_tree(statements)._replace(queries=len(statements))
    found = [_of_statement(statement) for statement in _STATEMENT.findall(_without_comments(sql))]
    relations = (names.relations for names in found)
    return Names(frozenset().union(*relations), frozenset().union(*(names.functions for names in found)))


@cache
def mentioned_by_ours(sql: str) -> Names:
    """Read what a statement of our own reads and calls; functions include SQL keywords before a parenthesis."""
    text = _TEXT_OR_COMMENT.sub(" ", sql.lower())
    ctes = set(_CTE.findall(text))
    listed = (one.split()[0].rpartition(".") for names in _RELATIONS.findall(text) for one in names.split(","))
    relations = {(schema, name) for schema, _, name in listed if schema or name not in ctes}
    return Names(frozenset(relations), frozenset(_CALL.findall(text)))


def _without_comments(sql: str) -> str:
    return _NAME_OR_TEXT_OR_COMMENT.sub(lambda piece: piece[1] or " ", sql)


def _of_statement(statement: str) -> Names:
    before = _BEFORE_QUERY.match(statement)
    query = statement[before.end() :] if before else statement
    parsed = tree(query) if query.strip() else []
    if parsed is None and before and before["macro"]:
        parsed = tree(f"SELECT ({query})")
    if parsed is not None:
        return _of_tree(parsed)
    every = words(statement)
    schemas = re.findall(r"\b(\w+)\s*\.\s*(\w+)", _TEXT_OR_COMMENT.sub(" ", statement.lower()))
    return Names(frozenset({("", word) for word in every} | set(schemas)), every)


def _of_tree(statements: list[dict[str, Any]]) -> Names:
    relations: set[tuple[str, str]] = set()
    functions: set[str] = set()
    _collect(statements, frozenset(), relations, functions)
    return Names(frozenset(relations), frozenset(functions))


def _collect(node: Any, defined: frozenset[str], relations: set[tuple[str, str]], functions: set[str]) -> None:
    """Add what a part of a query mentions; `defined` are the names that the queries around it define."""
    if isinstance(node, list):
        for each in node:
            _collect(each, defined, relations, functions)
    if not isinstance(node, dict):
        return
    if node.get("type") == "RECURSIVE_CTE_NODE":
        defined |= {node["cte_name"].lower()}
    for entry in node.get("cte_map", {}).get("map", ()):
        _collect(entry["value"], defined, relations, functions)  # which knows those before it
        defined |= {entry["key"].lower()}
    schema, name = node.get("schema_name", "").lower(), node.get("table_name", "").lower()
    if name and (schema or name not in defined):
        relations.add((schema, name))
    if "function_name" in node:
        functions.add(node["function_name"].lower())
    for key, value in node.items():
        if isinstance(value, dict | list) and key != "cte_map":
            _collect(value, defined, relations, functions)


def tables_read(sql: str) -> list[str]:
    """List the tables and views that a query reads, in any schema."""
    return sorted({name for _, name in mentioned(sql).relations})


@cache
def words(sql: str) -> frozenset[str]:
    """All words of a statement but those of its comments and texts, in small letters."""
    return frozenset(re.findall(r"\w+", _TEXT_OR_COMMENT.sub(" ", sql.lower())))


def called(sql: str) -> set[str]:
    """The names that a statement calls as functions, by DuckDB's own tokenizer, in small letters."""
    import duckdb

    # To DuckDB's parser, but not to its tokenizer, what has no width or breaks no line is a space as any other.
    sql = "".join(char if char.isprintable() or char == "\n" else " " for char in sql)
    text = sql.encode()  # the tokenizer counts bytes
    names = set()
    for (start, kind), (following, _) in pairwise(duckdb.tokenize(sql)):
        if text[following : following + 1] == b"(" and kind in (
            duckdb.token_type.identifier,
            duckdb.token_type.keyword,
        ):
            word = text[start:following].decode().strip()
            names.add((word[1:].partition('"')[0] if word[0] == '"' else _name_at(word)).lower())
    return names


def _name_at(text: str) -> str:
    found = re.match(r"\w+", text)
    return found[0] if found else ""
