"""Names that a statement reads and calls. A pattern finds them in our own SQL, DuckDB's parser in a user's."""

from __future__ import annotations

import re

import our_sql
import pytest

from nsys_insight.model.views import definitions, macro_statements
from nsys_insight.session.sandbox import find_refused_functions
from nsys_insight.sql.names import find_called_functions, parse_names, scan_names

MACROS = frozenset(re.findall(r"CREATE MACRO (\w+)", "".join(macro_statements())))
CALLABLE_NAMES = MACROS | definitions().keys()


def relations_of_model(names):
    """Leave out CTEs and scratch tables."""
    prepared = ("raw", "unscoped", "facts")
    return {(schema, name) for schema, name in names.relations if schema in prepared or name in definitions()}


def test_the_pattern_finds_the_same_names_in_our_sql_as_the_parser():
    """Compare all of our SQL in each run: a view that the pattern misses would have no rows in a finding."""
    for name, sql in our_sql.list_statements():
        parsed_names, scanned_names = parse_names(sql), scan_names(sql)
        if "select" not in parsed_names.functions:  # if a text cannot be parsed alone, all its words count
            assert relations_of_model(scanned_names) == relations_of_model(parsed_names), name
            assert (
                scanned_names.functions & CALLABLE_NAMES - {name.removeprefix("view ")}
                == parsed_names.functions & CALLABLE_NAMES
            ), name


def test_no_built_in_query_calls_a_refused_function():
    """Check built-in queries here, because `session.sandbox` does not check them when they run."""
    for name, sql in our_sql.list_statements():
        if name.startswith("view "):  # a macro of the model may read the relation that it is given
            continue
        assert not find_refused_functions(find_called_functions(sql) | parse_names(sql).functions), name


def test_a_comment_does_not_hide_a_call():
    """DuckDB 2 returns comments as tokens: the parenthesis does not follow the name."""
    assert find_called_functions("SELECT upper /* ( */ ('a'), lower -- (\n('b')") == {"upper", "lower"}


@pytest.mark.parametrize("find_names", [parse_names, scan_names])
class TestNames:
    def test_a_cte_is_not_a_relation(self, find_names):
        assert find_names("WITH own AS (FROM kernels) SELECT * FROM own JOIN steps USING (step)").relations == {
            ("", "kernels"),
            ("", "steps"),
        }

    def test_a_relation_has_its_schema(self, find_names):
        assert find_names("SELECT (SELECT count(*) FROM facts.steps) FROM raw.wall").relations == {
            ("facts", "steps"),
            ("raw", "wall"),
        }

    def test_a_list_of_relations_is_read_to_its_end(self, find_names):
        assert find_names("SELECT * FROM walls AS w, steps, scope AS s WHERE true").relations == {
            ("", "walls"),
            ("", "steps"),
            ("", "scope"),
        }

    def test_text_and_comments_name_nothing(self, find_names):
        sql = "SELECT 'FROM steps' AS a /* FROM gaps */ FROM kernels -- FROM waits"
        assert find_names(sql).relations == {("", "kernels")}

    def test_a_call_is_a_function_and_no_relation(self, find_names):
        names = find_names("SELECT duration(start_ns, end_ns) FROM in_scope('kernels')")
        assert {"duration", "in_scope"} <= names.functions
        assert not names.relations


def test_text_and_comments_of_a_user_hide_neither_semicolons_nor_names():
    sql = "CREATE VIEW v AS SELECT '--; it''s' AS a, ';' AS b FROM kernels -- FROM steps; x\nWHERE a > 'x';"
    assert parse_names(sql).relations == {("", "kernels")}
