"""JSON for programs: every answer is what its schema says, and an error is an object too, on stderr."""

from __future__ import annotations

import functools
import io
import json
import shutil
import sys
from pathlib import Path

import pytest

import nsys_insight
from nsys_insight import errors
from nsys_insight.cli import json_schema, main
from nsys_insight.compare import answer as compared
from nsys_insight.compare.budgets import Budget, checked
from nsys_insight.compare.comparison import compare
from nsys_insight.compare.runs import measure
from nsys_insight.packs.built_in import built_in
from nsys_insight.packs.step_options import AUTO
from nsys_insight.render import write

jsonschema = pytest.importorskip("jsonschema")


def as_json(answer, limit=20):
    stream = io.StringIO()
    write(answer, stream, "json", limit=limit)
    return json.loads(stream.getvalue())


def valid(answer, *names):
    """Hold an answer to the schemas of these names."""
    for name in names:
        validator(name).validate(answer)


@functools.cache
def validator(name):
    return jsonschema.Draft202012Validator(json_schema.schema_of(name))


@pytest.fixture(scope="module")
def churn():
    with nsys_insight.open(Path(__file__).parents[1] / "sample_traces" / "churn.sqlite", use_cache=False) as trace:
        yield trace


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in the checkout, beside an empty folder."""
    monkeypatch.chdir(Path(__file__).parents[1])
    return tmp_path


def test_every_schema_is_one_and_the_schema_of_all_has_each():
    every = json_schema.schema_of(None)
    jsonschema.Draft202012Validator.check_schema(every)
    assert set(every["$defs"]) == set(json_schema.names()) >= {*built_in(), "diagnose", "diff", "sql", "error"}
    for schema in every["$defs"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


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
def test_an_error_is_one_json_object_on_stderr_where_json_is_asked_for(typed, ended_by, here, monkeypatch, capsys):
    words = [word.replace("+", " ").format(folder=here) for word in typed.split()]
    monkeypatch.setattr(sys, "argv", ["nsys-insight", *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (ended_by[1], "")
    found = json.loads(said.err.splitlines()[-1])
    valid(found, "error")
    assert (found["error"]["kind"], found["error"]["exit_code"]) == ended_by
    assert found["error"]["message"]


def test_an_error_is_text_where_it_is_not(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["nsys-insight", "top", str(tmp_path / "none.sqlite"), "-f", "csv"])
    with pytest.raises(SystemExit):
        main.main()
    assert capsys.readouterr().err.startswith("error: ")


def test_every_kind_of_error_has_its_word():
    kinds = {each.kind for each in (errors.InsightError, *errors.InsightError.__subclasses__())}
    assert kinds == set(json_schema.schema_of("error")["properties"]["error"]["properties"]["kind"]["enum"])
