"""`--from 10% --to 90%`: a window by shares of the trace's wall time."""

from __future__ import annotations

import json

import pytest
from command_line import run
from oracle import read, wall
from synthetic import Trace


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    trace = Trace()
    host = trace.thread(now=50_000)
    for _ in range(20):
        host.launch("kernel", runs=700).idle(1_000)
    return trace.write(tmp_path_factory.mktemp("shares") / "trace.sqlite")


@pytest.mark.parametrize(("first", "last"), [(0, 100), (10, 90), (25, 50.5)])
def test_kernels_that_begin_in_the_window_count(path, first, last):
    tables = read(path)
    start, end = wall(tables)
    window = [start + round((end - start) * share / 100) for share in (first, last)]
    expected = sum(window[0] <= row["start"] < window[1] for row in tables["CUPTI_ACTIVITY_KIND_KERNEL"])
    result = run("top", path, "--from", f"{first}%", "--to", f"{last}%", "-f", "json")
    assert result.returncode == 0
    answer = json.loads(result.stdout)
    assert sum(row["calls"] for row in answer["rows"]) == expected
    assert answer["trace"]["scope"] == {"from_ns": window[0], "to_ns": window[1]}


@pytest.mark.parametrize("text", ["110%", "ten%", "-5%", "%"])
def test_other_shares_are_refused(path, text):
    result = run("top", path, "--from", text)
    assert result.returncode == 2
    assert "--from 10%" in result.stderr
