"""`capture` prints and runs nsys with the flags that the reports need, and then runs the diagnosis."""

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

from nsys_insight.errors import ToolError, UsageError
from nsys_insight.ingest import nsys
from nsys_insight.ingest.capture import Capture, find_free_name, find_step_time_ns, is_python

REPOSITORY = Path(__file__).parents[1]
REPORT = REPOSITORY / "sample_traces" / "decode_eager.nsys-rep"
# A stand-in for nsys: it runs the program, prints a line of progress, and writes a report and an export.
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
    """Return an environment that selects the fake nsys."""
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


def read_flags(folder):
    return (folder / "flags").read_text().split()


class TestFlags:
    def test_the_default_flags_are_those_that_reports_need(self):
        flags = Capture().list_flags()
        assert {"--trace=cuda,nvtx", "--cuda-memory-usage=true", "--cuda-graph-trace=node"} <= set(flags)
        assert not any("metrics" in flag or "capture-range" in flag or "backtrace" in flag for flag in flags)

    @pytest.mark.parametrize(
        ("options", "expected"),
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
            ({"capture_range": "cudaProfilerApi"}, ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]),
            ({"capture_range": "step"}, ["--capture-range=nvtx", "--nvtx-capture=step", "--capture-range-end=stop"]),
            ({"delay_s": 1.5, "duration_s": 20}, ["--delay=1.5", "--duration=20", "--kill=none"]),
            ({"extra_flags": ("--pytorch=autograd-nvtx",)}, ["--pytorch=autograd-nvtx"]),
        ],
    )
    def test_each_option_has_its_flags(self, options, expected):
        assert set(expected) <= set(Capture(**options).list_flags())
        assert not set(expected) <= set(Capture().list_flags())

    def test_names_of_ranges_need_not_be_registered(self):
        words = Capture(capture_range="step").build_command(
            nsys.Nsys(Path("nsys"), "2025.3"), Path("x.nsys-rep"), ["app"]
        )
        assert words[:3] == ["env", "NSYS_NVTX_PROFILER_REGISTER_ONLY=0", "nsys"]

    def test_an_older_nsys_gets_its_own_flag_names(self):
        assert "--gpu-metrics-device=all" in Capture(metrics_hz=10_000).list_flags("2023.4.4.54")

    def test_costs_of_options_are_listed(self):
        assert len(Capture(graphs="graph").list_costs()) == 1
        assert len(Capture(metrics_hz=10_000, backtraces=True, osrt=True).list_costs()) == 5
        (host_cost,) = set(Capture(why_host=True).list_costs()) - set(Capture().list_costs())
        assert "6.2 µs instead of 4.6" in host_cost

    @pytest.mark.parametrize(
        ("program", "expected"),
        [("python3", True), ("/opt/venv/bin/python3.12", True), ("torchrun", True), ("./app", False)],
    )
    def test_a_python_program_gets_python_backtraces(self, program, expected):
        for wish in ({"why_host": True}, {"backtraces": True}):
            flags = Capture(**wish, is_python=is_python([program, "x"])).list_flags()
            assert ("--python-backtrace=cuda" in flags) == expected
        assert "--python-backtrace=cuda" not in Capture(is_python=True).list_flags()

    def test_backtraces_of_all_calls_can_be_combined_with_why_host(self):
        flags = Capture(why_host=True, backtraces=True).list_flags()
        assert "--cudabacktrace=all" in flags
        assert "--cpuctxsw=process-tree" in flags


def test_a_report_is_named_after_the_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    assert find_free_name(["./bin/app", "--steps", "3"], Path()) == Path("app.nsys-rep")
    assert find_free_name(["python3", "-u", "train.py", "--lr", "1"], Path()) == Path("train.nsys-rep")
    Path("train.nsys-rep").touch()
    Path("train-2.sqlite").touch()
    assert find_free_name(["python3", "train.py"], Path()) == Path("train-3.nsys-rep")


@pytest.mark.slow
def test_it_profiles_and_diagnoses(tmp_path, environment):
    result = capture(tmp_path, environment, "-o", "mine", "--", "echo", "hello")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("mine.nsys-rep: launch-bound")
    assert "hello" in result.stderr.splitlines()
    assert "hello" not in result.stdout
    command_line = next(line for line in result.stderr.splitlines() if line.startswith("$ "))
    assert shlex.split(command_line)[2:] == read_flags(tmp_path)
    assert "nsys slows the host" in result.stderr


