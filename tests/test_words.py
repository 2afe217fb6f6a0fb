"""Text and code are plain English in the words of the glossary: the list is in word_list.py."""

from __future__ import annotations

import re

import pytest
from word_list import (
    CODE_PHRASES,
    GENERATED,
    NAMES_THAT_STAY,
    PHRASES,
    REPOSITORY,
    bound_names,
    find_hits,
    is_prose,
    is_vague,
    printed_texts,
)

from nsys_insight.model.views import definitions, read_common_meanings
from nsys_insight.packs.library import built_in_packs

# How a column comment begins that cannot be understood without its neighbors.
LEANS_ON_A_NEIGHBOR = re.compile(
    r"(the same|its|their|these|those|this|that|it|they|such|as in|another|likewise"
    r"|(how (long|many|often)|when|where|whether) (it|its|they|these|those|this|that))\b",
    re.IGNORECASE,
)
READ = ["nsys_insight", "queries", "docs", "tests", "benchmarks", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"]


@pytest.fixture(scope="module")
def printed_texts_by_path():
    """Every text that a user can see."""
    folders = [REPOSITORY / name for name in ("nsys_insight", "queries", "docs")]
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".sql", ".md", ".j2"}]
    texts = [
        (path, " ".join(text.lower().split()))
        for path in [*files, REPOSITORY / "README.md"]
        if path.name not in GENERATED
        for _, text in printed_texts(path, path.read_text(encoding="utf-8"))
    ]
    return [(path, text) for path, text in texts if path.suffix != ".py" or is_prose(text)]


@pytest.mark.parametrize("name", READ)
def test_no_word_of_the_list_is_used(name):
    assert [
        f"{hit.path.relative_to(REPOSITORY)}:{hit.line}: {hit.text}" for hit in find_hits([REPOSITORY / name])
    ] == []


@pytest.mark.parametrize(
    ("file", "source", "text"),
    [
        ("a.py", "found = 1", "found"),
        ("a.py", "def f(_asked): pass", "_asked"),
        ("a.py", "class A:\n    told_by: str", "told_by"),
        ("a.py", '"""What is kept beside it."""', "what is kept beside it."),
        ("a.py", "x = 1  # the ones\n# asked for", "the ones asked for"),
        ("a.py", "def f():\n    return 'it cannot be told apart'", "it cannot be told apart"),
        ("a.sql", "WITH said AS (SELECT 1) FROM said", "said"),
        ("a.sql", "WITH rows AS (FROM a),\nheld AS MATERIALIZED (FROM b) FROM held", "held"),
        ("a.sql", "SELECT 1 -- what is beside it", "what is beside it"),
        ("a.md", "It is worth a word.", "it is worth a word."),
    ],
)
def test_the_list_applies_to_names_comments_sql_and_pages(tmp_path, file, source, text):
    (tmp_path / file).write_text(source, encoding="utf-8")
    assert text in [hit.text for hit in find_hits([tmp_path])]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("a.py", "launch_calls = read_columns(found=1)"),  # a call's keyword is named by whom it is called
        ("a.py", "x = 'told'"),  # one word is a key
        ("a.sql", "SELECT 'a' AS told"),  # a column may be public
        ("a.md", "```\ntold\n```"),  # the output of an example
    ],
)
def test_the_list_leaves_keys_and_outputs_alone(tmp_path, file, source):
    (tmp_path / file).write_text(source, encoding="utf-8")
    assert list(find_hits([tmp_path])) == []


def test_each_column_comment_stands_alone():
    comments = {
        f"{name}.{column}": text
        for name, columns in (
            ("columns.toml", read_common_meanings()),
            *((view.name, view.own_meanings) for view in definitions().values()),
            *((pack.name, pack.columns) for pack in built_in_packs().values()),
        )
        for column, text in columns.items()
    }
    assert len(comments) > 2000
    assert {column: text for column, text in comments.items() if LEANS_ON_A_NEIGHBOR.match(text)} == {}


def test_the_headers_of_findings_have_the_words_of_the_screen():
    keys = {
        key.partition(".")[0]
        for path in (REPOSITORY / "queries" / "findings").glob("*.sql")
        for key in re.findall(r"^\[?([a-z_.]+)(?:\]| =)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert keys >= {"fix", "skip_if"}
    assert not keys & {"cure", "caveat"}


def test_each_name_that_stays_is_used_and_would_be_found():
    files = [path for folder in ("nsys_insight", "tests", "benchmarks") for path in (REPOSITORY / folder).rglob("*.py")]
    unused_names = set(NAMES_THAT_STAY)
    for source in (path.read_text(encoding="utf-8") for path in files):
        if any(name in source for name in unused_names):
            unused_names -= {name for name, _ in bound_names(source)}
    assert unused_names == set()
    assert all(reason for reason in NAMES_THAT_STAY.values())
    assert not is_vague("launch_calls")


def test_the_phrases_are_patterns():
    assert all(re.compile(phrase) for phrase in PHRASES | CODE_PHRASES)


def test_the_terms_of_the_glossary_are_the_terms_in_use(printed_texts_by_path):
    glossary = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8").lower()
    terms = [
        term
        for line in glossary.splitlines()
        if line.startswith("| **")
        for term in re.findall(r"\*\*([^*]+)\*\*", line)
    ]
    names = [path.stem.replace("-", " ") for path in (REPOSITORY / "queries").rglob("*.sql")]  # of reports and findings
    used_names = " ".join([*names, *(text for path, text in printed_texts_by_path if path.name != "glossary.md")])
    assert len(terms) > 40
    assert [term for term in terms if term not in used_names] == []


@pytest.mark.parametrize(
    "text",
    [
        "kernels by gpu time",  # a report's header
        "not recorded in this trace",  # a sentence of the program
        "one of: ",  # help of a flag
        "one row per kernel execution on a gpu.",  # a comment of the model
        "no steps were found",  # a sentence made in SQL
    ],
)
def test_each_kind_of_text_is_read(printed_texts_by_path, text):
    assert text in " ".join(text for _, text in printed_texts_by_path)
