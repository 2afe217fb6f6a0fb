"""Captures of programs that end early, fork, or share SMs (tests/data/odd): what reports say."""

from __future__ import annotations

import sqlite3
from statistics import fmean

from opening import diagnose_with, open_trace
from test_losses import find_losses, make_trace_without_gpu_work

import nsys_insight


def read(path, query: str):
    with sqlite3.connect(path) as file:
        return file.execute(query).fetchall()


# Ranges that are open when the capture ends: nsys ends them there.


def test_ranges_that_the_capture_cut_are_equal_to_the_file(capture):
    path = capture("missing_pop")
    ((capture_end,),) = read(path, "SELECT duration FROM ANALYSIS_DETAILS")
    ((is_open,),) = read(path, f'SELECT count(*) FROM NVTX_EVENTS WHERE "end" = {capture_end}')
    with nsys_insight.open(path, use_cache=False) as trace:
        (check,) = trace.check_files()
    assert is_open == 4
    assert check.status == "equal"
    assert "4 of 120 NVTX ranges were open when the capture ended and count without a time" in check.text


# A program that ends by _exit loses what it has not flushed.


def test_a_program_that_ends_by_exit_gets_the_call_that_flushes(capture):
    path = capture("ended_by_exit")
    assert read(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME") == [(1,)]
    with nsys_insight.open(path, use_cache=False) as trace:
        assert "or calls cudaProfilerStop before _exit" in diagnose_with(trace, "capture-problem").text(None)
        (check,) = trace.check_files()
    assert check.status == "equal"


def test_a_forked_worker_without_a_call_gets_it_too(capture):
    with open_trace(capture("forked_worker")) as trace:
        text = " ".join(diagnose_with(trace, "capture-problem").text(None).split())
    assert "--trace-fork-before-exec=true, for child processes, and cudaProfilerStop before they end by _exit" in text
    assert "call cudaProfilerStop in them before they end; or let Python spawn them" in text


def test_a_start_that_failed_names_forked_processes(tmp_path):
    trace = make_trace_without_gpu_work(message="CUDA profiling might have not been started correctly.")
    (loss,) = find_losses(trace, tmp_path / "trace.sqlite")
    assert "If only forked processes do, capture with --trace-fork-before-exec=true" in loss.action


# Blocks for which running ones leave no room, because their kernels split the L1 cache in different ways.


def test_a_kernel_that_waits_for_sms_is_not_launched_late(capture):
    path = capture("carveouts")
    splits = read(path, "SELECT DISTINCT sharedMemoryExecuted FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY 1")
    assert splits == [(32 << 10,), (228 << 10,)]
    starts = [time for (time,) in read(path, "SELECT start FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start")]
    ends = [time for (time,) in read(path, 'SELECT "end" FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start')]
    # The second kernel of each step starts just before the first one ends.
    assert all(-1000 < start - end < 0 for start, end in zip(starts[1::2], ends[::2], strict=True))
    period = fmean(after - before for before, after in zip(starts[::2], starts[2::2], strict=False))
    with open_trace(path) as trace:
        elements = {(row["kind"], row["name"]): row for row in trace.answer("critical-path").dicts()}
    assert elements["launch latency", None]["path_ns"] < 0.02 * period
    first, second = elements["kernel", "work(long long)"], elements["kernel", "wide(long long)"]
    assert first["path_ns"] + second["path_ns"] > 0.9 * period
    # Without one of them, the step is the other one and what the host does.
    assert all(0.3 * period < kernel["saved_ns"] < 0.5 * period for kernel in (first, second))


# The function that nvcc writes to launch a kernel, which has the kernel's name.


def test_a_launch_is_placed_in_the_function_of_the_program(capture):
    path = capture("backtraces")
    ((kernels,),) = read(
        path,
        """SELECT count(*) FROM CUDA_CALLCHAINS AS c JOIN StringIds AS s ON s.id = c.symbol
        WHERE s.value = 'work(long long)'""",
    )
    with open_trace(path) as trace:
        calls = trace.sql("SELECT split_part(name, ' (', 1), count(*) FROM call_places GROUP BY ALL").rows()
    assert kernels == 90
    assert dict(calls) == {"launch_batch": kernels, "wait_for_batch": 30, "stop": 1}
