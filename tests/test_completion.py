"""What the shell completes after Tab: names of the trace, silently nothing where anything is wrong."""

from __future__ import annotations

import pytest
from command_line import run
from conftest import REPOSITORY

from nsys_insight.cli import completion

EAGER = "sample_traces/decode_eager.sqlite"


@pytest.fixture(autouse=True)
def typed(monkeypatch):
    """A command line that names a trace."""
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("COMP_WORDS", f"nsys-insight top {EAGER} --nvtx x")
    monkeypatch.delenv("NSYS_INSIGHT_TRACE", raising=False)


def test_names_of_the_trace(monkeypatch):
    monkeypatch.setattr(completion, "_STEPS_S", 60)
    assert completion.of_trace("nvtx")("dec") == ["decode_step"]
    assert "vectorized_gather_kernel" in completion.of_trace("kernel")("vec")
    assert completion.of_trace("device")("") == ["0"]
    assert completion.of_trace("phase")("pre") == ["prefill"]
    assert completion.of_trace("step")("3") == ["3", "30", "31"]


def test_reports_views_budgets_and_baselines(tmp_path, monkeypatch):
    assert completion.reports("per-t") == ["per-token"]
    assert {"kernels", "kernel_names"} <= {*completion.reports_and_views("kern")}
    assert set(completion.budgets("lau")) == {"launch_calls=", "launches="}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NSYS_INSIGHT_BASELINE_DIR", str(tmp_path / "none"))
    assert completion.baselines("") == []


@pytest.mark.parametrize("words", ["nsys-insight top missing.sqlite --nvtx x", "nsys-insight top 'not closed.sqlite"])
def test_what_is_wrong_is_silent(words, monkeypatch, capfd):
    monkeypatch.setenv("COMP_WORDS", words)
    assert completion.of_trace("nvtx")("") == []
    assert capfd.readouterr() == ("", "")


def test_a_file_that_is_no_export_and_one_without_the_tables(tmp_path, monkeypatch):
    for name, content in (("text.sqlite", b"no database"), ("empty.sqlite", b"")):
        (tmp_path / name).write_bytes(content)
        monkeypatch.setenv("COMP_WORDS", f"nsys-insight top {tmp_path / name} --nvtx x")
        assert completion.of_trace("nvtx")("") == []


def test_bash_is_given_no_name_that_it_would_take_apart(monkeypatch):
    names = ["plain", "two words", "semi;colon", "metric="]
    assert completion._beginning(names, "") == names
    monkeypatch.setenv("_NSYS_INSIGHT_COMPLETE", "complete_bash")
    assert completion._beginning(names, "") == ["plain", "metric="]


def test_the_program_completes():
    environment = {"COMP_CWORD": "4", "_NSYS_INSIGHT_COMPLETE": "complete_bash"}
    environment["COMP_WORDS"] = f"nsys-insight top {EAGER} --nvtx dec"
    done = run(env=environment, cwd=REPOSITORY)
    assert (done.stdout.split(), done.stderr) == (["decode_step"], "")
