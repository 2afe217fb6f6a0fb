"""Baselines by name, checks against them, and the files that a pipeline reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import command_line
import pytest
import yaml
from conftest import REPOSITORY
from opening import open_trace
from serving import serve

from nsys_insight.compare import baselines
from nsys_insight.compare.runs import measure

EARLIER, LATER = "2026-01-02T03:04:05+00:00", "2026-02-03T04:05:06+00:00"


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Write a run, and one with slower prefills and faster decodes."""
    folder = tmp_path_factory.mktemp("traces")
    before = serve().trace.gpu(name="NVIDIA H200").write(folder / "before.sqlite")
    after = serve(prefill_ns=60_000, decode_ns=3_000).trace.gpu(name="NVIDIA H100").write(folder / "after.sqlite")
    return SimpleNamespace(before=before, after=after)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Make a repository with the current folder in it, and a folder of the user."""
    folder = tmp_path / "repository" / "src"
    folder.mkdir(parents=True)
    (folder.parent / ".git").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NSYS_INSIGHT_BASELINE_DIR", str(tmp_path / "user"))
    return folder.parent


@pytest.fixture
def run(repository):
    """Run a command in the repository."""
    return command_line.run


@pytest.mark.slow
def test_a_baseline_can_be_saved_listed_checked_and_removed(run, repository, traces):
    baseline_file = repository / ".nsys-insight" / "baselines" / "main.json"
    save_result = run("baseline", "save", traces.before, "--name", "main", "--tag", "v1", "--param", "batch=4")
    assert save_result.returncode == 0, save_result.stderr
    assert baseline_file.is_file()
    (row,) = json.loads(run("baseline", "list", "-f", "json").stdout)["rows"]
    with open_trace(traces.before) as trace:
        (rate,) = [row["mean"] for row in trace.run("per-token").to_dicts() if row["metric"] == "tokens_per_s"]
    assert (row["name"], row["tags"], row["params"], row["gpu"]) == ("main", "v1", "batch=4", "NVIDIA H200")
    assert row["tokens_per_s"] == pytest.approx(rate)
    assert run("baseline", "list", "--tag", "v2", "-f", "csv").stdout.count("\n") == 1
    values = {
        (row["name"], row["metric"]): row
        for row in json.loads(run("baseline", "show", "v1", "-f", "json").stdout)["rows"]
    }
    assert values[None, "wall_ns"]["mean"] == pytest.approx(row["wall_ns"])
    assert ("decode, batch 4", "wall_ns") in values

    # The same run passes; a different workload is reported.
    same_run = run("check", traces.before, "--baseline", "main", "--param", "batch=8", "-f", "json")
    assert same_run.returncode == 0
    assert any("different workload: batch was 4 and is 8" in note for note in json.loads(same_run.stdout)["notes"])
    # A slower phase breaks the baseline; another GPU is reported.
    worse = run("check", traces.after, "--baseline", "v1", "-f", "json")
    assert worse.returncode == 1
    broken = {row["metric"] for row in json.loads(worse.stdout)["rows"] if row["verdict"] == "broken"}
    assert broken == {"mixed_batch_2_wall_ns", "mixed_batch_4_wall_ns"}
    assert any("another GPU (NVIDIA H200; this is NVIDIA H100)" in note for note in json.loads(worse.stdout)["notes"])
    assert "one phase got faster at the cost of another" in run("diff", "main", traces.after).stderr

    assert run("check", traces.after, "--baseline", "mian").stderr == (
        "error: there is no baseline 'mian'\nhint: did you mean main?\n"
    )
    assert run("baseline", "rm", "v1").returncode == 2  # a tag
    assert run("baseline", "rm", "main").returncode == 0
    assert not baseline_file.exists()
    assert run("baseline", "rm", "main").returncode == 2


def test_a_saved_run_is_compared_by_its_name(run, traces):
    assert run("baseline", "save", traces.before, "--name", "main").returncode == 0
    result = run("diff", "main", traces.before)
    assert (result.returncode, "same file" in result.stderr) == (0, False), result.stderr


def test_a_pipe_gets_no_json(run, traces):
    result = run("baseline", "save", traces.before)
    assert (result.returncode, result.stdout) == (2, "")
    assert "a baseline needs a name" in result.stderr


def test_baselines_of_the_repository_hide_those_of_the_user(repository, traces, monkeypatch, tmp_path):
    with open_trace(traces.before) as trace:
        run = measure(trace)
    baselines.save(run, "main", baselines.BaselineInfo(LATER, tags=("release",)), in_users_folder=True)
    baselines.save(run, "main", baselines.BaselineInfo(EARLIER), in_users_folder=False)
    baselines.save(run, "v1", baselines.BaselineInfo(EARLIER, tags=("release",)))
    baselines.save(run, "v2", baselines.BaselineInfo(LATER, tags=("release",)))
    # A baseline of the repository hides the user's one of the same name. A tag means the baseline that was saved last.
    assert baselines.find_baseline("main").info.saved_at == EARLIER
    assert [baseline.name for baseline in baselines.list_baselines()] == ["main", "v1", "v2"]
    assert baselines.find_baseline("release").name == "v2"
    # Outside a repository there are only the user's baselines.
    monkeypatch.chdir(tmp_path)
    assert [baseline.info.saved_at for baseline in baselines.list_baselines()] == [LATER]


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b", "x" * 101, "ü"])
def test_a_name_must_be_a_valid_file_name(name, run, traces):
    refused = run("baseline", "save", traces.before, "--name", name)
    assert refused.returncode == 2
    assert "a baseline cannot be called" in refused.stderr


def test_check_writes_files_for_a_pipeline(run, repository, traces):
    budget = Path("budget.toml")
    budget.write_text('[max]\nmallocs_per_step = 0\nlaunches_per_token = 1\n[min]\ngpu_busy_pct = "1"\n')
    files = ["--junit", "junit.xml", "--sarif", "check.sarif", "-o", "check.md"]
    for _ in range(2):  # the second run replaces the files
        assert run("check", traces.before, "--budget", budget, *files).returncode == 1
    suite = ET.parse("junit.xml").getroot().find("testsuite")  # noqa: S314 - written above
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    (failed,) = [case for case in suite if len(case)]
    assert failed.get("name") == "launch_calls (max)"
    assert "allowed: at most 1" in failed[0].get("message")
    (sarif,) = json.loads(Path("check.sarif").read_text())["runs"]
    (result,) = sarif["results"]
    assert result["ruleId"] == "launch_calls"
    assert [rule["id"] for rule in sarif["tool"]["driver"]["rules"]] == ["launch_calls"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("budget.toml", 3)
    assert Path("check.md").read_text().startswith("## 1 of 3 limits exceeded\n")
    refused = run("check", traces.before, "--budget", budget, "--junit", traces.before)
    assert refused.returncode == 2
    assert "is the trace itself" in refused.stderr


@pytest.mark.parametrize(
    ("limit", "suggested"),
    [
        ("wall=3", "wall=3ms"),
        ("wall_per_token=2.5", "wall_per_token=2.5ms"),
        ("h2d=8", "h2d=8MB"),
    ],
)
def test_a_time_or_size_without_a_unit_is_refused(run, traces, limit, suggested):
    result = run("check", traces.before, "--max", limit)
    assert (result.returncode, result.stdout) == (2, "")
    assert "without a unit" in result.stderr
    assert suggested in result.stderr


@pytest.mark.parametrize("limit", ["wall=1s", "wall_ns=1000000000", "h2d=1MB", "gpu_idle=1s", "gpu_busy_pct=100"])
def test_other_limits_need_no_unit_or_have_one(run, traces, limit):
    assert run("check", traces.before, "--max", limit).returncode == 0


ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text())


def run_action_steps(folder, **inputs):
    """Run the steps of the action, except those that install and comment, as a runner does.

    Return the exit codes, the outputs and the summary.
    """
    stub = folder / "bin" / "nsys-insight"
    stub.parent.mkdir(exist_ok=True)
    stub.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nsys_insight "$@"\n')
    stub.chmod(0o755)
    output, summary = folder / "output", folder / "summary"
    output.write_text("")
    summary.write_text("")
    values = {f"inputs.{name}": str(description.get("default", "")) for name, description in ACTION["inputs"].items()}
    values |= {f"inputs.{name}": str(value) for name, value in inputs.items()}
    codes = {}
    for step in ACTION["runs"]["steps"]:
        if step["id"] in ("install", "comment"):
            continue
        step_inputs = {
            name: values[text.removeprefix("${{ ").removesuffix(" }}")] for name, text in step["env"].items()
        }
        environment = os.environ | step_inputs | {
            "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary), "PYTHONPATH": str(REPOSITORY),
            "PATH": f"{stub.parent}:{os.environ['PATH']}",
        }  # fmt: skip
        result = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],  # as a runner starts it
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        codes[step["id"]] = result.returncode, result.stderr
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            values[f"steps.{step['id']}.outputs.{name}"] = value
    return codes, values, summary.read_text()


@pytest.mark.slow
def test_the_action_checks_a_trace_and_reports(run, repository, traces, tmp_path):
    assert run("baseline", "save", traces.before, "--name", "main").returncode == 0
    codes, values, summary = run_action_steps(
        tmp_path, trace=traces.after, baseline="main", params="batch=4\n", files="out put"
    )
    assert codes["check"][0] == 0, codes
    assert codes["verdict"][0] == 1, summary
    assert values["steps.check.outputs.code"] == "1"
    assert "2 of 11 limits exceeded" in summary
    assert "one phase got faster at the cost of another" in summary
    assert ET.parse(values["steps.check.outputs.junit"]).getroot().get("failures") == "2"  # noqa: S314 - written above
    assert len(json.loads(Path(values["steps.check.outputs.sarif"]).read_text())["runs"][0]["results"]) == 2
    # An unreadable trace is reported, and the outputs of the previous run are removed.
    codes, values, summary = run_action_steps(
        tmp_path, trace="nowhere.sqlite; touch broken", baseline="main", files="out put"
    )
    assert (codes["check"][0], codes["verdict"][0]) == (0, 3), codes
    assert summary.startswith("## The trace could not be checked (exit code 3)\n\n    error: ")
    assert not Path("broken").exists()
    assert not list(Path("out put").glob("junit*"))


@pytest.mark.slow
def test_the_action_names_only_files_that_exist(repository, tmp_path):
    # The next step of a workflow uploads each file that is named.
    _, values, _ = run_action_steps(tmp_path, trace="nowhere.sqlite", budget=repository / "budget.toml", files="files")
    assert {"steps.check.outputs.junit", "steps.check.outputs.sarif"}.isdisjoint(values)
    assert Path(values["steps.check.outputs.markdown"]).is_file()


@pytest.mark.slow
@pytest.mark.parametrize("trace", ["--help", "--version", "-o"])
def test_a_flag_in_the_place_of_the_trace_does_not_pass_the_gate(repository, tmp_path, trace):
    budget = repository / "budget.toml"
    budget.write_text("[max]\nlaunch_calls = 1\n")
    codes, _, summary = run_action_steps(tmp_path, trace=trace, budget=budget)
    assert codes["verdict"][0] in (2, 3), codes
    assert summary.startswith("## The trace could not be checked")


def test_the_action_puts_no_input_into_a_script():
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
    values = {text for output in ACTION["outputs"].values() for text in [output["value"]]}
    assert all(text.startswith("${{ steps.check.outputs.") for text in values)
