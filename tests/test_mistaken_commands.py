"""Commands that people type out of habit: the hint has what to type here."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run

TRACE = Path(__file__).parents[1] / "sample_traces" / "churn.sqlite"


@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        ("compare a b", "did you mean diff?"),
        ("profile -- ./program", "did you mean capture?"),
        ("timeline {trace}", "did you mean report?"),
        ("trace {trace}", "did you mean report?"),
        ("version", "did you mean --version?"),
        ("summary {trace}", "did you mean diagnose?"),
        ("top {trace} --json", "did you mean -f json?"),
        ("top {trace} --csv", "did you mean -f csv?"),
        ("sql {trace} --sort calls", "ORDER BY"),
        ("sql {trace} -f query.sql", "--file query.sql"),
        ("sql {trace} query.sql", "--file query.sql"),
        ("sql {trace} EXPLAIN+FROM+kernels", "--explain"),
        ("sql {trace} COPY+(SELECT+1)+TO+'rows.csv'", "-o FILE"),
    ],
)
def test_a_hint_has_the_words_to_type(words, suggested):
    result = run(*(word.replace("+", " ").format(trace=TRACE) for word in words.split()))
    assert (result.returncode, result.stdout) == (1 if "+" in words else 2, "")
    assert suggested in result.stderr.splitlines()[-1]


def test_a_misspelled_command_still_gets_the_nearest_name():
    assert "did you mean top?" in run("tpo").stderr


@pytest.mark.parametrize("code", ["NSI101", "nsi101"])
def test_help_of_a_rule_explains_the_rule(code):
    assert run("help", code).stdout == run("rule", "NSI101").stdout != ""
