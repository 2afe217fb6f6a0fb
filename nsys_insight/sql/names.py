"""Which names a statement reads or calls, by DuckDB's own parser: its relations, its functions, and nothing else."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from nsys_insight.sql.known import known, without_comments
from nsys_insight.sql.parser import tree

_TEXT_OR_COMMENT = re.compile(r"'(?:[^']|'')*'|--[^\r\n]*|/\*.*?\*/", re.DOTALL)
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
    """What a text mentions, in small letters: relations as (schema or "", name), and the functions it calls.

    `queries` is of how many queries it is made; 0 if it is no SQL, or holds anything else.
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
    """Tell what the statements of a text read and call; what a query defines for itself (WITH) is not among it.

    A statement that DuckDB's parser cannot take apart mentions every word in it: whatever it means is then there when
    it is run, and DuckDB says what is wrong with it.
    """
    return _of_ours(sql) or parsed(sql)


def is_our_query(sql: str) -> bool:
    """Tell whether a text is one of the queries that come with the package, with whatever values."""
    return (line := known(sql)) is not None and line.queries == "1"


def _of_ours(sql: str) -> Names | None:
    if (line := known(sql)) is None:
        return None
    relations = (name.rpartition(".") for name in line.relations.split())
    return Names(
        frozenset((schema, name) for schema, _, name in relations), frozenset(line.functions.split()), int(line.queries)
    )


def parsed(sql: str) -> Names:
    """Tell the same of any text, by parsing it."""
    if not _BEFORE_QUERY.match(without_comments(sql)) and (statements := tree(sql)) is not None:
        return _of_tree(statements)._replace(queries=len(statements))
    found = [_of_statement(statement) for statement in _STATEMENT.findall(without_comments(sql))]
    relations = (names.relations for names in found)
    return Names(frozenset().union(*relations), frozenset().union(*(names.functions for names in found)))


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
    """The tables and views that a query reads, of whichever schema."""
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
