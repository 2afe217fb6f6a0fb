"""What a capture has lost, and why: reported only where something is missing."""

from __future__ import annotations

import planted
import pytest
from opening import diagnose_with, evaluate_rules, open_trace
from sweeps import sweep
from synthetic import MACHINE, Trace

OTHER_PROCESS = MACHINE | 300 << 24


def launch_many():
    """Return 40 kernels that are launched far ahead of the GPU."""
    trace = Trace().gpu()
    host = trace.thread()
    for _ in range(40):
        host.launch("k", runs=500_000)
    return trace


def diagnose_loss(trace, path):
    """Return the headline with the findings about what a capture has lost."""
    with open_trace(trace.write(path)) as opened_trace:
        return diagnose_with(opened_trace, "capture-problem")


def find_losses(trace, path):
    """Return the findings about what a capture has lost."""
    with open_trace(trace.write(path)) as opened_trace:
        return list(evaluate_rules(opened_trace, ["capture-problem"]).values())


def test_messages_are_no_loss_where_nothing_is_missing(tmp_path):
    trace = planted.deep_queue().trace
    # nsys reports each process without CUDA, and writes the note after each capture range.
    for text in ("CUDA profiling might have not been started correctly.", "No CUDA events collected."):
        trace.diagnostic(text)
        trace.rows["DIAGNOSTIC_EVENT"][-1]["globalPid"] = OTHER_PROCESS
    trace.diagnostic("Not all CUDA events might have been collected.")
    trace.diagnostic("Installed CUDA driver version (12.0) is not supported by this build.")
    diagnosis = diagnose_loss(trace, tmp_path / "complete.sqlite")
    assert not diagnosis.findings
    assert "Not all CUDA events" not in diagnosis.text(500)
    trace.rows["DIAGNOSTIC_EVENT"][0]["globalPid"] = MACHINE | 100 << 24
    (loss,) = find_losses(trace, tmp_path / "own.sqlite")
    assert loss.evidence.startswith("CUDA profiling might have not been started")


@pytest.mark.parametrize(
    ("lost", "evidence", "cure"),
    [
        (slice(30, None), "10 launch calls at the end ran no kernel", "cudaDeviceSynchronize"),
        (slice(10, 20), "10 of 40 launch calls ran no kernel", "Capture less at a time"),
    ],
)
def test_kernels_after_the_end_of_the_capture_were_not_lost(tmp_path, lost, evidence, cure):
    trace = launch_many()
    del trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"][lost]
    (loss,) = find_losses(trace, tmp_path / "trace.sqlite")
    assert loss.evidence.startswith(evidence)
    assert cure in loss.action


def test_a_driver_newer_than_nsys_is_named_where_kernels_are_missing(tmp_path):
    trace = launch_many().diagnostic("Installed CUDA driver version (12.0) is not supported by this build.")
    del trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"][:]
    losses = find_losses(trace, tmp_path / "trace.sqlite")
    assert losses
    assert all(loss.action.startswith("Update nsys") for loss in losses)


@pytest.mark.parametrize(("name", "is_named"), [("python3", True), ("sshd", False)])
def test_processes_that_may_be_unrecorded_ranks_are_named(tmp_path, name, is_named):
    trace = planted.communicating().trace
    for row in trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"]:
        row["shortName"] = row["demangledName"] = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    trace.processes.update({100: "python3", 300: name})
    text = diagnose_loss(trace, tmp_path / "trace.sqlite").text(None)
    assert ("what process 300 did on a GPU" in text) == is_named
    assert ("--trace-fork-before-exec=true" in text) == is_named


def make_trace_without_gpu_work(*, calls=(), traces_cuda=False, message=None):
    trace = Trace()
    for name in calls:
        trace.thread().call(name)
    if traces_cuda:
        trace.row("META_DATA_CAPTURE", name="PROCESS_0:COLLECT_CUDA_TRACE", value="true")
    if message:
        trace.diagnostic(message)
    return trace


