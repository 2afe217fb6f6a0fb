"""Answers do not depend on when a trace begins: reports and the diagnosis of the same events at other times."""

from __future__ import annotations

import re
from contextlib import closing

import planted
import pytest
from many_traces import make_full_trace
from sweeps import sweep

import nsys_insight
from nsys_insight.errors import InsightError
from nsys_insight.packs.library import all_packs

SECOND = 10**9
# Twice a time between 1.07 and 2.15 s is more than an INTEGER holds. Above 2^53, a DOUBLE holds no odd number.
SHIFTS = [*(round(seconds * SECOND) for seconds in (1.2, 0.5, 1, 2, 5, 10, 100)), 2**53 + 1]
TRACES = {"full": make_full_trace, **{name: lambda make=make: make().trace for name, make in planted.ALL.items()}}
CASES = [(name, ns) for name in TRACES for ns in SHIFTS]
ONE_CASE = ("sync bound", SHIFTS[0])
_TIME_OF_TRACE = re.compile(r"\b(at|from|to) -?[\d,.]+ (ns|µs|ms|s)\b")


def answer(path, reports):
    """Return the rows of reports, or their errors, and the text of the diagnosis."""
    answers = {}
    with closing(nsys_insight.open(path, use_cache=False)) as trace:
        for name in reports:
            try:
                answers[name] = trace.run(name).to_dicts()
            except InsightError as error:
                answers[name] = str(error)
        # The synthetic capture begins at 0.
        answers["info"] = [row for row in answers.get("info", []) if row["metric"] != "capture_ns"]
        answers["diagnose"] = [{"line": line} for line in trace.diagnose().text(None).splitlines()]
    return answers


def drop_time_of_trace(value, column, ns):
    """Return a value as if the trace began `ns` earlier."""
    if isinstance(value, str):
        return _TIME_OF_TRACE.sub(r"\1 TIME \2", value)
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-9, abs=1e-9)
    return value - ns if isinstance(value, int) and column.endswith(("start_ns", "end_ns")) else value


def shift_back(answers, ns):
    return {
        name: rows
        if isinstance(rows, str)
        else [{column: drop_time_of_trace(value, column, ns) for column, value in row.items()} for row in rows]
        for name, rows in answers.items()
    }


@pytest.mark.parametrize(("name", "ns"), [ONE_CASE, *sweep(case for case in CASES if case != ONE_CASE)])
def test_a_shift_in_time_changes_no_answer(tmp_path, name, ns, pytestconfig):
    # The others are in `test_packs.py`, for another shift; the diagnosis reads most of them.
    reports = list(all_packs())[:: 1 if pytestconfig.getoption("--all") else 4]
    trace = TRACES[name]()
    path = tmp_path / "trace.sqlite"
    expected = shift_back(answer(trace.write(path), reports), 0)
    path.unlink()
    shifted = shift_back(answer(trace.shifted(ns).write(path), reports), ns)
    for report, rows in expected.items():
        assert shifted[report] == rows, report
