"""The catalog of constructs: patterns, examples, conditions and texts; and what the facts about a step say with it."""

from __future__ import annotations

import re

import duckdb
import pytest

from nsys_insight.diagnose.findings import EFFORTS, FRAMEWORKS, NUMERICS, read_finding_rules
from nsys_insight.facts import kernel_constructs
from nsys_insight.facts.context import DEFAULT_OPTIONS, Context
from nsys_insight.model import construct_catalog
from nsys_insight.paths import package_folder
from nsys_insight.records import RecordError, parse_toml
from nsys_insight.text.templates import list_columns

ENTRIES = construct_catalog.read_constructs()
OF_KERNELS = [entry for entry in ENTRIES if entry.kernels]
NAMES = {entry.name for entry in ENTRIES}
REPLACEMENTS = [(entry, replacement) for entry in ENTRIES for replacement in entry.replacement]
# Columns that are not known yet when copies and memsets get their constructs.
LATER_COLUMNS = re.compile(r"\b(construct\w*|counts|times|shapes)\b")


@pytest.fixture(scope="module")
def constructs():
    """Return the construct of each example and counter-example, by the kernel's name.

    One query finds them all: to plan its regular expressions takes most of its time.
    """
    names = sorted({name for entry in ENTRIES for name in (*entry.examples, *entry.not_examples)})
    with duckdb.connect() as connection:
        connection.execute("; ".join(construct_catalog.write_macros()))
        connection.execute(
            "CREATE TABLE kernel_names AS SELECT name, name AS name_id FROM unnest(?) AS t (name)", [names]
        )
        connection.execute(
            "CREATE SCHEMA facts; CREATE TABLE facts.kernel_constructs (name VARCHAR, construct VARCHAR)"
        )
        kernel_constructs.fill(Context(connection, DEFAULT_OPTIONS, [""], [""], [], [], lambda *_: None))
        return dict(connection.execute("FROM facts.kernel_constructs").fetchall())


@pytest.fixture(scope="module")
def matches():
    """Return the pairs of a pattern and an example of its entry that match."""
    pairs = {
        (pattern, name)
        for entry in ENTRIES
        for pattern in (*entry.kernels, *entry.operations)
        for name in entry.examples
    }
    query = "SELECT * FROM (SELECT unnest(?) AS pattern, unnest(?) AS name) WHERE regexp_matches(name, pattern)"
    return set(duckdb.execute(query, [*map(list, zip(*pairs, strict=True))]).fetchall())


def test_names_are_unique():
    assert len(NAMES) == len(ENTRIES)


def test_every_pattern_has_an_example(matches):
    for entry in ENTRIES:
        patterns = {*entry.kernels, *entry.operations}
        assert bool(patterns) != entry.is_kind, entry.name
        assert patterns == {pattern for pattern in patterns for name in entry.examples if (pattern, name) in matches}


def test_examples_get_the_construct_and_counter_examples_do_not(constructs, matches):
    for entry in OF_KERNELS:
        names = [name for name in entry.examples if not any((text, name) in matches for text in entry.operations)]
        assert {name: constructs[name] for name in names} == dict.fromkeys(names, entry.name)
        assert not [name for name in entry.not_examples if constructs[name] == entry.name], entry.name


def test_an_entry_is_tried_on_its_names(matches):
    for entry in OF_KERNELS:
        texts = construct_catalog.find_texts(entry.kernels)
        assert "" not in texts, entry.name
        names = [name for name in entry.examples if any((pattern, name) in matches for pattern in entry.kernels)]
        assert not [name for name in names if not any(text in name.lower() for text in texts)], entry.name


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("ab(c|d)?EFG", ["efg"]),
        ("(?i)Sort|de+", ["de", "sort"]),
        ("(?:x|longer)_kernel", ["_kernel"]),
        ("fused_(?:a|b)_kernel", ["_kernel"]),
        (r"(?:alpha|beta_(?:one|two))\w+_k", ["alpha", "beta_", "two"]),
        ("(?:none)?some(?:all){2}", ["some"]),
        (r"\(x\)|[|(]one+y?", ["one", "x"]),
        ("a*|b", ["", "b"]),
        # These parts of a pattern are not understood.
        ("a[[:alpha:]]x", [""]),
        (r"\pL+foo", [""]),
    ],
)
def test_texts_are_in_each_name_that_matches(pattern, texts):
    assert construct_catalog.find_texts([pattern]) == texts


