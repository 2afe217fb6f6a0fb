"""The time limit holds for opening a trace as it does for a query: for copies, exports, and patterns on long names."""

from __future__ import annotations

import os
import shutil
import time

import pytest
from synthetic import Trace

import nsys_insight
from nsys_insight.errors import QueryError, UsageError
from nsys_insight.ingest import export, nsys, waiting
from nsys_insight.ingest.scope import Scope
from nsys_insight.text.suggestions import find_nearest


def test_a_pattern_takes_linear_time_and_fits_as_before(tmp_path):
    trace = Trace()
    host = trace.thread(pid=100)
    for name in ("a" * 30_000 + "c", "step 1", "step 12", "step\n1", "a[1]", "a\\b", "größe"):
        with host.nvtx(name):
            host.launch("gemm(float *)", runs=1_000)
    path = trace.write(tmp_path / "trace.sqlite", version="2025.3")
    start_s = time.perf_counter()
    with pytest.raises(UsageError, match="no NVTX range is named") as caught:
        nsys_insight.open(path, scope=Scope(nvtx="*a*a*a*a*a*a*b"), timeout_s=60)
    assert len(caught.value.hint) < 500
    for pattern, count in {"step*": 3, "step ?": 1, "step?1": 2, "*[1]": 1, "a\\b": 1, "gr??e": 1, "*c": 1}.items():
        with nsys_insight.open(path, scope=Scope(nvtx=pattern)) as trace_in_scope:
            assert trace_in_scope.sql("SELECT count(*) AS n FROM kernels")["n"].item() == count, pattern
    assert time.perf_counter() - start_s < 30


def test_copying_a_huge_file_is_stopped(sample, tmp_path, cache):
    path = tmp_path / "trace.sqlite"
    shutil.copyfile(sample("churn"), path)
    with path.open("r+b") as stream:
        stream.seek(18)
        stream.write(b"\2\2")  # in WAL mode, so that it is copied
        stream.truncate(1 << 40)  # sparse
    start_s = time.perf_counter()
    with pytest.raises(QueryError, match=r"opening the trace was stopped after 0.1 s"):
        nsys_insight.open(path, timeout_s=0.1)
    assert time.perf_counter() - start_s < 15
    assert not waiting.left_running
    assert not [file for file in cache.rglob("*") if file.is_file() and file.stat().st_size > 1 << 20]


def test_an_nsys_that_does_not_end_is_stopped(sample, tmp_path, monkeypatch):
    tool = tmp_path / "nsys"
    tool.write_text("#!/bin/sh\nsleep 600 & wait\n")
    tool.chmod(0o700)
    monkeypatch.setattr(export.nsys, "find_installed", lambda: [nsys.Nsys(tool, (2025, 1))])
    report = tmp_path / "trace.nsys-rep"
    report.write_bytes(b"NVIDIA Tegra Profiler Report" + os.urandom(100))
    with pytest.raises(QueryError, match=r"opening the trace was stopped after 0.3 s"):
        nsys_insight.open(report, timeout_s=0.3)
    assert not waiting.left_running


def test_similar_names_are_found_without_comparing_long_ones():
    start_s = time.perf_counter()
    assert find_nearest("steq", ["x" * 10**6, "step", "steps"], 2) == ["step", "steps"]
    assert time.perf_counter() - start_s < 1
