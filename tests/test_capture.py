"""`capture` runs nsys with the flags that the reports need, says so, and goes on to the diagnosis."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import run

from nsys_insight.errors import ToolError
from nsys_insight.ingest import nsys
from nsys_insight.ingest.capture import Capture, free_name, is_python

REPOSITORY = Path(__file__).parents[1]
REPORT = REPOSITORY / "sample_traces" / "decode_eager.nsys-rep"
# Does what nsys does, as far as it matters: it runs the program, prints its bar, and leaves a report and an export.
NSYS = """#!/bin/sh
if [ "$1" = --version ]; then echo "NVIDIA Nsight Systems version 2025.3.1.90"; exit; fi
echo "$@" > "$FAKE_LOG"
while [ "$1" != -o ]; do shift; done
out=$2; shift 2
trap : INT
"$@"; code=$?
echo "Generating '/tmp/nsys-report.qdstrm'"
[ -z "$FAKE_NO_REPORT" ] || exit $code
cp "$FAKE_REPORT" "$out"
sleep 0.02
cp "${FAKE_REPORT%.nsys-rep}.sqlite" "${out%.nsys-rep}.sqlite"
exit $code
"""


@pytest.fixture
def environment(tmp_path):
    """Give an environment in which the fake nsys is the one to use."""
    tool = tmp_path / "tools" / "nsys"
    tool.parent.mkdir()
    tool.write_text(NSYS)
    tool.chmod(0o755)
    return {
        "NSYS_INSIGHT_NSYS": str(tool),
        "FAKE_LOG": str(tmp_path / "flags"),
        "FAKE_REPORT": str(REPORT),
    }


def capture(folder, environment, *arguments):
    return run("capture", *arguments, cwd=folder, env=environment)


def flags_of(folder):
    return (folder / "flags").read_text().split()


class TestFlags:
    def test_by_default_they_are_those_that_the_reports_need(self):
        flags = Capture().flags()
        assert {"--trace=cuda,nvtx", "--cuda-memory-usage=true", "--cuda-graph-trace=node"} <= set(flags)
        assert not any("metrics" in flag or "capture-range" in flag or "backtrace" in flag for flag in flags)

    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ({"graphs": "graph"}, ["--cuda-graph-trace=graph"]),
            ({"metrics_hz": 20_000}, ["--gpu-metrics-devices=all", "--gpu-metrics-frequency=20000"]),
            ({"osrt": True}, ["--trace=cuda,nvtx,osrt"]),
            ({"backtraces": True}, ["--sample=process-tree", "--cudabacktrace=all"]),
            (
                {"why_host": True},
                [
                    "--trace=cuda,nvtx,osrt",
                    "--sample=process-tree",
                    "--cpuctxsw=process-tree",
                    "--cudabacktrace=all:10000",
                ],
            ),
            ({"within": "cudaProfilerApi"}, ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]),
            ({"within": "step"}, ["--capture-range=nvtx", "--nvtx-capture=step", "--capture-range-end=stop"]),
            ({"delay_s": 1.5, "duration_s": 20}, ["--delay=1.5", "--duration=20", "--kill=none"]),
            ({"more": ("--pytorch=autograd-nvtx",)}, ["--pytorch=autograd-nvtx"]),
        ],
    )
    def test_each_wish_has_its_flags(self, asked, expected):
        assert set(expected) <= set(Capture(**asked).flags())
        assert not set(expected) <= set(Capture().flags())

    def test_names_of_ranges_need_not_be_registered(self):
        words = Capture(within="step").command(nsys.Nsys(Path("nsys"), "2025.3"), Path("x.nsys-rep"), ["app"])
        assert words[:3] == ["env", "NSYS_NVTX_PROFILER_REGISTER_ONLY=0", "nsys"]

    def test_an_older_nsys_is_told_in_its_own_words(self):
        assert "--gpu-metrics-device=all" in Capture(metrics_hz=10_000).flags("2023.4.4.54")

    def test_what_costs_is_said(self):
        assert len(Capture(graphs="graph").costs()) == 1
        assert len(Capture(metrics_hz=10_000, backtraces=True, osrt=True).costs()) == 5
        (why,) = set(Capture(why_host=True).costs()) - set(Capture().costs())
        assert "6.2 µs instead of 4.6" in why

    @pytest.mark.parametrize(
        ("program", "expected"),
        [("python3", True), ("/opt/venv/bin/python3.12", True), ("torchrun", True), ("./app", False)],
    )
    def test_a_program_in_python_has_backtraces_of_python(self, program, expected):
        for wish in ({"why_host": True}, {"backtraces": True}):
            flags = Capture(**wish, is_python=is_python([program, "x"])).flags()
            assert ("--python-backtrace=cuda" in flags) == expected
        assert "--python-backtrace=cuda" not in Capture(is_python=True).flags()

    def test_backtraces_of_all_calls_may_be_asked_for_beside_what_the_host_does(self):
        flags = Capture(why_host=True, backtraces=True).flags()
        assert "--cudabacktrace=all" in flags
        assert "--cpuctxsw=process-tree" in flags


def test_a_report_is_named_after_the_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    assert free_name(["./bin/app", "--steps", "3"], Path()) == Path("app.nsys-rep")
    assert free_name(["python3", "-u", "train.py", "--lr", "1"], Path()) == Path("train.nsys-rep")
    Path("train.nsys-rep").touch()
    Path("train-2.sqlite").touch()
    assert free_name(["python3", "train.py"], Path()) == Path("train-3.nsys-rep")


@pytest.mark.slow
def test_it_profiles_and_diagnoses(tmp_path, environment):
    ran = capture(tmp_path, environment, "-o", "mine", "--", "echo", "hello")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("mine.nsys-rep: launch-bound")
    assert "hello" in ran.stderr.splitlines()
    assert "hello" not in ran.stdout
    said = next(line for line in ran.stderr.splitlines() if line.startswith("$ "))
    assert shlex.split(said)[2:] == flags_of(tmp_path)
    assert "tracing adds" in ran.stderr


def test_flags_of_the_program_are_its_own(tmp_path, environment):
    ran = capture(tmp_path, environment, "--no-diagnose", "sh", "-c", "exit 3", "--force")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "sh.nsys-rep\n"
    assert "exit code 3" in ran.stderr
    assert flags_of(tmp_path)[-2:] == ["3", "--force"]


def test_a_report_is_not_overwritten_unless_told(tmp_path, environment):
    (tmp_path / "mine.nsys-rep").write_text("precious")
    refused = capture(tmp_path, environment, "-o", "mine.nsys-rep", "--", "true")
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert (tmp_path / "mine.nsys-rep").read_text() == "precious"
    assert capture(tmp_path, environment, "-o", "mine", "--force", "--no-diagnose", "--", "true").returncode == 0
    assert (tmp_path / "mine.nsys-rep").read_bytes() == REPORT.read_bytes()


def test_without_a_report_it_says_why(tmp_path, environment):
    environment["FAKE_NO_REPORT"] = "1"
    ran = capture(tmp_path, environment, "--range", "step", "--", "true")
    assert ran.returncode == 4
    assert "nsys made no report of true" in ran.stderr
    assert "never have begun" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "hint"),
    [
        (["--", "no-such-program"], 2, "capture -- python train.py"),
        ([], 2, "capture --help"),
        (["--cuda-graph-trace", "nodes", "--", "true"], 2, "node, graph"),
        (["--delay", "soon", "--", "true"], 2, "--delay"),
        (["-o", "nowhere/x", "--", "true"], 2, "mkdir -p nowhere"),
    ],
)
def test_bad_input_has_its_hint(tmp_path, environment, arguments, code, hint):
    ran = capture(tmp_path, environment, *arguments)
    assert ran.returncode == code
    assert hint in ran.stderr
    assert not list(tmp_path.glob("*.nsys-rep"))


def test_what_would_run_can_be_seen_without_an_nsys(tmp_path, environment):
    environment["NSYS_INSIGHT_NSYS"] = "/nowhere"
    ran = capture(tmp_path, environment, "--dry-run", "--", "true")
    assert ran.returncode == 0
    assert ran.stdout.startswith("nsys profile --trace=cuda,nvtx ")
    assert capture(tmp_path, environment, "--", "true").returncode == 4


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C goes to a group of processes")
def test_ctrl_c_ends_the_program_and_not_the_diagnosis(tmp_path, environment):
    # A diagnosis may take longer than what else Ctrl-C gives a command to end.
    impatient = "from nsys_insight.cli import ending, main; ending.GRACE_S = 0.5; main.main()"
    with subprocess.Popen(
        [sys.executable, "-c", impatient, "capture", "--", "sh", "-c", "touch ready; sleep 50"],
        cwd=tmp_path, env=os.environ | environment | {"PYTHONPATH": str(REPOSITORY)}, start_new_session=True,
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        for _ in range(300):
            if (tmp_path / "ready").exists():
                break
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        told, _ = process.communicate(timeout=120)
    assert told.startswith("sh.nsys-rep: launch-bound")


def test_the_real_nsys_takes_the_flags(tmp_path):
    try:
        nsys.newest_nsys()
    except ToolError:
        pytest.skip("no nsys here")
    ran = capture(tmp_path, {}, "--osrt", "--delay", "0", "--", "sh", "-c", "echo done")
    assert ran.returncode == 0, ran.stderr
    assert "no GPU work is in the trace" in ran.stdout
    assert (tmp_path / "sh.nsys-rep").stat().st_size > 0
