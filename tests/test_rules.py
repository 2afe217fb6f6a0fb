"""The rules of diagnose: their files, their words, and how they are chosen and written out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import duckdb
import pytest
from command_line import run as run_cli
from opening import only_rules, open_trace

from nsys_insight.diagnose.evaluate import AnsweredReports, evaluate_trace
from nsys_insight.diagnose.findings import (
    ANY,
    EFFORTS,
    FRAMEWORKS,
    NUMERICS,
    RESERVED_COLUMNS,
    list_reports,
    read_finding_rules,
)  # fmt: skip
from nsys_insight.diagnose.rule_choice import RuleChoice, read_project_choice, split_names
from nsys_insight.diagnose.rule_text import GROUPS, write_rule
from nsys_insight.errors import UsageError
from nsys_insight.model.views import definitions
from nsys_insight.packs.step_options import AUTO
from nsys_insight.text.templates import fill_template, list_columns

RULES = read_finding_rules()
for_each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
# Words that name a framework. A text for one of them, or for any program, names no other.
WORDS = {
    "pytorch": r"torch|DataLoader|(?<!jax\.)\bnn\.|foreach|fused=True|channels_last|scaled_dot_product|\baten\b",
    "jax": r"\bjax|(?<!cuda\.)\bjit\b|lax\.|jnp|optax|\bXLA",
    "cupy": r"cupy|ElementwiseKernel|RawKernel",
    "openacc": r"\bacc\b|OpenACC|\bgang\b",
    "openmp": r"OpenMP|\btarget (?:data|teams|nowait|update)",
    "kokkos": r"Kokkos",
    "sycl": r"SYCL|sycl",
    "julia": r"CUDA\.@|\bJulia",
    "numba": r"numba|cuda\.jit",
}
# Frameworks that build on another one, whose words they may use.
RELATED = {"inductor": {"pytorch"}, "python": {"pytorch", "jax", "cupy", "numba"}, "fortran": {"openacc", "openmp"}}


def cures(rule):
    """List the texts of a rule with their frameworks."""
    tables = list(rule.cure.values()) if any(isinstance(text, dict) for text in rule.cure.values()) else [rule.cure]
    return [(framework, text) for table in tables for framework, text in table.items()]


class TestFiles:
    def test_codes_are_unique_and_in_a_group(self):
        codes = [rule.code for rule in RULES]
        assert len(codes) == len(set(codes))
        assert all(re.fullmatch(r"NSI\d{3}", code) and code[3] in GROUPS for code in codes)

    @for_each_rule
    def test_the_words_are_complete(self, rule):
        assert rule.effort in EFFORTS
        assert rule.numerics in NUMERICS
        assert all(framework in FRAMEWORKS for framework, _ in cures(rule))
        tables = rule.cure.values() if any(isinstance(text, dict) for text in rule.cure.values()) else [rule.cure]
        assert all(ANY in table for table in tables)

    @for_each_rule
    def test_the_query_is_short_and_builds_no_sentence(self, rule):
        lines = [line for line in rule.sql.splitlines() if line.strip() and not line.strip().startswith("--")]
        assert len(lines) < 60
        assert not re.search(r"time_text|share_text|counted_text|format_bytes", rule.sql)
        # A text with several words is part of a sentence, or a name or pattern to compare with.
        prose = re.findall(r"\|\| *'([^']*)'", rule.sql)
        assert [text for text in prose if re.search(r"[a-z]+ [a-z]+", text)] == []

    @for_each_rule
    def test_a_text_names_only_its_own_framework(self, rule):
        general = [("any program", text) for text in (rule.title, rule.meaning, rule.caveat, rule.estimate)]
        general += [("any program", str(clause)) for clause in rule.evidence]
        for framework, text in [*general, *cures(rule)]:
            # A rule about the events of a framework's runtime names it.
            own_framework = {"openacc"} if "openacc_events" in rule.sql else set()
            allowed = {framework, *RELATED.get(framework, ()), *own_framework}
            foreign = [name for name, words in WORDS.items() if name not in allowed and re.search(words, text)]
            assert (framework, foreign) == (framework, []), text

    @for_each_rule
    def test_an_example_is_a_trace_of_the_project(self, rule):
        assert not rule.example or (Path(__file__).parents[1] / rule.example).is_file()


class TestTemplates:
    @pytest.mark.parametrize(
        ("clauses", "columns", "text"),
        [
            (["idle for {idle_ns}"], {"idle_ns": 2_290_000.0}, "idle for 2.29 ms"),
            (["{reads:read} of {size_bytes}"], {"reads": 1, "size_bytes": 4}, "1 read of 4 B"),
            (["{reads:read}"], {"reads": 12}, "12 reads"),
            (["{chains:chain saves|chains save} time"], {"chains": 2}, "2 chains save time"),
            (["a", "{missing_ns}"], {"missing_ns": None}, "a"),
            ([["{low_ns} to {high_ns}", "{high_ns}"]], {"low_ns": None, "high_ns": 1000}, "1 µs"),
            (["{?is_pinned}pinned", "b"], {"is_pinned": False}, "b"),
            (["{?is_pinned}pinned", "b"], {"is_pinned": True}, "pinned; b"),
            (["{share_pct} of it"], {"share_pct": 12.34}, "12.3% of it"),
            (["process {process_id}"], {"process_id": 12345}, "process 12345"),
            (["{ranks:rank} {#ranks:is|are} late"], {"ranks": [3]}, "rank 3 is late"),
            (["{ranks:rank} {#ranks:is|are} late"], {"ranks": [0, 1]}, "ranks 0, 1 are late"),
            (["{ranks:rank}"], {"ranks": list(range(10))}, "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more"),
            (["all<, {more} of them slow> done"], {"more": 2}, "all, 2 of them slow done"),
            (["all<, {more} of them slow> done"], {"more": None}, "all done"),
            (["<{?is_cut}cut: >{rest}"], {"is_cut": False, "rest": None}, ""),
            (["call cublas<t>gemm in {kernel}"], {"kernel": "a"}, "call cublas<t>gemm in a"),
            (["<<<grid, block, bytes>>>"], {}, "<<<grid, block, bytes>>>"),
        ],
    )
    def test_a_template_is_filled_with_units(self, clauses, columns, text):
        assert fill_template(clauses, columns) == text

    def test_a_list_has_a_template_of_its_own(self):
        kernels = [{"name": "a", "time_ns": 1000}, {"name": "b", "time_ns": None}]
        text = fill_template(
            ["{kernels}; in all {count}"], {"kernels": kernels, "count": 2}, {"kernels": ["{name}", "{time_ns}"]}
        )
        assert text == "a, 1 µs; b; in all 2"

    def test_names_of_a_list_that_differ_in_their_middle_show_it(self):
        tail = f", {', '.join(f'(mode_t){number}' for number in range(20, 30))}, EPT<(unsigned int)16>>(T1)"
        names = [f"void bluestein_fft<(unsigned int){size}{tail}" for size in (256, 128)]
        text = fill_template(["{kernels}"], {"kernels": [{"name": name} for name in names]}, {"kernels": ["{name}"]})
        first, second = text.split(", bluestein_fft")
        assert (first[:18], second[:4]) == ("bluestein_fft<256,", "<128")

    def test_an_unknown_column_is_an_error(self):
        with pytest.raises(KeyError):
            fill_template(["{other}"], {})

    @for_each_rule
    def test_a_query_has_the_columns_of_its_templates(self, rule):
        items = {name for clauses in rule.items.values() for name in list_columns(clauses)}
        named_columns = list_columns(rule.evidence) | list_columns([text for _, text in cures(rule)])
        named_columns |= {name for name in items if not re.search(rf"\b{name}\b", rule.sql)}
        # The columns of some lists are those of a view.
        views = [view.query for name, view in definitions().items() if re.search(rf"\b{name}\b", rule.sql)]
        named_columns -= {name for name in items if any(re.search(rf"\b{name}\b", query) for query in views)}
        missing = [
            name for name in named_columns - {"per"} if not re.search(rf"\b{name}\b|\.\*|\* EXCLUDE|unnest", rule.sql)
        ]
        assert missing == []


class TestChoice:
    @pytest.mark.parametrize(
        ("choice", "first", "has"),
        [
            (RuleChoice(("NSI2",)), "NSI2", True),
            (RuleChoice(("NSI2xx",)), "NSI2", True),
            (RuleChoice((), ("NSI2",)), "NSI2", False),
            (RuleChoice(("d2h-sync",)), "NSI201", True),
        ],
    )
    def test_rules_are_chosen_by_code_group_and_name(self, choice, first, has):
        codes = [rule.code for rule in choice.filter(RULES)]
        assert codes
        assert any(code.startswith(first) for code in codes) == has
        if choice.select:
            assert all(code.startswith(first) for code in codes)

    def test_a_file_of_the_project_chooses_rules(self, tmp_path):
        file = tmp_path / "nsys-insight.toml"
        file.write_text('[diagnose]\nignore = ["NSI4"]\n', encoding="utf-8")
        (tmp_path / ".git").mkdir()
        inner = tmp_path / "runs"
        inner.mkdir()
        assert read_project_choice(inner) == RuleChoice((), ("NSI4",), file)

    @pytest.mark.parametrize(
        "text",
        ['[diagnose]\nselect = ["NSI8"]', '[diagnose]\nselected = ["NSI1"]', "[diagnose]\nselect = [1]", "[diagnose"],
    )
    def test_a_wrong_file_is_one_clear_error(self, text, tmp_path):
        (tmp_path / "nsys-insight.toml").write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=r"nsys-insight\.toml"):
            read_project_choice(tmp_path)


def test_a_rule_needs_only_the_reports_that_it_reads(sample):
    (rule,) = RuleChoice(("idle-at-start",)).filter(RULES)
    with open_trace(sample("churn")) as trace:
        reports = AnsweredReports(trace, AUTO)
        assert [finding.name for finding in evaluate_trace(reports, [rule])] == ["idle-at-start"]
    assert reports.answers.keys() == {*list_reports(rule.sql), *list_reports(rule.when)}


class TestCommands:
    def test_rule_lists_and_explains(self):
        rule_list = run_cli("rule", "--format", "json")
        assert {row["code"] for row in json.loads(rule_list.stdout)["rows"]} == {rule.code for rule in RULES}
        explained = run_cli("rule", "d2h-sync").stdout
        assert "NSI201" in explained
        assert ".item()" in explained

    def test_an_unknown_rule_is_refused(self):
        result = run_cli("rule", "NSI999")
        assert result.returncode == 2
        assert "no rule is 'NSI999'" in result.stderr

    def test_a_severity_names_no_rules(self):
        with pytest.raises(UsageError) as refused:
            split_names(["critical"], "--fail-on")
        assert refused.value.hint == "nsys-insight rule lists them; NSI stands for all"

    def test_diagnose_uses_the_chosen_rules(self, sample):
        result = run_cli("diagnose", sample("churn"), "--select", "NSI2", "--format", "json")
        codes = {row["code"] for row in json.loads(result.stdout)["rows"]}
        assert codes
        assert all(code.startswith("NSI2") for code in codes)

    def test_check_fails_on_a_finding(self, sample, tmp_path):
        junit, sarif = tmp_path / "check.xml", tmp_path / "check.sarif"
        result = run_cli(
            "check", sample("churn"), "--fail-on", "NSI201", "--junit", junit, "--sarif", sarif, "--format", "json"
        )
        assert result.returncode == 1
        (row,) = json.loads(result.stdout)["rows"]
        assert (row["verdict"], row["metric"], row["bound"]) == ("broken", "NSI201 d2h-sync", "finding")
        assert "copies to the host per step" in row["evidence"]
        assert json.loads(sarif.read_text())["runs"][0]["results"][0]["ruleId"] == "NSI201"
        assert "NSI201 d2h-sync" in junit.read_text()

    def test_check_passes_without_the_finding(self, sample):
        assert run_cli("check", sample("decode_graph_node"), "--fail-on", "NSI301").returncode == 0

    def test_a_finding_has_numbers_a_cure_and_a_saving(self, sample):
        with only_rules("launch-bound", "graph-candidate"):
            result = run_cli("diagnose", sample("decode_eager"), "--format", "json")
        row = json.loads(result.stdout)["rows"][0]
        assert row["code"] == "NSI101"
        assert row["evidence_values"]["launch_calls"] == 196
        assert not set(row["evidence_values"]) & set(RESERVED_COLUMNS)
        assert row["cure"]["framework"] == "pytorch"
        assert "torch.compile" in row["cure"]["text"]
        assert row["saving"]["unit"] == "step"


@for_each_rule
def test_a_page_shows_no_braces(rule):
    page = write_rule(rule)
    assert page.startswith(f"# {rule.code} {rule.name}")
    assert not re.search(r"[{}]", page)


def test_maps_and_rows_are_written_as_literals():
    from nsys_insight.sql.quoting import literal

    (row,) = duckdb.sql(f"SELECT {literal({'a': 1.5})}, {literal((1, None))}, {literal([True])}").fetchall()
    assert row[0] == {"a": 1.5}
    assert tuple(row[1].values() if isinstance(row[1], dict) else row[1]) == (1, None)
    assert row[2] == [True]
