"""What our own SQL mentions is known beforehand, and is what DuckDB's parser says of it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from nsys_insight.errors import QueryError
from nsys_insight.session.sandbox import REFUSED, check
from nsys_insight.sql.known import digest, known
from nsys_insight.sql.names import called, is_our_query, mentioned, parsed
from nsys_insight.sql.parameters import bind

REPOSITORY = Path(__file__).parents[1]
GENERATE = runpy.run_path(str(REPOSITORY / "docs" / "generate.py"))
TEXTS = dict(map(reversed, GENERATE["sql_of_ours"]()))


def test_the_file_is_what_the_parser_says_of_the_queries():
    text = GENERATE["NAMES"].read_text(encoding="utf-8")
    assert text == GENERATE["names_file"](), "python docs/generate.py writes it"


def test_every_text_of_ours_is_known_for_what_it_is():
    for sql, what in TEXTS.items():
        assert mentioned(sql) == parsed(sql), what


def test_no_query_of_ours_reaches_beyond_a_trace():
    """It is not looked at again when it runs (`session.sandbox`)."""
    for sql, what in TEXTS.items():
        if is_our_query(sql):
            assert not (called(sql) | parsed(sql).functions) & REFUSED, what


@pytest.mark.parametrize("value", [None, True, 7, 0.5, "it's", "-- no comment", "/* nor this", "$name"])
def test_a_text_is_the_same_with_any_value(value):
    sql = "SELECT * FROM kernels WHERE name = $name /* it's */ -- and it's\n"
    assert digest(bind(sql, {"name": value})) == digest(sql)


@pytest.mark.parametrize(
    "other",
    [
        "SELECT * FROM kernels, steps WHERE name = 'a'",
        'SELECT * FROM "kernels--" WHERE name = 1',
        "SELECT * FROM kernels WHERE name = 'a' -- \n || x",
        "SELECT * FROM kernels WHERE name = /* ' */ FROM steps /* ' */",
        "SELECT * FROM kernels WHERE name = e'\\' FROM steps --'",
        "SELECT * FROM kernels WHERE name = $$' FROM steps --'$$",
        "SELECT * FROM kernels WHERE name = /* /* */ FROM steps -- */ 'a'",
    ],
)
def test_what_mentions_something_else_is_another_text(other):
    assert digest(other) != digest("SELECT * FROM kernels WHERE name = $name")
    assert not is_our_query(other)
    assert known(other) is None


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_a_comment_hides_nothing_on_the_next_line(end):
    """DuckDB ends a line at a carriage return, too."""
    ours = next(sql for sql in TEXTS if is_our_query(sql))
    more = f"{ours} --{end} UNION ALL FROM read_text('a')"
    assert not is_our_query(more)
    assert "read_text" in called(more) | parsed(more).functions
    with pytest.raises(QueryError):
        check(more)


def test_text_and_comments_hide_neither_semicolons_nor_names():
    sql = "CREATE VIEW v AS SELECT '--; it''s' AS a, ';' AS b FROM kernels -- FROM steps; x\nWHERE a > 'x';"
    assert mentioned(sql).relations == {("", "kernels")}
