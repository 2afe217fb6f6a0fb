"""The order of findings: what is dropped, what stands under what, and what comes first. No trace is read."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from nsys_insight.diagnose.evaluate import is_relevant
from nsys_insight.diagnose.findings import ANY, Cure, Finding, read_finding_rules
from nsys_insight.diagnose.ranking import add_run_findings, rank
from nsys_insight.diagnose.text import describe_saving

RULES = read_finding_rules()
# What the time of a finding without a specific cause is lost to.
SYMPTOMS = {"late-host", "start", "wait", "copy", "kernel-time", "communication"}


def make_finding(name, saving=None, share=None, *, severity="info", **changes):
    finding = Finding(
        code="NSI000", name=name, title=name, severity=severity, family=name, recoverable_ns=saving, saving_low_ns=None,
        profiled_ns=saving, bounded_by=None, wall_pct=share, share_of="step", overlaps=False, place=None, evidence="",
        values={}, meaning="", cure=Cure(ANY, "", "line", "same"), caveat="", report="", command="",
    )  # fmt: skip
    return replace(finding, **changes)


def name_tree(findings):
    """Give the names of findings, each with those below it."""
    return {finding.name: [member.name for member in finding.also] for finding in findings}


@pytest.mark.parametrize(("low", "text"), [(49, "up to 44.1 µs"), (1_000, "1 µs to 44.1 µs"), (None, "up to 44.1 µs")])
def test_a_low_end_of_nothing_is_not_printed(low, text):
    finding = make_finding("some", 44_100, 20.0, saving_low_ns=low)
    assert describe_saving(finding, "step").startswith(f"{text} per step (")


@pytest.mark.parametrize(
    ("saving", "share", "expected"), [(9, 0.99, False), (10, 1.0, True), (None, None, True), (10, None, False)]
)
def test_small_findings_are_dropped(saving, share, expected):
    assert is_relevant(make_finding("some", saving, share)) is expected


def test_findings_are_ranked_by_saving():
    findings = [
        make_finding("some", 10, 1.0), make_finding("most", 90, 9.0), make_finding("unknown", None, 30.0),
        make_finding("capture", severity="warning"), make_finding("remedy", 80, 8.0, overlaps=True),
        make_finding("more", 20, 2.0),
    ]  # fmt: skip
    assert list(name_tree(rank(findings))) == ["capture", "most", "more", "some", "remedy", "unknown"]


def test_findings_that_add_up_to_more_than_a_step_overlap():
    findings = [
        make_finding("most", 80, 80.0), make_finding("more", 25, 25.0), make_finding("some", 20, 20.0),
        make_finding("unknown", None, 30.0), make_finding("outside", 70, 70.0, share_of="trace"),
    ]  # fmt: skip
    assert {finding.name: finding.overlaps for finding in rank(findings)} == {
        "most": False, "more": True, "some": False, "unknown": False, "outside": False
    }  # fmt: skip


def test_the_finding_of_the_verdict_comes_first_among_those_of_its_severity():
    findings = [
        make_finding("little", 20, 4.0, severity="warning"), make_finding("kernels", None, 60.0),
        make_finding("most", 90, 90.0, severity="critical"), make_finding("least", 5, 1.0),
    ]  # fmt: skip
    assert list(name_tree(rank(findings, first="kernels"))) == ["most", "little", "kernels", "least"]
    assert list(name_tree(rank(findings))) == ["most", "little", "least", "kernels"]


def test_symptoms_stand_under_their_cause():
    findings = [
        make_finding("gap", 90, symptom="late-host"), make_finding("fusion", 40),
        make_finding("input", 50, explains=("late-host", "fusion")), make_finding("other", 60),
    ]  # fmt: skip
    assert name_tree(rank(findings)) == {"other": [], "input": ["gap", "fusion"]}


def test_a_symptom_of_a_symptom_stands_under_the_first_cause():
    findings = [
        make_finding("copies", 30, 3.0, severity="warning", symptom="copy"),
        make_finding("input", 20, 2.0, explains=("copy",)), make_finding("camera", None, 90.0, explains=("input",)),
    ]  # fmt: skip
    assert name_tree(rank(findings)) == {"camera": ["copies", "input"]}


def test_a_cause_without_a_saving_is_as_severe_as_its_symptom():
    cause = make_finding("cause", explains=("symptom",))
    (finding,) = rank([cause, make_finding("symptom", 50, 50.0, severity="critical")])
    assert (finding.name, finding.severity) == ("cause", "critical")


def test_a_family_is_one_finding_and_a_problem_comes_before_its_remedy():
    findings = [
        make_finding("graph", 80, 80.0, family="launch", overlaps=True),
        make_finding("launch", 70, 70.0, family="launch"),
        make_finding("sync", 20, 20.0),
    ]  # fmt: skip
    assert name_tree(rank(findings)) == {"launch": ["graph"], "sync": []}


def test_there_are_at_most_seven_findings():
    findings = [make_finding(f"{number}", number, 10.0) for number in range(1, 20)]
    assert len(rank(findings)) == 7
    # Missing data are reported even then.
    assert list(name_tree(rank([*findings, make_finding("capture")])))[5:] == ["14", "capture"]


@pytest.mark.parametrize(("saving_low_ns", "expected"), [(60, ["launch", "late"]), (50, ["late", "launch"])])
def test_launch_overhead_of_all_ranks_comes_first_if_it_costs_more_than_the_late_one(saving_low_ns, expected):
    launch = make_finding("launch", 80, 8.0, saving_low_ns=saving_low_ns)
    findings = add_run_findings([make_finding("late", 50, 5.0)], [launch])
    assert [finding.name for finding in findings] == expected


def list_words(rule):
    """Return what a rule explains: the list of its header, or those of its query."""
    lists = re.findall(r"\[('[\w', -]*')\]", rule.sql) if re.search(r"\bAS explains\b", rule.sql) else []
    return {*rule.explains, *(word for words in lists for word in re.findall(r"'([\w-]+)'", words))}


def test_each_symptom_is_one_of_six_and_has_a_cause():
    assert {rule.symptom for rule in RULES} - {None} == SYMPTOMS
    words = {word for rule in RULES for word in list_words(rule)}
    assert words >= SYMPTOMS
    assert words - SYMPTOMS <= {rule.name for rule in RULES}


def test_no_rule_explains_itself():
    symptoms = {
        rule.name: {other.name for other in RULES if {other.name, other.symptom} & list_words(rule)} for rule in RULES
    }
    # Remove rules that explain nothing that is left, again and again: a rule in a cycle stays.
    while removed_names := {
        name for name, explained_names in symptoms.items() if not explained_names & symptoms.keys()
    }:
        symptoms = {name: symptoms[name] for name in symptoms.keys() - removed_names}
    assert symptoms == {}