@pytest.mark.parametrize(
    ("trace", "reason", "is_cuda_option_advised"),
    [
        ({}, "capture with: nsys profile -t cuda", True),
        ({"calls": ["cudaFree_v3020"]}, "the program ran nothing on the GPU while it was captured", False),
        ({"traces_cuda": True}, "CUDA was traced, but no call is recorded", False),
        (
            {"traces_cuda": True, "message": "Installed CUDA driver version (13.0) is not supported by this build."},
            "a newer nsys: this one does not support the CUDA version of the driver",
            False,
        ),
    ],
)
def test_a_trace_without_gpu_work_has_the_reason(trace, reason, is_cuda_option_advised, tmp_path):
    diagnosis = diagnose_loss(make_trace_without_gpu_work(**trace), tmp_path / "trace.sqlite")
    assert reason in diagnosis.text(None)
    assert ("nsys profile -t cuda" in diagnosis.text(None)) == is_cuda_option_advised


def test_tracing_that_did_not_start_is_not_cured_by_a_smaller_capture(tmp_path):
    trace = make_trace_without_gpu_work(message="CUDA profiling might have not been started correctly.")
    (finding,) = diagnose_loss(trace, tmp_path / "trace.sqlite").findings
    assert "Capture less at a time" not in finding.action
    assert "supports the CUDA version of the driver" in finding.action


@pytest.mark.parametrize(
    ("call", "returns", "is_lost"),
    [("cudaMemcpy_v3020", 0, True), *sweep([("cudaMemset_v3020", 0, True)]), ("cudaMemcpy_v3020", 1, False)],
)
def test_copies_and_memsets_prove_that_the_gpu_worked(tmp_path, call, returns, is_lost):
    trace = Trace()
    trace.thread().call("cudaMalloc_v3020", takes=90_000_000).call(call, takes=2_000_000, returns=returns)
    text = diagnose_loss(trace, tmp_path / "trace.sqlite").text(None)
    assert ("ran nothing on the GPU" in text) != is_lost
    assert ("1 copy or memset call returned success, but nothing that ran on the GPU" in text) == is_lost
    assert ("90 ms in cudaMalloc" in text) == is_lost
    assert "Capture less" not in text


@pytest.mark.parametrize(
    ("driver", "system", "is_wsl"),
    [
        ("576.57", "Ubuntu 24.04.2 LTS", True),
        ("576.57", "Windows 11", False),
        ("580.65.06", "Ubuntu 24.04.2 LTS", False),
        ("418.67", "Ubuntu 18.04 LTS", False),
    ],
)
def test_wsl_is_recognized_by_a_driver_of_windows_under_linux(tmp_path, driver, system, is_wsl):
    trace = Trace()
    trace.thread().call("cudaLaunchKernel_v7000").call("cudaDeviceSynchronize_v3020", takes=3_000_000)
    for name, value in (("NvDriverVersion", driver), ("OsDescription", system)):
        trace.row("TARGET_INFO_SYSTEM_ENV", name=name, value=value, devStateName="", nameEnum=1)
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as opened_trace:
        assert opened_trace.sql("SELECT is_wsl FROM _capture_settings").rows() == [(is_wsl,)]
        if is_wsl:
            (loss,) = evaluate_rules(opened_trace, ["capture-problem"]).values()
            assert "WSL2" in loss.evidence
            assert "nsys of Windows" in loss.action
            assert "Capture less" not in loss.action


def launches_that_fail(error):
    trace = Trace().gpu()
    host = trace.thread()
    host.copy("H2D", 1 << 20, runs=1_000_000)
    host.call("cudaLaunchKernel_v7000", takes=100_000_000, returns=error)
    for _ in range(20):
        host.call("cudaLaunchKernel_v7000", takes=3_000, returns=error)
    host.copy("D2H", 1 << 20, runs=1_000_000)
    return trace, host