def test_conditions_are_valid_sql_over_the_columns():
    construct_catalog.check_conditions(ENTRIES, construct_catalog.list_columns())


def test_conditions_name_constructs_that_exist():
    for entry in ENTRIES:
        texts = [
            entry.efficient,
            *(text for item in entry.replacement for text in vars(item).values() if type(text) is str),
        ]
        mentioned = {name for text in texts for name in re.findall(r"(?:counts|times)\['([^']+)'\]", text)}
        mentioned |= {name for item in entry.replacement for name in item.includes}
        assert mentioned <= NAMES, entry.name
        # A kind judges operations that have their constructs.
        assert entry.is_kind or not LATER_COLUMNS.search(entry.condition), entry.name
        assert entry.efficient.lower() != "true", entry.name


def test_texts_are_complete():
    for entry in ENTRIES:
        assert entry.description.strip().endswith("."), entry.name
        assert entry.library, entry.name
        assert entry.origin, entry.name
        assert not {text for text in entry.kernels if re.fullmatch(r"\(\?i\)\w+", text) and len(text) < 8}, entry.name


@pytest.mark.parametrize(
    ("entry", "replacement"), REPLACEMENTS, ids=lambda value: getattr(value, "name", None) or value.title
)
def test_a_replacement_is_complete(entry, replacement):
    columns = parse_toml((package_folder() / "facts" / "step_operations" / "tables.toml").read_text(encoding="utf-8"))
    columns_of_row = {column.split()[0] for column in columns["tables"]["step_replacements"]["columns"]} | {"per"}
    assert replacement.evidence
    # "1 call per step take": the verb after a count has a form for one.
    plural_only = re.compile(r"^\{calls:[\w |]+\}[^;:]* (take|write|empty) ")
    assert not [text for text in replacement.evidence if plural_only.search(text)]
    assert list_columns(replacement.evidence) | list_columns(replacement.fix.values()) <= columns_of_row
    assert "any" in replacement.fix
    assert replacement.fix.keys() <= FRAMEWORKS.keys()
    assert replacement.effort in EFFORTS
    assert replacement.numerics in NUMERICS
    assert replacement.skip_if.strip().endswith(".")
    assert all(text.strip().endswith(".") and text.strip()[0].isupper() for text in replacement.fix.values())
    assert not replacement.title.endswith(".")
    assert len(replacement.title) <= 80
    assert replacement.source
    assert "://" not in replacement.source
    has_estimates = bool(replacement.estimate_low and replacement.estimate_high)
    assert has_estimates != bool(replacement.saving_low and replacement.saving_high)
    rules = read_finding_rules()
    explainable = {rule.name for rule in rules} | {rule.symptom for rule in rules if rule.symptom}
    assert set(replacement.explains) <= explainable, entry.name
    assert set(replacement.reported_by) <= {rule.name for rule in rules}


def test_a_kind_has_replacements_that_rules_report():
    kinds = [entry for entry in ENTRIES if entry.is_kind]
    assert kinds
    for entry in kinds:
        assert entry.condition
        assert entry.replacement
        assert all(replacement.reported_by for replacement in entry.replacement)


def test_an_entry_that_says_nothing_of_what_it_is_has_a_reason(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('[[construct]]\nname = "sort"\nwhat = "Sorts."\nlibrary = "ours"\nseen = "unseen"\n')
    with pytest.raises(RecordError, match="the construct 'sort' has neither 'kernels' nor 'operations' nor 'where'"):
        construct_catalog.parse_file(path)
