"""Baselines by name, what `check` holds to them, and the files that a pipeline reads."""

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
    """A run, and one in which prefills got slower and decodes faster."""
    folder = tmp_path_factory.mktemp("traces")
    before = serve().trace.gpu(name="NVIDIA H200").write(folder / "before.sqlite")
    after = serve(prefill_ns=60_000, decode_ns=3_000).trace.gpu(name="NVIDIA H100").write(folder / "after.sqlite")
    return SimpleNamespace(before=before, after=after)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository, the current folder in it, and a folder of the user's."""
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
def test_a_baseline_from_save_to_rm(run, repository, traces):
    kept = repository / ".nsys-insight" / "baselines" / "main.json"
    saved = run("baseline", "save", traces.before, "--name", "main", "--tag", "v1", "--param", "batch=4")
    assert saved.returncode == 0, saved.stderr
    assert kept.is_file()
    (row,) = json.loads(run("baseline", "list", "-f", "json").stdout)["rows"]
    with open_trace(traces.before) as trace:
        (rate,) = [one["mean"] for one in trace.run("per-token").to_dicts() if one["metric"] == "tokens_per_s"]
    assert (row["name"], row["tags"], row["params"], row["gpu"]) == ("main", "v1", "batch=4", "NVIDIA H200")
    assert row["tokens_per_s"] == pytest.approx(rate)
    assert run("baseline", "list", "--tag", "v2", "-f", "csv").stdout.count("\n") == 1
    shown = {
        (one["name"], one["metric"]): one
        for one in json.loads(run("baseline", "show", "v1", "-f", "json").stdout)["rows"]
    }
    assert shown[None, "wall_ns"]["mean"] == pytest.approx(row["wall_ns"])
    assert ("decode, batch 4", "wall_ns") in shown

    # The same run keeps it; different workload is said to be one.
    same = run("check", traces.before, "--baseline", "main", "--param", "batch=8", "-f", "json")
    assert same.returncode == 0
    assert any("different workload: batch was 4 and is 8" in note for note in json.loads(same.stdout)["notes"])
    # A phase that got slower breaks it; that it ran on another GPU is said.
    worse = run("check", traces.after, "--baseline", "v1", "-f", "json")
    assert worse.returncode == 1
    broken = {one["metric"] for one in json.loads(worse.stdout)["rows"] if one["verdict"] == "broken"}
    assert broken == {"mixed_batch_2_wall_ns", "mixed_batch_4_wall_ns"}
    assert any("another GPU (NVIDIA H200; this is NVIDIA H100)" in note for note in json.loads(worse.stdout)["notes"])
    assert "one phase got faster at the cost of another" in run("diff", "main", traces.after).stderr

    assert run("check", traces.after, "--baseline", "mian").stderr == (
        "error: there is no baseline 'mian'\nhint: did you mean main?\n"
    )
    assert run("baseline", "rm", "v1").returncode == 2  # a tag
    assert run("baseline", "rm", "main").returncode == 0
    assert not kept.exists()
    assert run("baseline", "rm", "main").returncode == 2


def test_where_baselines_are(repository, traces, monkeypatch, tmp_path):
    with open_trace(traces.before) as trace:
        run = measure(trace)
    baselines.save(run, "main", baselines.About(LATER, tags=("release",)), in_users_folder=True)
    baselines.save(run, "main", baselines.About(EARLIER), in_users_folder=False)
    baselines.save(run, "v1", baselines.About(EARLIER, tags=("release",)))
    baselines.save(run, "v2", baselines.About(LATER, tags=("release",)))
    # The repository's hides the user's of the same name; a tag means the one saved last.
    assert baselines.named("main").about.saved_at == EARLIER
    assert [one.name for one in baselines.saved()] == ["main", "v1", "v2"]
    assert baselines.named("release").name == "v2"
    # Outside of a repository there are the user's alone.
    monkeypatch.chdir(tmp_path)
    assert [one.about.saved_at for one in baselines.saved()] == [LATER]


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b", "x" * 101, "ü"])
def test_a_name_is_one_of_a_file(name, run, traces):
    refused = run("baseline", "save", traces.before, "--name", name)
    assert refused.returncode == 2
    assert "a baseline cannot be called" in refused.stderr


def test_files_for_a_pipeline(run, repository, traces):
    budget = Path("budget.toml")
    budget.write_text('[max]\nmallocs_per_step = 0\nlaunches_per_token = 1\n[min]\ngpu_busy_pct = "1"\n')
    files = ["--junit", "junit.xml", "--sarif", "check.sarif", "--markdown", "check.md"]
    for _ in range(2):  # they are written anew
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
    assert Path("check.md").read_text().startswith("## 1 of 3 budgets broken\n")
    refused = run("check", traces.before, "--budget", budget, "--junit", traces.before)
    assert refused.returncode == 2
    assert "is the trace itself" in refused.stderr


ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text())


def steps_of_action(folder, **inputs):
    """Run the steps of the action that a runner would run, but for those that install and comment.

    Return the exit code of each, the outputs and the summary.
    """
    stub = folder / "bin" / "nsys-insight"
    stub.parent.mkdir(exist_ok=True)
    stub.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nsys_insight "$@"\n')
    stub.chmod(0o755)
    output, summary = folder / "output", folder / "summary"
    output.write_text("")
    summary.write_text("")
    values = {f"inputs.{name}": str(said.get("default", "")) for name, said in ACTION["inputs"].items()}
    values |= {f"inputs.{name}": str(value) for name, value in inputs.items()}
    codes = {}
    for step in ACTION["runs"]["steps"]:
        if step["id"] in ("install", "comment"):
            continue
        given = {name: values[text.removeprefix("${{ ").removesuffix(" }}")] for name, text in step["env"].items()}
        environment = os.environ | given | {
            "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary), "PYTHONPATH": str(REPOSITORY),
            "PATH": f"{stub.parent}:{os.environ['PATH']}",
        }  # fmt: skip
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],  # as a runner starts it
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        codes[step["id"]] = done.returncode, done.stderr
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            values[f"steps.{step['id']}.outputs.{name}"] = value
    return codes, values, summary.read_text()


@pytest.mark.slow
def test_the_steps_of_the_action(run, repository, traces, tmp_path):
    assert run("baseline", "save", traces.before, "--name", "main").returncode == 0
    codes, values, summary = steps_of_action(
        tmp_path, trace=traces.after, baseline="main", params="batch=4\n", files="out put"
    )
    assert codes["check"][0] == 0, codes
    assert codes["verdict"][0] == 1
    assert values["steps.check.outputs.code"] == "1"
    assert "2 of 11 budgets broken" in summary
    assert "one phase got faster at the cost of another" in summary
    assert ET.parse(values["steps.check.outputs.junit"]).getroot().get("failures") == "2"  # noqa: S314 - written above
    assert len(json.loads(Path(values["steps.check.outputs.sarif"]).read_text())["runs"][0]["results"]) == 2
    # What cannot be read is told, and nothing of the run before is left.
    codes, values, summary = steps_of_action(
        tmp_path, trace="nowhere.sqlite; touch broken", baseline="main", files="out put"
    )
    assert (codes["check"][0], codes["verdict"][0]) == (0, 3), codes
    assert summary.startswith("## The trace could not be checked (exit code 3)\n\n    error: ")
    assert not Path("broken").exists()
    assert not Path(values["steps.check.outputs.junit"]).exists()


def test_the_action_puts_no_input_into_a_script():
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
    told = {text for output in ACTION["outputs"].values() for text in [output["value"]]}
    assert all(text.startswith("${{ steps.check.outputs.") for text in told)
