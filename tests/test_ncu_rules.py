"""Each rule fires in its cases and is silent in the others. Each finding has the values that prove it."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from nsys_insight.ingest.ncu import store
from nsys_insight.ingest.ncu.pages import Launch, read_file
from nsys_insight.ncu.data import NcuData, read_column_metrics
from nsys_insight.ncu.rules import evaluate_rules, load_ncu_rules
from nsys_insight.packs.rules import SEVERITIES
from nsys_insight.paths import read_query
from nsys_insight.sql.quoting import literal

DATA = Path(__file__).parent / "data" / "ncu"
CASES = list(csv.DictReader((DATA / "rules.csv").read_text(encoding="utf-8").splitlines()))
RULES = {rule.name: rule for rule in load_ncu_rules()}


def values(case):
    """Return the columns of a case. Blanks separate them, or semicolons if a value has a blank."""
    return dict(
        pair.split("=") for part in case["values"].split(";") for pair in re.findall(r"\w+=[^=]*(?=\s\w+=|$)", part)
    )


def launch(number, kernel="k", metrics=None):
    return Launch("r", number * 10, 1, "app", kernel, 1, 7, 0, "9.0", (1, 1, 1), (32, 1, 1), metrics or {})


@pytest.fixture(scope="module")
def findings_by_case(tmp_path_factory):
    """Return the rules that fired, by case."""
    path = tmp_path_factory.mktemp("ncu") / "cases.ncu.duckdb"
    store.write([launch(number) for number in range(len(CASES))], path)
    with NcuData(path) as data:
        for number, case in enumerate(CASES):
            column_values = {"implementation": case["implementation"], **values(case)}
            cells = ", ".join(f"{column} = {literal(value)}" for column, value in column_values.items())
            empty = ", ".join(
                f"{column} = NULL" for column in read_column_metrics() if column not in (*column_values, *KEY_COLUMNS)
            )
            data.connection.execute(f"UPDATE ncu_kernels SET {empty}, {cells} WHERE launch = {number}")
            if case["rule"] == "cutlass-epilogue":
                data.connection.execute(
                    f"""INSERT INTO ncu_kernels
                            (launch, report, process_id, ncu_id, kernel, family, implementation, duration_ns)
                        VALUES ({1000 + number}, 'r', 1, {number * 10 + 1}, 'relu', 'activation', 'native', 1500)"""
                )
        findings, _ = evaluate_rules(data)
    return {number: [finding for finding in findings if finding.launch == number] for number in range(len(CASES))}


KEY_COLUMNS = ("launch", "report", "ncu_id", "process_id", "kernel", "short_name")


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=lambda number: f"{CASES[number]['rule']}-{CASES[number]['outcome']}-{number}"
)
def test_a_rule_fires_only_in_its_cases(findings_by_case, number):
    case = CASES[number]
    fired = {finding.rule for finding in findings_by_case[number]}
    assert (case["rule"] in fired) == (case["outcome"] == "fires")


def test_every_rule_has_both_cases():
    outcomes = Counter((case["rule"], case["outcome"]) for case in CASES)
    assert {rule for rule, _ in outcomes} == set(RULES)
    assert all(outcomes[name, outcome] for name in RULES for outcome in ("fires", "silent"))


def test_a_finding_has_the_values_of_its_condition(findings_by_case):
    all_findings = [finding for findings in findings_by_case.values() for finding in findings]
    assert len(all_findings) >= len(RULES)
    for finding in all_findings:
        assert tuple(finding.evidence) == RULES[finding.rule].evidence
        assert any(value is not None for value in finding.evidence.values())
        assert finding.severity in SEVERITIES
        assert finding.action


@pytest.mark.parametrize("name", RULES)
def test_every_column_in_a_condition_is_evidence(name):
    """The deciding values must be shown. The name, family and type of the kernel are shown anyway."""
    rule = RULES[name]
    condition = rule.sql.partition("WHERE")[2]
    identity_columns = {"implementation", "family", "launch", "report", "process_id", "ncu_id", "kernel"}
    condition_columns = (set(re.findall(r"\b[a-z]\w+\b", condition)) & set(read_column_metrics())) - identity_columns
    assert condition_columns <= set(rule.evidence)


@pytest.mark.parametrize("name", RULES)
def test_a_header_is_complete(name):
    rule = RULES[name]
    assert set(rule.actions) <= set(store.IMPLEMENTATIONS)
    assert set(re.findall(r"\$(\w+)", rule.sql)) == set(rule.params)
    assert all(rule.param_help[param] for param in rule.params)
    assert "playbook" not in read_query(f"ncu_rules/{name}")


def test_a_rule_that_cannot_be_evaluated_lists_the_missing_metrics(tmp_path):
    metrics = {
        name: metric
        for name, metric in read_file(DATA / "zoo_a.ncu.raw.csv")[12].metrics.items()
        if "global_op_ld" not in name
    }
    path = store.write([launch(0, "mine", metrics)], tmp_path / "few.ncu.duckdb")
    with NcuData(path) as data:
        _, skipped_rules = evaluate_rules(data)
    missing = {skipped_rule.rule: skipped_rule.metrics for skipped_rule in skipped_rules}
    assert missing["uncoalesced-loads"][0] == "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    assert "spills" not in missing


def test_no_requests_is_not_a_missing_metric(tmp_path):
    """A kernel that loads by TMA alone has no sectors per request; nothing is missing."""
    (gemm,) = (launch for launch in read_file(DATA / "zoo_a.ncu.raw.csv") if launch.ncu_id == 0)
    path = store.write([gemm], tmp_path / "gemm.ncu.duckdb", "native")
    with NcuData(path) as data:
        _, skipped_rules = evaluate_rules(data)
        assert data.rows("SELECT load_sectors_per_request_ratio AS ratio FROM ncu_kernels") == [{"ratio": None}]
    assert "uncoalesced-loads" not in {skipped_rule.rule for skipped_rule in skipped_rules}


@pytest.mark.slow
def test_an_estimate_of_ncu_belongs_to_the_rule_about_the_same_problem(tmp_path):
    files = [DATA / "zoo_a.ncu.raw.csv", DATA / "zoo_a.ncu.details.csv"]
    with NcuData(store.write(store.read_all(files), tmp_path / "zoo.ncu.duckdb")) as data:
        findings, _ = evaluate_rules(data)
    (transpose,) = (finding for finding in findings if finding.launch == 12 and finding.rule == "uncoalesced-loads")
    assert (transpose.saving_pct, transpose.estimate) == (79.21, "MemoryCacheAccessPattern")
    assert transpose.evidence["load_sectors_per_request_ratio"] == 32
