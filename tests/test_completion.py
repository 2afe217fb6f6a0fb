"""Completion in the shell: names of the trace, and no output after errors."""

from __future__ import annotations

import pytest
from command_line import run
from conftest import REPOSITORY
from synthetic import Trace

from nsys_insight.cli import completion

EAGER = "sample_traces/decode_eager.sqlite"


@pytest.fixture(autouse=True)
def command_line_with_trace(monkeypatch):
    """Set a command line that names a trace."""
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("COMP_WORDS", f"nsys-insight top {EAGER} --nvtx x")
    monkeypatch.delenv("NSYS_INSIGHT_TRACE", raising=False)


def test_names_of_the_trace_are_completed(monkeypatch):
    monkeypatch.setattr(completion, "_STEPS_TIMEOUT_S", 60)
    assert completion.make_trace_completer("nvtx")("dec") == ["decode_step"]
    assert "vectorized_gather_kernel" in completion.make_trace_completer("kernel")("vec")
    assert completion.make_trace_completer("device")("") == ["0"]
    assert completion.make_trace_completer("phase")("pre") == ["prefill"]
    assert completion.make_trace_completer("step")("3") == ["3", "30", "31"]


def test_reports_views_budgets_and_baselines_are_completed(tmp_path, monkeypatch):
    assert completion.complete_reports("per-t") == ["per-token"]
    assert {"kernels", "kernel_names"} <= {*completion.complete_reports_and_views("kern")}
    assert set(completion.complete_budgets("lau")) == {"launch_calls=", "launches="}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NSYS_INSIGHT_BASELINE_DIR", str(tmp_path / "none"))
    assert completion.complete_baselines("") == []


@pytest.mark.parametrize("words", ["nsys-insight top missing.sqlite --nvtx x", "nsys-insight top 'not closed.sqlite"])
def test_errors_are_silent(words, monkeypatch, capfd):
    monkeypatch.setenv("COMP_WORDS", words)
    assert completion.make_trace_completer("nvtx")("") == []
    assert capfd.readouterr() == ("", "")


def test_files_without_a_trace_are_silent(tmp_path, monkeypatch):
    for name, content in (("text.sqlite", b"no database"), ("empty.sqlite", b"")):
        (tmp_path / name).write_bytes(content)
        monkeypatch.setenv("COMP_WORDS", f"nsys-insight top {tmp_path / name} --nvtx x")
        assert completion.make_trace_completer("nvtx")("") == []


def test_bash_gets_no_name_that_it_would_split(monkeypatch):
    names = ["plain", "two words", "semi;colon", "metric="]
    assert completion._filter_by_prefix(names, "") == names
    monkeypatch.setenv("_NSYS_INSIGHT_COMPLETE", "complete_bash")
    assert completion._filter_by_prefix(names, "") == ["plain", "metric="]


HOSTILE = [
    'zz" =(touch X) "', 'zz\\" =(touch X) \\"', "zz'$(touch X)'", "zz`touch X`", "zz\n(touch X)", "zz(touch X)",
    "zz;touch X", "=(touch X)", "~zz", "zz\x1b[31m", "zz\tX", "zz{a,b}", "zz:::X $(touch X)",
]  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "powershell", "pwsh"])
def test_a_name_that_a_shell_would_evaluate_is_not_offered(monkeypatch, shell):
    monkeypatch.setenv("_NSYS_INSIGHT_COMPLETE", f"complete_{shell}")
    offered = completion._filter_by_prefix(["zzplain", "größe_1", *HOSTILE], "")
    assert offered == ["zzplain", "größe_1"]
    assert completion.plain_summary('Hot kernels, \\" =(touch X) \\"') == "Hot kernels,  touch X "


def test_fish_and_zsh_quote_more_names(monkeypatch):
    names = ["two words", "aten::add", "a$(b)", "a\nb"]
    for shell, expected in (("zsh", names[:2]), ("fish", names[:3])):
        monkeypatch.setenv("_NSYS_INSIGHT_COMPLETE", f"complete_{shell}")
        assert completion._filter_by_prefix(names, "") == expected


def test_zsh_evaluates_no_name_of_a_trace(tmp_path):
    trace = Trace()
    host = trace.thread(pid=100)
    for name in ("zzplain", *(name.replace("touch X", f"touch {tmp_path}/X") for name in HOSTILE)):
        with host.nvtx(name):
            host.launch("gemm(float *)", runs=1_000)
    path = trace.write(tmp_path / "trace.sqlite", version="2025.3")
    words = f"nsys-insight top {path} --nvtx zz"
    environment = {"COMP_WORDS": "", "_NSYS_INSIGHT_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": words}
    assert run(env=environment, cwd=REPOSITORY).stdout.strip() == """_arguments '*: :(("zzplain"))'"""


def test_the_command_completes():
    environment = {"COMP_CWORD": "4", "_NSYS_INSIGHT_COMPLETE": "complete_bash"}
    environment["COMP_WORDS"] = f"nsys-insight top {EAGER} --nvtx dec"
    result = run(env=environment, cwd=REPOSITORY)
    assert (result.stdout.split(), result.stderr) == (["decode_step"], "")
