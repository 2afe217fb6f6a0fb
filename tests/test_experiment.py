"""`experiment`: the loop with planted benchmarks, and its log."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace

import command_line
import pytest
from schemas import validate

from nsys_insight.bench import measure
from nsys_insight.experiment import log as logs
from nsys_insight.programs import CommandResult

SAMPLES = Path(__file__).parents[1] / "sample_traces"


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run `experiment` in its own folder; the programs print results that follow from their arguments."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    calls = []

    def run_program(command, *_):
        name, factor = command.split()
        calls.append(command)
        noise = 1 + 0.004 * (len(calls) * 7 % 5 - 2)
        text = (
            f"RESULT decode {400 * float(factor) * noise} tok/s\nRESULT memory {900 if name == 'lean' else 1000} MiB\n"
        )
        return CommandResult(0 if float(factor) else 1, text, "wrong tokens\n", 1.0)

    monkeypatch.setattr(measure.programs, "run", run_program)

    def call(*arguments):
        calls.clear()
        process = command_line.run("experiment", *arguments)
        return SimpleNamespace(code=process.returncode, stdout=process.stdout, stderr=process.stderr, calls=list(calls))

    return call


START = ["start", "--goal", "Decode faster", "--bench", "lean 1.0", "--test", "test 1", "--warmup", 0, "--min-runs", 8]


def test_a_loop_of_a_gain_a_loss_and_a_break(run, tmp_path):
    assert run(*START).stdout.startswith("decode [tok/s] 400")
    gain = run("try", "Capture a CUDA graph", "--because", "Launches cost", "--bench", "fat 1.2")
    assert (gain.code, gain.stdout.startswith("Improved: decode 400")) == (0, True)
    assert gain.calls[:4] == ["test 1", "lean 1.0", "fat 1.2", "fat 1.2"]  # the tests, then both programs in turn
    assert "side effect: memory [MiB] 900 → 1,000" in gain.stderr
    assert run("keep").code == 0

    loss = run("try", "Smaller blocks", "--bench", "fat 0.9", "-f", "json")
    assert loss.code == 1
    assert loss.calls[1] == "fat 1.2"  # the next change is compared with the accepted one
    row = json.loads(loss.stdout)["rows"][0]
    assert (row["decision"], row["before"] > 470, row["status"], row["tests"]) == ("revert", True, "open", "passed")
    assert run("revert").code == 0

    answer = json.loads(run("log", "-f", "json").stdout)
    assert [(change["number"], change["status"], change["decision"]) for change in answer["rows"]] == [
        (0, "kept", "baseline"), (1, "kept", "accept"), (2, "reverted", "revert"),
    ]  # fmt: skip
    assert answer["summary"]["current"] == 1
    validate(answer, "experiment", "answer")
    text = (tmp_path / "experiment" / "log.md").read_text()
    assert text == run("log", "-f", "markdown").stdout
    for expected in (
        "# Decode faster", "| 1 | Capture a CUDA graph | kept | accept |", "- hypothesis: Launches cost",
        "- side effect: memory", "- interval of the change, 95%: +",
    ):  # fmt: skip
        assert expected in text
    assert run("log").stdout.count("█") > 100


def test_a_change_that_breaks_the_tests_is_not_measured(run, tmp_path):
    run(*START)
    setup = tmp_path / "experiment" / "experiment.toml"
    setup.write_text(setup.read_text().replace("test 1", "test 0"))
    result = run("try", "Leave out a norm", "--bench", "fat 2.0", "-f", "json")
    assert (result.code, result.calls) == (1, ["test 0"])
    (row,) = json.loads(result.stdout)["rows"]
    assert (row["decision"], row["tests"], row["after"]) == ("revert", "failed", None)
    assert json.loads(result.stdout)["summary"]["tries"][0]["sentence"] == "Failed: test 0: exit code 1: wrong tokens"


def test_an_accepted_change_without_a_measurement_cannot_be_compared_with(run, tmp_path):
    run(*START)
    run("try", "Crash", "--bench", "fat 0")
    run("keep")
    result = run("try", "Edit")
    assert (result.code, "wrong tokens" in result.stdout or "kept without being measured" in result.stderr) == (2, True)


def test_a_benchmark_that_crashes_is_a_broken_change(run):
    run(*START)
    result = run("try", "Crash", "--bench", "fat 0")
    assert (result.code, result.stdout.startswith("Failed: fat 0 ended with exit code 1: wrong tokens")) == (1, True)


def test_an_edited_program_is_compared_with_its_earlier_measurement(run, tmp_path):
    run(*START)
    bench = tmp_path / "experiment" / "0-baseline" / "bench.json"
    baseline = json.loads(bench.read_text())
    baseline["sides"][0]["series"][0]["values"] = [value / 2 for value in baseline["sides"][0]["series"][0]["values"]]
    bench.write_text(json.dumps(baseline))  # as if the program had been half as fast
    result = run("try", "Edit a kernel")
    assert result.stdout.startswith("Improved: decode 200")
    assert "measured one after the other" in result.stderr


def test_without_tests_nothing_is_accepted(run):
    run("start", "--bench", "lean 1.0", "--warmup", 0, "--min-runs", 8)
    result = run("try", "Faster", "--bench", "lean 1.2", "-f", "json")
    assert json.loads(result.stdout)["rows"][0]["decision"] == "unchecked"
    assert result.code == 0
    assert "kept, although the decision was unchecked" in run("keep").stderr


def test_each_command_needs_the_one_before(run):
    assert (run("log").code, run("keep").code, run("try", "x").code) == (2, 2, 2)
    broken = run("start", "--bench", "lean 1.0", "--test", "test 0")
    assert (broken.code, "before any change: test 0: exit code 1" in broken.stderr) == (1, True)
    run(*START)
    assert (run(*START).code, run("keep").code) == (2, 2)
    run("try", "One", "--bench", "lean 1.1")
    again = run("try", "Two", "--bench", "lean 1.1")
    assert (again.code, "1. One is neither kept nor reverted" in again.stderr, again.calls) == (2, True, [])


def test_an_interrupted_attempt_is_as_if_it_had_not_started(run, tmp_path):
    run(*START)
    run("try", "One", "--bench", "lean 1.1")
    (tmp_path / "experiment" / "1-one" / "try.toml").unlink()
    result = run("try", "One", "--bench", "lean 1.1")
    assert result.code == 0
    assert len(logs.read(tmp_path / "experiment").tries) == 2
    (tmp_path / "experiment" / "0-baseline" / "try.toml").unlink()
    assert "are missing" in run("log").stderr


def test_traces_explain_the_change_and_suggest_the_next_one(run, tmp_path):
    run(*START, "--trace", SAMPLES / "decode_eager.sqlite")
    result = run("try", "Graph", "--bench", "lean 1.2", "--trace", SAMPLES / "decode_graph_node.sqlite")
    attempt = tomllib.loads((tmp_path / "experiment" / "1-graph" / "try.toml").read_text())
    assert attempt["trace_diff"][0].startswith("Improved: wall 2.680 ms → 0.602 ms per step (-77.5%)")
    baseline = tomllib.loads((tmp_path / "experiment" / "0-baseline" / "try.toml").read_text())
    assert baseline["evidence"][0].endswith("→ Kernel launch overhead")
    assert baseline["candidates"][0].startswith("Compile the step: torch.compile")
    assert "next candidate: " in result.stderr


def test_the_repository_is_read_and_not_written(run, tmp_path):
    def git(*words):
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.com"]
        return subprocess.run(
            ["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    (tmp_path / "kernel.cu").write_text("old\n")
    git("add", "kernel.cu")
    git("commit", "-qm", "first")
    run(*START)
    (tmp_path / "kernel.cu").write_text("new\n")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / ".git").rglob("*")}
    run("try", "New kernel")
    run("revert")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / ".git").rglob("*")} == before
    assert (tmp_path / "kernel.cu").read_text() == "new\n"
    folder = tmp_path / "experiment" / "1-new-kernel"
    assert "-old\n+new\n" in (folder / "change.patch").read_text()
    assert tomllib.loads((folder / "try.toml").read_text())["conditions"]["commit"].endswith("+changes")


@pytest.mark.parametrize("change", ["|", "../../x", "`a` | *b*\n\x1b[31m", "ü" * 200])
def test_a_change_may_have_any_name(run, tmp_path, change):
    run(*START)
    run("try", change, "--bench", "lean 1.1")
    assert logs.read(tmp_path / "experiment").tries[1].change == " ".join(change.split())
    assert {path.parent for path in tmp_path.rglob("try.toml")} >= {tmp_path / "experiment" / "0-baseline"}
    assert all("\x1b" not in text for text in (tmp_path / "experiment" / "log.md").read_text().splitlines())


@pytest.mark.slow
def test_ncu_measurements_are_compared_too(run, tmp_path):
    ncu_file = Path(__file__).parent / "data" / "ncu" / "zoo_a.ncu.raw.csv"
    run(*START, "--ncu", ncu_file)
    run("try", "Nothing", "--bench", "lean 1.0", "--ncu", ncu_file)
    attempt = tomllib.loads((tmp_path / "experiment" / "1-nothing" / "try.toml").read_text())
    assert attempt["decision"] == "indistinguishable"
    assert attempt["ncu_diff"][0] == "decision of ncu diff: stop"
    assert len(attempt["ncu_diff"]) > 3
