"""JSON for programs: every answer is what its schema says, and an error is an object too, on stderr."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import run
from schemas import valid, validator

import nsys_insight
from nsys_insight import errors
from nsys_insight.cli import json_schema
from nsys_insight.compare import answer as compared
from nsys_insight.compare.budgets import Budget, checked
from nsys_insight.compare.comparison import compare
from nsys_insight.compare.runs import measure
from nsys_insight.ingest.ncu import store
from nsys_insight.kernel_code import ptxas, sass
from nsys_insight.kernel_code.reading import Limits
from nsys_insight.ncu import diff, plan, report, report_formats, roofline
from nsys_insight.ncu.data import NcuData
from nsys_insight.packs.library import built_in
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
def here(tmp_path, monkeypatch):
    """Work in the checkout, beside an empty folder."""
    monkeypatch.chdir(Path(__file__).parents[1])
    return tmp_path


@pytest.mark.slow
def test_every_schema_is_one_and_the_schema_of_all_has_each():
    every = json_schema.schema_of(None)
    jsonschema.Draft202012Validator.check_schema(every)
    assert set(every["$defs"]) == set(json_schema.names()) >= {*built_in(), "diagnose", "diff", "sql", "error"}
    for schema in every["$defs"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.slow
def test_the_answer_of_every_report_is_what_its_schema_says(churn):
    for name in built_in():
        found = as_json(churn.answer(name))
        valid(found, name, "answer")
        if found["rows"]:
            first = next(iter(found["rows"][0]))
            assert not validator(name).is_valid(found | {"rows": [found["rows"][0] | {first: ["a list"]}]}), name
            assert not validator(name).is_valid(found | {"rows": [found["rows"][0] | {"more": 1}]}), name


def test_parameters_are_what_the_schema_says(churn):
    found = as_json(churn.answer("gaps", min_gap_ns="5us"))
    assert found["params"]["min_gap_ns"] == 5000
    valid(found, "gaps")
    assert not validator("gaps").is_valid(found | {"params": {"min_gap": 1}})
    valid(as_json(churn.answer("per-token", tokens=20)), "per-token")


@pytest.mark.slow
def test_answers_about_several_traces_and_of_other_commands_are_what_their_schemas_say(churn, tmp_path):
    valid(as_json(churn.diagnose().answer()), "diagnose", "answer")
    run = measure(churn, AUTO)
    valid(as_json(compared.answer(compare([run], [run]))), "diff", "answer")
    valid(as_json(checked(run, [Budget.parsed("max", "kernels=3")], None, 3.0).answer), "check", "answer")
    valid(as_json(churn.query("SELECT name, 1.5 AS x, now() AS t FROM kernels")), "sql", "answer")
    other = shutil.copy(churn.path, tmp_path / "other.sqlite")
    with nsys_insight.open([churn.path, other], use_cache=False) as traces:
        found = as_json(traces.answer("top"))
        assert {row["trace"] for row in found["rows"]}
        valid(found, "top", "answer")


@pytest.mark.parametrize(
    ("typed", "ended_by"),
    [
        ("top {folder}/none.sqlite -f json", ("trace", 3)),
        ("top {folder}/none.sqlite --format=jsonl", ("trace", 3)),
        ("top -fjson --limit many", ("usage", 2)),
        ("tpo -f table -f json", ("usage", 2)),
        ("sql sample_traces/churn.sqlite SELECT+nothing+FROM+kernels --format json", ("query", 1)),
    ],
)
def test_an_error_is_one_json_object_on_stderr_where_json_is_asked_for(typed, ended_by, here):
    done = run(*(word.replace("+", " ").format(folder=here) for word in typed.split()))
    assert (done.returncode, done.stdout) == (ended_by[1], "")
    found = json.loads(done.stderr.splitlines()[-1])
    valid(found, "error")
    assert (found["error"]["kind"], found["error"]["exit_code"]) == ended_by
    assert found["error"]["message"]


def test_an_error_is_text_where_it_is_not(tmp_path):
    assert run("top", tmp_path / "none.sqlite", "-f", "csv").stderr.startswith("error: ")


@pytest.mark.slow
def test_notes_are_in_the_answer_or_on_stderr_and_not_in_both(here):
    words = ("per-token", "sample_traces/decode_eager.sqlite", "-f")
    whole = run(*words, "json")
    assert json.loads(whole.stdout)["notes"]
    assert "note: " not in whole.stderr
    assert "note: " in run(*words, "jsonl").stderr


def test_sql_may_come_before_the_trace_that_it_is_about(here):
    done = run("sql", "SELECT count(*) AS n FROM kernels", "sample_traces/churn.sqlite", "-f", "jsonl")
    assert json.loads(done.stdout)["n"] > 0


def test_every_kind_of_error_has_its_word():
    kinds = {each.kind for each in (errors.InsightError, *errors.InsightError.__subclasses__())}
    assert kinds == set(json_schema.schema_of("error")["properties"]["error"]["properties"]["kind"]["enum"])


def test_what_reads_kernels_is_what_its_schema_says(churn):
    shown = Path(__file__).parent / "data"
    for by in sass.BY:
        found = as_json(sass.answer(shown / "sass" / "tune.source.csv", by=by, limits=Limits()))
        valid(found, "sass", "answer")
        assert not validator("sass").is_valid(found | {"rows": [found["rows"][0] | {"name": 1}]})
    lines = (shown / "sass" / "sass_a.sm_90a.ptxas.txt").read_text().splitlines()
    valid(as_json(ptxas.answer(lines, "a text", ptxas.Assumed())), "ptxas", "answer")
    made = plan.make(churn)
    params = {"command": made.command("ncu", ("./churn",)), "set": made.sections}
    valid(as_json(replace(made.answer, params=params)), "ncu plan", "answer")


@pytest.mark.slow
def test_what_ncu_measured_is_what_its_schema_says(churn):
    pages = Path(__file__).parent / "data" / "ncu"
    stored = store.cached([pages / "churn.ncu.raw.csv", pages / "churn.ncu.details.csv"], None)
    with nsys_insight.open(churn.path, ncu=stored, use_cache=False) as trace:
        rows, (wall,) = trace.answer("headroom").dicts(), trace.dicts("SELECT duration_ns FROM wall")
    with NcuData(stored) as measured:
        baseline = roofline.baseline_of(measured, None)
        for of_trace in (report.Context(), report.Context(rows, wall["duration_ns"], baseline)):
            stream = io.StringIO()
            report_formats.write_json(report.build(measured, "churn", of_trace), stream)
            found = json.loads(stream.getvalue())
            valid(found, "ncu-report")
            kernel = found["kernels"][0]
            assert not validator("ncu-report").is_valid(found | {"kernels": [kernel | {"sm_pct": "high"}]})
            assert any(kernel["findings"] and kernel["strategies"] and kernel["remarks"] for kernel in found["kernels"])
        assert any(kernel["trace"] for kernel in found["kernels"])
        for beside in (None, baseline):
            valid(as_json(roofline.answer(measured, baseline=beside)), "ncu-roofline", "answer")
        valid(as_json(diff.answer(diff.compare(measured, measured))), "ncu-diff", "answer")
