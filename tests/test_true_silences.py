"""What the data do not support is not said; what was not looked at is."""

from __future__ import annotations

import planted
import pytest
from opening import open_trace
from synthetic import Trace


@pytest.fixture
def decoding(tmp_path):
    """32 steps."""
    return planted.launch_bound(32, nvtx="decode_step").write(tmp_path / "trace.sqlite")


def said(path, report, scope=None, **params):
    """Give the notes of a report, or of the diagnosis."""
    with open_trace(path, **(scope or {})) as trace:
        return " ".join((trace.diagnose(**params) if report == "diagnose" else trace.answer(report, **params)).notes)


@pytest.mark.parametrize("report", ["per-token", "diagnose"])
@pytest.mark.parametrize(("tokens", "fits"), [(7, False), (48, False), (32, True), (64, True)])
def test_tokens_that_do_not_fit_the_steps_are_said(decoding, report, tokens, fits):
    assert ("--tokens does not fit the 32 steps" in said(decoding, report, tokens=tokens)) is not fits


def test_an_empty_window_is_told_where_the_trace_is(tmp_path):
    trace = Trace()
    trace.thread().idle(2_000_000_000).launch("gemm(float *)", api=1_000, queue=0, runs=999_999_000)
    path = trace.write(tmp_path / "trace.sqlite")
    lies = "the GPU works from 2 s to 3 s of this trace"
    with open_trace(path, from_ns=100_000_000_000) as opened:
        assert lies in opened.answer("top").empty
    assert lies in said(path, "diagnose", {"from_ns": 100_000_000_000})
    assert "the GPU works from" not in said(path, "diagnose")


def profiled_share(trace, folder):
    with open_trace(trace.write(folder / "trace.sqlite")) as opened:
        return "without the profiler expect" in opened.diagnose().text(None)


def test_the_profilers_share_is_said_where_host_time_is_promised_and_nowhere_else(tmp_path):
    assert profiled_share(planted.launch_bound(8), tmp_path)
    assert not profiled_share(planted.deep_queue(8), tmp_path)
