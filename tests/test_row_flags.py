"""`--sort` and `--name`, which every report has, against Python on the complete answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run

EAGER = str(Path(__file__).parents[1] / "sample_traces" / "decode_eager.sqlite")


def ask(*words):
    result = run(*words, "-f", "json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("column", "key", "is_reversed"),
    [
        ("calls", "calls", True),
        ("calls:asc", "calls", False),
        ("p95", "p95_ns", True),  # the unit may be left out
        ("total", "total_ns", True),
        ("family", "family", False),
    ],
)
def test_rows_are_sorted_by_any_column(column, key, is_reversed):
    rows = ask("top", EAGER)["rows"]
    # Rows that are equal keep their order.
    assert ask("top", EAGER, "--sort", column)["rows"] == sorted(rows, key=lambda row: row[key], reverse=is_reversed)


@pytest.mark.parametrize("pattern", ["sdpa", "SDPA", "*sdpa*flash*", "<8,", "[x", "no such kernel"])
def test_rows_are_selected_by_name(pattern):
    rows = ask("top", EAGER)["rows"]
    answer = ask("top", EAGER, "--name", pattern)
    parts = pattern.lower().strip("*").split("*")
    assert answer["rows"] == [row for row in rows if all(part in row["name"].lower() for part in parts)]
    assert answer["notes"][-1] == f"{len(answer['rows'])} of {len(rows)} rows have {pattern!r} in name"


def test_an_answer_without_a_fitting_name_does_not_say_that_nothing_ran():
    result = run("top", EAGER, "--name", "no such kernel")
    assert "No name fits 'no such kernel'" in result.stdout
    assert "No kernels are recorded" not in result.stdout


def test_where_no_name_fits_the_other_texts_are_searched():
    answer, families = ask("top", EAGER, "--name", "gemm"), [row["family"] for row in ask("top", EAGER)["rows"]]
    assert [row["family"] for row in answer["rows"]] == ["gemm"] * families.count("gemm") != []
    assert answer["notes"][-1] == f"{families.count('gemm')} of {len(families)} rows have 'gemm' in family"


def test_other_reports_have_the_same_flags():
    names = [row["name"] for row in ask("api", EAGER, "--name", "sync", "--sort", "name")["rows"]]
    assert names == sorted(names, key=str.lower)
    assert len(names) == 4
    pace = run("help", "pace", "--all", env={"COLUMNS": "200"}).stdout  # has a parameter --name of its own
    assert pace.count("--name ") == 1
    assert "--sort " in pace


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (("--sort", "cals"), "the answer of top has no column 'cals'", "did you mean calls?"),
        (("--sort", "calls:up"), "--sort takes COLUMN, COLUMN:asc or COLUMN:desc, not 'calls:up'", "--sort calls"),
    ],
)
def test_mistakes_have_a_hint(words, error, hint):
    result = run("top", EAGER, *words)
    assert result.returncode == 2
    assert result.stderr.splitlines() == [f"error: {error}", f"hint: {hint}"]