def test_the_step_time_is_the_last_one_that_the_program_prints():
    output = "step: 9.5 ms\nstep: 8.02 ms\ntotal: 1 s\n"
    assert find_step_time_ns(output, r"^step: ([0-9.]+ ms)$") == 8_020_000


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("step: (", "no regular expression"), ("step: 1", "0 groups"), ("took (.*)", "matches nothing"),
     ("step: ([0-9.]+)", "has no unit")],
)  # fmt: skip
def test_a_step_time_that_cannot_be_found_is_an_error(pattern, message):
    with pytest.raises(UsageError, match=message) as error:
        find_step_time_ns("step: 9.5 ms\n", pattern)
    assert error.value.hint


@pytest.mark.slow
def test_the_step_time_is_measured_without_nsys(tmp_path, environment):
    """The program says whether it runs under the fake nsys, which sets $out."""
    script = tmp_path / "program.sh"
    script.write_text('#!/bin/sh\n[ -n "$(grep -s . "$FAKE_LOG")" ] && echo "step: 2.6 ms" || echo "step: 1.8 ms"\n')
    script.chmod(0o755)
    result = capture(tmp_path, environment, "--step-time-from", "step: ([0-9.]+ ms)", "--", str(script))
    assert result.returncode == 0, result.stderr
    assert "2.68 ms per step under nsys; about 1.8 ms without (measured)" in result.stdout


def test_a_program_without_its_time_is_not_profiled(tmp_path, environment):
    result = capture(tmp_path, environment, "--step-time-from", "step: ([0-9.]+ ms)", "--", "echo", "hello")
    assert result.returncode == 2
    assert "matches nothing that the program printed without nsys" in result.stderr
    assert not list(tmp_path.glob("*.nsys-rep"))


def test_flags_after_the_program_belong_to_it(tmp_path, environment):
    result = capture(tmp_path, environment, "--no-diagnose", "sh", "-c", "exit 3", "--force")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "sh.nsys-rep\n"
    assert "exit code 3" in result.stderr
    assert read_flags(tmp_path)[-2:] == ["3", "--force"]


def test_a_report_is_overwritten_only_with_force(tmp_path, environment):
    (tmp_path / "mine.nsys-rep").write_text("precious")
    refused = capture(tmp_path, environment, "-o", "mine.nsys-rep", "--", "true")
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert (tmp_path / "mine.nsys-rep").read_text() == "precious"
    assert capture(tmp_path, environment, "-o", "mine", "--force", "--no-diagnose", "--", "true").returncode == 0
    assert (tmp_path / "mine.nsys-rep").read_bytes() == REPORT.read_bytes()


def test_a_missing_report_is_an_error_with_its_cause(tmp_path, environment):
    environment["FAKE_NO_REPORT"] = "1"
    result = capture(tmp_path, environment, "--range", "step", "--", "true")
    assert result.returncode == 4
    assert "nsys made no report of true" in result.stderr
    assert "never have begun" in result.stderr


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
def test_bad_arguments_have_a_hint(tmp_path, environment, arguments, code, hint):
    result = capture(tmp_path, environment, *arguments)
    assert result.returncode == code
    assert hint in result.stderr
    assert not list(tmp_path.glob("*.nsys-rep"))


def test_a_dry_run_needs_no_nsys(tmp_path, environment):
    environment["NSYS_INSIGHT_NSYS"] = "/nowhere"
    result = capture(tmp_path, environment, "--dry-run", "--", "true")
    assert result.returncode == 0
    assert result.stdout.startswith("nsys profile --trace=cuda,nvtx ")
    assert capture(tmp_path, environment, "--", "true").returncode == 4


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C goes to a group of processes")
def test_ctrl_c_ends_only_the_program(tmp_path, environment):
    # The diagnosis may take longer than the grace period after Ctrl-C.
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
        stdout, _ = process.communicate(timeout=120)
    assert stdout.startswith("sh.nsys-rep: launch-bound")


def test_the_real_nsys_accepts_the_flags(tmp_path):
    try:
        nsys.find_newest_nsys()
    except ToolError:
        pytest.skip("no nsys here")
    # The importer of nsys 2023.4 fails now and then on a busy machine ("Importation failed", AnalysisFailed), with
    # any program. The flags are not the cause.
    for _ in range(4):
        result = capture(tmp_path, {}, "--osrt", "--delay", "0", "--", "sh", "-c", "echo done")
        if "Importation failed" not in result.stderr:
            break
    assert result.returncode == 0, result.stderr
    assert "no GPU work is in the trace" in result.stdout
    assert (tmp_path / "sh.nsys-rep").stat().st_size > 0
