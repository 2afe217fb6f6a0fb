"""Each rule fires where it must and is silent where it must not; nothing is found without the values that prove it."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from nsys_insight.ingest.ncu import store
from nsys_insight.ingest.ncu.pages import Launch, read
from nsys_insight.ncu.data import NcuData, metrics_of_columns
from nsys_insight.ncu.rules import judge, ncu_rules
from nsys_insight.packs.rules import SEVERITIES
from nsys_insight.paths import query
from nsys_insight.sql.quoting import literal

DATA = Path(__file__).parent / "data" / "ncu"
CASES = list(csv.DictReader((DATA / "rules.csv").read_text(encoding="utf-8").splitlines()))
RULES = {rule.name: rule for rule in ncu_rules()}


def values(case):
    """The columns of a case: words divided by blanks, or by semicolons where a value has a blank."""
    return dict(
        pair.split("=") for part in case["values"].split(";") for pair in re.findall(r"\w+=[^=]*(?=\s\w+=|$)", part)
    )


def launch(number, kernel="k", metrics=None):
    return Launch("r", number * 10, 1, "app", kernel, 1, 7, 0, "9.0", (1, 1, 1), (32, 1, 1), metrics or {})


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The rules that fired, by case."""
    path = tmp_path_factory.mktemp("ncu") / "cases.ncu.duckdb"
    store.write([launch(number) for number in range(len(CASES))], path)
    with NcuData(path) as measured:
        for number, case in enumerate(CASES):
            given = {"implementation": case["implementation"], **values(case)}
            cells = ", ".join(f"{column} = {literal(value)}" for column, value in given.items())
            empty = ", ".join(f"{column} = NULL" for column in metrics_of_columns() if column not in (*given, *KEPT))
            measured.connection.execute(f"UPDATE ncu_kernels SET {empty}, {cells} WHERE launch = {number}")
            if case["rule"] == "cutlass-epilogue":
                measured.connection.execute(
                    f"""INSERT INTO ncu_kernels
                            (launch, report, process_id, ncu_id, kernel, family, implementation, duration_ns)
                        VALUES ({1000 + number}, 'r', 1, {number * 10 + 1}, 'relu', 'activation', 'native', 1500)"""
                )
        findings, _ = judge(measured)
    return {number: [finding for finding in findings if finding.launch == number] for number in range(len(CASES))}


KEPT = ("launch", "report", "ncu_id", "process_id", "kernel", "short_name")


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=lambda number: f"{CASES[number]['rule']}-{CASES[number]['outcome']}-{number}"
)
def test_it_fires_where_it_must_and_nowhere_else(judged, number):
    case = CASES[number]
    fired = {finding.rule for finding in judged[number]}
    assert (case["rule"] in fired) == (case["outcome"] == "fires")


def test_every_rule_has_both_cases():
    outcomes = Counter((case["rule"], case["outcome"]) for case in CASES)
    assert {rule for rule, _ in outcomes} == set(RULES)
    assert all(outcomes[name, outcome] for name in RULES for outcome in ("fires", "silent"))


def test_a_finding_has_the_values_of_its_condition(judged):
    found = [finding for findings in judged.values() for finding in findings]
    assert len(found) >= len(RULES)
    for finding in found:
        assert tuple(finding.evidence) == RULES[finding.rule].evidence
        assert any(value is not None for value in finding.evidence.values())
        assert finding.severity in SEVERITIES
        assert finding.action


@pytest.mark.parametrize("name", RULES)
def test_every_column_in_a_condition_is_evidence(name):
    """What decides must be shown; what the kernel is (its name, family, type) is known anyway."""
    rule = RULES[name]
    condition = rule.sql.partition("WHERE")[2]
    known = {"implementation", "family", "launch", "report", "process_id", "ncu_id", "kernel"}
    used = (set(re.findall(r"\b[a-z]\w+\b", condition)) & set(metrics_of_columns())) - known
    assert used <= set(rule.evidence)


@pytest.mark.parametrize("name", RULES)
def test_a_header_is_complete(name):
    rule = RULES[name]
    text = query(f"ncu_rules/{name}")
    assert set(rule.actions) <= set(store.IMPLEMENTATIONS)
    assert set(re.findall(r"\$(\w+)", rule.sql)) == set(rule.params)
    assert all(re.search(rf"\[params\.{param}\]\ndefault = .+\nhelp = \".+\"", text) for param in rule.params)
    assert "playbook" not in text


def test_what_could_not_be_judged_says_what_is_missing(tmp_path):
    few = {
        name: metric
        for name, metric in read(DATA / "zoo_a.ncu.raw.csv")[12].metrics.items()
        if "global_op_ld" not in name
    }
    path = store.write([launch(0, "mine", few)], tmp_path / "few.ncu.duckdb")
    with NcuData(path) as measured:
        _, unjudged = judge(measured)
    missing = {one.rule: one.metrics for one in unjudged}
    assert missing["uncoalesced-loads"][0] == "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    assert "spills" not in missing


def test_no_requests_is_not_a_missing_metric(tmp_path):
    """A kernel that loads by TMA alone has no sectors per request; nothing is missing."""
    (gemm,) = (one for one in read(DATA / "zoo_a.ncu.raw.csv") if one.ncu_id == 0)
    path = store.write([gemm], tmp_path / "gemm.ncu.duckdb", "native")
    with NcuData(path) as measured:
        _, unjudged = judge(measured)
        assert measured.rows("SELECT load_sectors_per_request_ratio AS ratio FROM ncu_kernels") == [{"ratio": None}]
    assert "uncoalesced-loads" not in {one.rule for one in unjudged}


@pytest.mark.slow
def test_an_estimate_of_ncu_belongs_to_the_rule_about_the_same_thing(tmp_path):
    files = [DATA / "zoo_a.ncu.raw.csv", DATA / "zoo_a.ncu.details.csv"]
    with NcuData(store.write(store.read_all(files), tmp_path / "zoo.ncu.duckdb")) as measured:
        findings, _ = judge(measured)
    (transpose,) = (one for one in findings if one.launch == 12 and one.rule == "uncoalesced-loads")
    assert (transpose.saving_pct, transpose.estimate) == (79.21, "MemoryCacheAccessPattern")
    assert transpose.evidence["load_sectors_per_request_ratio"] == 32