@pytest.mark.parametrize(
    ("calls", "later_launches", "remedy"),
    [
        ([("cudaLaunchKernel", 209)], 0, "compile the program for this GPU"),
        ([("cudaLaunchKernel", 98)], 0, "compile the program for this GPU"),
        ([("cudaLaunchKernel", 222)], 0, "or update the driver"),
        ([("cudaLaunchKernel", 701)], 0, "__launch_bounds__"),
        ([("cudaLaunchKernel", 9)], 0, "check the grid and the block"),
        ([("cudaLaunchCooperativeKernel", 720)], 0, "launch fewer blocks"),
        ([("cudaLaunchKernel", 700)], 0, "run under compute-sanitizer"),
        # The error of most launches, also if other calls fail.
        ([("cudaLaunchKernel", 209)] * 2 + [("cudaLaunchKernel", 701)] * 3, 0, "__launch_bounds__"),
        ([("cudaLaunchKernel", 701)] * 2 + [("cudaLaunchKernel", 700)] * 3, 0, "run under compute-sanitizer"),
        ([("cudaMalloc", 2), ("cudaLaunchKernel", 701)], 0, "__launch_bounds__"),
        # Memory that cannot be had, from which the program goes on after 10 launches.
        ([("cudaMalloc", 2)], 9, "Fix this first: lower the peak of the memory"),
        ([("cudaMalloc", 2)], 10, "The program asks for less, or does without it"),
        ([("cudaMalloc", 2), ("cudaMemcpy", 1)], 10, "run under compute-sanitizer"),
        ([("cudaMemcpy", 1)], 30, "run under compute-sanitizer"),
    ],
)
def test_the_remedy_of_calls_that_fail(calls, later_launches, remedy, cure_of):
    api_calls = [
        {"name": name, "call_group": "launch" if "Launch" in name else "alloc" if "Malloc" in name else "copy",
         "return_value": error, "start_ns": number, "duration_ns": 100_000_000 if number == 0 else 3_000}
        for number, (name, error) in enumerate(calls)
    ]  # fmt: skip
    survived = [{"launches": later_launches}]
    cure, row = cure_of(
        "failed-calls", outer_api_calls=api_calls, wall=[{"duration_ns": 1_000_000_000}], _survived_failures=survived
    )
    assert remedy in cure
    assert row["severity"] == ("warning" if remedy.startswith("The program asks") else None)
    assert row["first_ns"] == (100_000_000 if "Launch" in calls[0][0] else None)


@pytest.mark.parametrize(
    ("calls", "launches"),
    [
        # Time, process, group and return value of each call.
        ([(1, 1, "alloc", 2), (2, 1, "alloc", 2), (3, 1, "launch", 0), (4, 1, "graph launch", 0)], 2),
        ([(1, 1, "alloc", 2), (2, 1, "launch", 0), (3, 1, "alloc", 2), (4, 1, "launch", 0)], 1),
        ([(1, 1, "alloc", 2), (2, 1, "launch", 700), (3, 1, "copy", 0)], None),
        ([(1, 1, "alloc", 2), (2, 2, "launch", 0)], None),
        ([(1, 1, "copy", 1), (2, 1, "launch", 0)], None),
    ],
)
def test_launches_after_a_failed_allocation(calls, launches, run_rule):
    names = ("start_ns", "process_id", "call_group", "return_value")
    rows = run_rule("_survived_failures", outer_api_calls=[dict(zip(names, call, strict=True)) for call in calls])
    assert [row["launches"] for row in rows] == ([launches] if launches else [])


def test_a_program_whose_launches_all_fail_is_not_judged_by_speed(tmp_path):
    trace, host = launches_that_fail(222)
    with open_trace(trace.write(tmp_path / "failed.sqlite")) as failed_trace:
        diagnosis = failed_trace.diagnose()
    assert [finding.code for finding in diagnosis.findings] == ["NSI903"]
    assert "the first failed launch takes 100 ms" in diagnosis.findings[0].evidence
    assert diagnosis.verdict == "no kernel ran"
    host.launch("k", runs=5_000_000)
    assert diagnose_loss(trace, tmp_path / "one_ran.sqlite").verdict != "no kernel ran"
