"""Where a statement has `$name` parameters: told by a pattern, or by DuckDB's tokenizer, which both see the same."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nsys_insight.paths import queries_folder
from nsys_insight.sql import parameters
from nsys_insight.sql.headers import split

FRAGMENTS = [
    "$", "a", "$a", "$b1", "1", "'", '"', "''", " ", "\n", "\r", "--", "-", "/*", "*/", "e'", "E'", "x'", "U&'", "é",
    "\u2028", "$$", "$q$", "::", ".", "[", "]", "(", ")", "@", ":", "#", "\\", "?", "_", ";", "\t", "\0",
]  # fmt: skip


@example("1U&'ae'$a")
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
def test_parameters_of_any_text_are_where_the_tokenizer_sees_them(text):
    assert parameters._places(text) == list(parameters._by_tokenizer(text))


def test_hardly_a_query_of_ours_needs_the_tokenizer(monkeypatch):
    statements = [split(path.read_text())[1] for path in queries_folder().rglob("*.sql")]
    by_tokenizer = [list(parameters._by_tokenizer(sql)) for sql in statements]
    asked = []
    monkeypatch.setattr(parameters, "_by_tokenizer", asked.append)
    assert [parameters._places(sql) for sql in statements] == by_tokenizer
    assert not asked


@pytest.mark.parametrize(
    ("sql", "bound"),
    [
        ("SELECT $a + $b", "SELECT 'it''s' + $b"),
        ("SELECT '$a', \"$a\" -- $a\n, $a", "SELECT '$a', \"$a\" -- $a\n, 'it''s'"),
        ("SELECT $$ $a $$, $a", "SELECT $$ $a $$, 'it''s'"),
        ("SELECT e'\\'$a', $a /* $a */", "SELECT e'\\'$a', 'it''s' /* $a */"),
        ("SELECT 'ä', $a AS ö", "SELECT 'ä', 'it''s' AS ö"),
        ("SELECT a$a", "SELECT a$a"),
    ],
)
def test_values_are_written_where_parameters_are(sql, bound):
    assert parameters.bind(sql, {"a": "it's"}) == bound
