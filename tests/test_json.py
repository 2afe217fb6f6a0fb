"""JSON for programs: every answer matches its schema, and an error is a JSON object on stderr."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import run
from schemas import get_validator, validate

import nsys_insight
from nsys_insight import errors
from nsys_insight.cli import json_schema
from nsys_insight.compare.answer import answer as build_diff_answer
from nsys_insight.compare.budgets import Budget, check_budgets
from nsys_insight.compare.comparison import compare
from nsys_insight.compare.runs import measure
from nsys_insight.ingest.ncu import store
from nsys_insight.kernel_code import ptxas, sass
from nsys_insight.ncu import diff, plan, report, report_formats, roofline
from nsys_insight.ncu.data import NcuData
from nsys_insight.packs.library import built_in_packs
from nsys_insight.packs.step_options import AUTO
from nsys_insight.render import write

jsonschema = pytest.importorskip("jsonschema")


def as_json(answer, limit=20):
    stream = io.StringIO()
    write(answer, stream, "json", limit=limit)
    return json.loads(stream.getvalue())


@pytest.fixture(scope="module")
def churn():
    with nsys_insight.open(Path(__file__).parents[1] / "sample_traces" / "churn.sqlite", use_cache=False) as trace:
        yield trace


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """Work in the checkout; give an empty folder."""
    monkeypatch.chdir(Path(__file__).parents[1])
    return tmp_path


@pytest.mark.slow
def test_every_schema_is_valid_and_part_of_the_combined_schema():
    combined_schema = json_schema.get_schema(None)
    jsonschema.Draft202012Validator.check_schema(combined_schema)
    assert (
        set(combined_schema["$defs"])
        == set(json_schema.list_schema_names())
        >= {*built_in_packs(), "diagnose", "diff", "sql", "error"}
    )
    for schema in combined_schema["$defs"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.slow
def test_the_answer_of_every_report_matches_its_schema(churn):
    for name in built_in_packs():
        answer = as_json(churn.answer(name))
        validate(answer, name, "answer")
        if answer["rows"]:
            first = next(iter(answer["rows"][0]))
            assert not get_validator(name).is_valid(answer | {"rows": [answer["rows"][0] | {first: ["a list"]}]}), name
            assert not get_validator(name).is_valid(answer | {"rows": [answer["rows"][0] | {"more": 1}]}), name


def test_parameters_match_the_schema(churn):
    answer = as_json(churn.answer("gaps", min_gap_ns="5us"))
    assert answer["params"]["min_gap_ns"] == 5000
    validate(answer, "gaps")
    assert not get_validator("gaps").is_valid(answer | {"params": {"min_gap": 1}})
    validate(as_json(churn.answer("per-token", tokens=20)), "per-token")


@pytest.mark.slow
def test_answers_of_other_commands_and_of_several_traces_match_their_schemas(churn, tmp_path):
    validate(as_json(churn.diagnose().answer()), "diagnose", "answer")
    run = measure(churn, AUTO)
    validate(as_json(build_diff_answer(compare([run], [run]))), "diff", "answer")
    validate(as_json(check_budgets(run, [Budget.parse("max", "kernels=3")], None, 3.0)), "check", "answer")
    validate(as_json(churn.query("SELECT name, 1.5 AS x, now() AS t FROM kernels")), "sql", "answer")
    other = shutil.copy(churn.path, tmp_path / "other.sqlite")
    with nsys_insight.open([churn.path, other], use_cache=False) as traces:
        answer = as_json(traces.answer("top"))
        assert {row["trace"] for row in answer["rows"]}
        validate(answer, "top", "answer")


# What each command that answers with JSON about a trace is called with; the reports have a test of their own.
ANSWERS_OF_COMMANDS = (
    "brief {trace}",
    "brief sample_traces/churn.sqlite",
    "check {trace} --max kernels=1000",
    "check {trace} --min kernels=1 --baseline {trace}",
    "diagnose {trace}",
    "diagnose {trace} --step-time 1.8ms",
    "diff {trace} {trace}",
    "diff sample_traces/churn.sqlite {trace}",
    "info {trace}",
    "packs",
    "sql {trace} SELECT+1",
)


@pytest.mark.slow
@pytest.mark.parametrize("words", ANSWERS_OF_COMMANDS)
def test_what_a_command_writes_matches_its_schema(words, empty_folder):
    name = words.partition(" ")[0]
    trace = "sample_traces/decode_eager.sqlite"
    process = run(*(word.replace("+", " ").format(trace=trace) for word in words.split()), "-f", "json")
    assert process.returncode == 0, process.stderr
    document = json.loads(process.stdout)
    validate(document, name, "answer")
    assert not get_validator(name).is_valid(document | {"more": 1})
    if "summary" in document:
        assert not get_validator(name).is_valid(document | {"summary": document["summary"] | {"more": 1}})


@pytest.mark.parametrize("words", ["rule", "baseline list", "cache", "schema", "schema kernels"])
def test_tables_without_a_schema_of_their_own_are_answers(words, empty_folder):
    validate(json.loads(run(*words.split(), "-f", "json").stdout), "answer")


@pytest.mark.parametrize(
    ("arguments", "expected_ending"),
    [
        ("top {folder}/none.sqlite -f json", ("trace", 3)),
        ("top {folder}/none.sqlite --format=jsonl", ("trace", 3)),
        ("top -fjson --limit many", ("usage", 2)),
        ("tpo -f table -f json", ("usage", 2)),
        ("sql sample_traces/churn.sqlite SELECT+nothing+FROM+kernels --format json", ("query", 1)),
    ],
)
def test_with_json_formats_an_error_is_one_json_object_on_stderr(arguments, expected_ending, empty_folder):
    process = run(*(word.replace("+", " ").format(folder=empty_folder) for word in arguments.split()))
    assert (process.returncode, process.stdout) == (expected_ending[1], "")
    error = json.loads(process.stderr.splitlines()[-1])
    validate(error, "error")
    assert (error["error"]["kind"], error["error"]["exit_code"]) == expected_ending
    assert error["error"]["message"]


def test_with_other_formats_an_error_is_text(tmp_path):
    assert run("top", tmp_path / "none.sqlite", "-f", "csv").stderr.startswith("error: ")


@pytest.mark.slow
def test_notes_are_either_in_the_answer_or_on_stderr(empty_folder):
    words = ("per-token", "sample_traces/decode_eager.sqlite", "-f")
    process = run(*words, "json")
    assert json.loads(process.stdout)["notes"]
    assert "note: " not in process.stderr
    assert "note: " in run(*words, "jsonl").stderr


def test_the_sql_argument_may_come_before_the_trace(empty_folder):
    process = run("sql", "SELECT count(*) AS n FROM kernels", "sample_traces/churn.sqlite", "-f", "jsonl")
    assert json.loads(process.stdout)["n"] > 0


def test_every_schema_of_a_command_has_an_answer_that_is_checked():
    """A command with a schema is run above, or in the tests of kernel code, ncu, `bench`, `experiment` and `fleet`."""
    checked = {words.partition(" ")[0] for words in ANSWERS_OF_COMMANDS}
    elsewhere = {"answer", "error", "bench", "experiment", "sass", "ptxas"}
    elsewhere |= {"fleet", "ncu-plan", "ncu-roofline", "ncu-diff", "ncu-report"}
    assert checked | elsewhere | set(built_in_packs()) == set(json_schema.list_schema_names())


def test_the_schema_lists_every_kind_of_error():
    kinds = {error.kind for error in (errors.InsightError, *errors.InsightError.__subclasses__())}
    assert kinds == set(json_schema.get_schema("error")["properties"]["error"]["properties"]["kind"]["enum"])


def test_the_columns_that_only_some_answers_have_keep_their_order():
    properties = json_schema.get_schema("idle")["properties"]
    names = properties["columns"]["items"]["properties"]["name"]["enum"]
    other_names = ["trace", "rank", "ranks", "rank_min_ns", "rank_max_ns", "max_rank"]
    assert names[-6:] == other_names == list(properties["rows"]["items"]["properties"])[:6]


def test_answers_about_kernel_code_match_their_schemas(churn):
    data = Path(__file__).parent / "data"
    for grouping in sass.GROUPINGS:
        answer = as_json(sass.answer(data / "sass" / "tune.source.csv", grouping=grouping))
        validate(answer, "sass", "answer")
        assert not get_validator("sass").is_valid(answer | {"rows": [answer["rows"][0] | {"name": 1}]})
    lines = (data / "sass" / "sass_a.sm_90a.ptxas.txt").read_text().splitlines()
    validate(as_json(ptxas.answer(lines, "a text", ptxas.Assumptions())), "ptxas", "answer")
    ncu_plan = plan.make(churn)
    params = {"command": ncu_plan.build_command("ncu", ("./churn",)), "set": ncu_plan.sections}
    validate(as_json(replace(ncu_plan.answer, params=params)), "ncu plan", "answer")


@pytest.mark.slow
def test_answers_about_ncu_data_match_their_schemas(churn):
    pages = Path(__file__).parent / "data" / "ncu"
    store_path = store.make_cached_store([pages / "churn.ncu.raw.csv", pages / "churn.ncu.details.csv"], None)
    with nsys_insight.open(churn.path, ncu=store_path, use_cache=False) as trace:
        rows, (wall,) = trace.answer("headroom").dicts(), trace.dicts("SELECT duration_ns FROM wall")
    with NcuData(store_path) as ncu_data:
        baseline = roofline.find_baseline(ncu_data, None)
        for context in (report.Context(), report.Context(rows, wall["duration_ns"], baseline)):
            stream = io.StringIO()
            report_formats.write_json(report.build(ncu_data, "churn", context), stream)
            ncu_report = json.loads(stream.getvalue())
            validate(ncu_report, "ncu-report")
            kernel = ncu_report["kernels"][0]
            assert not get_validator("ncu-report").is_valid(ncu_report | {"kernels": [kernel | {"sm_pct": "high"}]})
            assert any(
                kernel["findings"] and kernel["strategies"] and kernel["remarks"] for kernel in ncu_report["kernels"]
            )
        assert any(kernel["trace"] for kernel in ncu_report["kernels"])
        for roofline_baseline in (None, baseline):
            validate(as_json(roofline.answer(ncu_data, baseline=roofline_baseline)), "ncu-roofline", "answer")
        validate(as_json(diff.answer(diff.compare(ncu_data, ncu_data))), "ncu-diff", "answer")
