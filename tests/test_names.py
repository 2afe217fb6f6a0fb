"""What a statement reads and calls: of our own SQL by a pattern, of a user's by DuckDB's parser."""

from __future__ import annotations

import re

import our_sql
import pytest

from nsys_insight.model.views import definitions
from nsys_insight.paths import query
from nsys_insight.session.sandbox import REFUSED
from nsys_insight.sql.names import called, mentioned, mentioned_by_ours

MACROS = frozenset(re.findall(r"CREATE MACRO (\w+)", query("model/macros")))
CALLED = MACROS | definitions().keys()


def relations_of_model(names):
    """Leave out CTEs and scratch tables."""
    prepared = ("raw", "whole", "facts")
    return {(schema, name) for schema, name in names.relations if schema in prepared or name in definitions()}


@pytest.mark.slow
def test_the_pattern_reads_of_our_sql_what_the_parser_does():
    for name, sql in our_sql.texts():
        parsed, read = mentioned(sql), mentioned_by_ours(sql)
        if "select" not in parsed.functions:  # of a text that cannot be parsed alone all words are
            assert relations_of_model(read) == relations_of_model(parsed), name
            assert read.functions & CALLED - {name.removeprefix("view ")} == parsed.functions & CALLED, name


def test_no_query_of_ours_reaches_beyond_a_trace():
    """It is not checked again when it runs (`session.sandbox`)."""
    for name, sql in our_sql.texts():
        if name.startswith("view "):  # a macro of the model may read the relation that it is given
            continue
        assert not (called(sql) | mentioned(sql).functions) & REFUSED, name


@pytest.mark.parametrize("read", [mentioned, mentioned_by_ours])
class TestNames:
    def test_a_cte_is_not_a_relation(self, read):
        assert read("WITH own AS (FROM kernels) SELECT * FROM own JOIN steps USING (step)").relations == {
            ("", "kernels"),
            ("", "steps"),
        }

    def test_a_relation_has_its_schema(self, read):
        assert read("SELECT (SELECT count(*) FROM facts.steps) FROM raw.wall").relations == {
            ("facts", "steps"),
            ("raw", "wall"),
        }

    def test_a_list_of_relations_is_read_to_its_end(self, read):
        assert read("SELECT * FROM walls AS w, steps, scope AS s WHERE true").relations == {
            ("", "walls"),
            ("", "steps"),
            ("", "scope"),
        }

    def test_text_and_comments_name_nothing(self, read):
        sql = "SELECT 'FROM steps' AS a /* FROM gaps */ FROM kernels -- FROM waits"
        assert read(sql).relations == {("", "kernels")}

    def test_a_call_is_a_function_and_no_relation(self, read):
        names = read("SELECT duration(start_ns, end_ns) FROM in_scope('kernels')")
        assert {"duration", "in_scope"} <= names.functions
        assert not names.relations


def test_text_and_comments_of_a_user_hide_neither_semicolons_nor_names():
    sql = "CREATE VIEW v AS SELECT '--; it''s' AS a, ';' AS b FROM kernels -- FROM steps; x\nWHERE a > 'x';"
    assert mentioned(sql).relations == {("", "kernels")}
