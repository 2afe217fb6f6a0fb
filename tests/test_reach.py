"""`_gpu_reach`: what a plain loop finds was reached before each operation."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from real_traces import REAL
from strategies import traces

import nsys_insight

OF_WORK = "SELECT gpu_id, start_ns, end_ns, call_of(correlation_id, process_id) FROM _gpu_work"
OF_FACT = "SELECT gpu_id, start_ns, end_ns, call, running_end_ns, is_same_call FROM _gpu_reach"


def by_place(row):
    return (row[0] is None, row[0] or 0, row[1], row[3] is None, row[3] or 0)


def plain(work):
    """Each operation in order, with the latest end of those before it on its GPU, and if its call is the last one's."""
    found, last, reached = [], None, {}
    for gpu, start, end, call in sorted(work, key=by_place):
        same = None if last is None or last[3] is None or call is None else call == last[3]
        found.append((gpu, start, end, call, reached.get(gpu), same))
        reached[gpu] = max(reached.get(gpu, end), end)
        last = (gpu, start, end, call)
    return found


def ends_alike(rows):
    """Operations of one GPU, start and call may come in any order: so many have these ends."""
    return [
        (place, sorted(row[2] for row in group), sorted(row[5] is True for row in group))
        for place, group in ((place, list(group)) for place, group in itertools.groupby(rows, key=by_place))
    ]


def check(path):
    with nsys_insight.open(path) as trace:
        work, rows = trace.sql(OF_WORK).rows(), trace.sql(OF_FACT).rows()
    # What was reached before the first of several at one place.
    first = {}
    for row in sorted(rows, key=lambda row: (by_place(row), row[4] is not None, row[4] or 0)):
        first.setdefault(by_place(row), row[4])
    of_plain = plain(work)
    assert ends_alike(sorted(rows, key=by_place)) == ends_alike(of_plain)
    expected = {}
    for row in of_plain:
        expected.setdefault(by_place(row), row[4])
    assert first == expected


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_of_real_traces(path):
    check(path)


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_of_any_trace(trace, tmp_path):
    check(trace.write(tmp_path / "trace.sqlite"))
