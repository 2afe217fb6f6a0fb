"""Where a statement has `$name` parameters: a pattern and DuckDB's tokenizer find the same ones."""

import our_sql
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nsys_insight.sql import parameters
from nsys_insight.sql.headers import split_header

FRAGMENTS = [
    "$", "a", "$a", "$b1", "1", "'", '"', "''", " ", "\n", "\r", "--", "-", "/*", "*/", "e'", "E'", "x'", "U&'", "é",
    "\u2028", "$$", "$q$", "::", ".", "[", "]", "(", ")", "@", ":", "#", "\\", "?", "_", ";", "\t", "\0",
]  # fmt: skip


@example("1U&'ae'$a")
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
def test_the_pattern_finds_the_same_parameters_as_the_tokenizer_in_any_text(text):
    assert parameters._locate_parameters(text) == list(parameters._tokenize_parameters(text))


def test_no_built_in_query_needs_the_tokenizer(monkeypatch):
    statements = [split_header(path.read_text())[1] for path in our_sql.list_files()]
    by_tokenizer = [list(parameters._tokenize_parameters(sql)) for sql in statements]
    tokenized_statements = []
    monkeypatch.setattr(parameters, "_tokenize_parameters", tokenized_statements.append)
    assert [parameters._locate_parameters(sql) for sql in statements] == by_tokenizer
    assert not tokenized_statements


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
def test_values_replace_parameters(sql, bound):
    assert parameters.bind(sql, {"a": "it's"}) == bound
