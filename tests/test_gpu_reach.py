"""`_gpu_reach`: the running maximum of end times, compared with a plain loop."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from real_traces import REAL
from strategies import traces

import nsys_insight

OF_WORK = "SELECT gpu_id, start_ns, end_ns, call_of(correlation_id, process_id) FROM _gpu_work"
OF_FACT = "SELECT gpu_id, start_ns, end_ns, call, running_end_ns, is_same_call FROM _gpu_reach"


def order_key(row):
    return (row[0] is None, row[0] or 0, row[1], row[3] is None, row[3] or 0)


def find_reach(work):
    """Return the operations in order.

    Each one has the latest end before it on its GPU, and whether its call is that of the previous operation.
    """
    rows, last, running_ends = [], None, {}
    for gpu, start, end, call in sorted(work, key=order_key):
        is_same_call = None if last is None or last[3] is None or call is None else call == last[3]
        rows.append((gpu, start, end, call, running_ends.get(gpu), is_same_call))
        running_ends[gpu] = max(running_ends.get(gpu, end), end)
        last = (gpu, start, end, call)
    return rows


def group_ends(rows):
    """Return the sorted ends of operations with equal GPU, start and call. Their order is not defined."""
    return [
        (key, sorted(row[2] for row in group), sorted(row[5] is True for row in group))
        for key, group in ((key, list(group)) for key, group in itertools.groupby(rows, key=order_key))
    ]


def check_reach(path):
    with nsys_insight.open(path) as trace:
        work, rows = trace.sql(OF_WORK).rows(), trace.sql(OF_FACT).rows()
    # The running end before the first operation of each group.
    first_ends = {}
    for row in sorted(rows, key=lambda row: (order_key(row), row[4] is not None, row[4] or 0)):
        first_ends.setdefault(order_key(row), row[4])
    expected_rows = find_reach(work)
    assert group_ends(sorted(rows, key=order_key)) == group_ends(expected_rows)
    expected = {}
    for row in expected_rows:
        expected.setdefault(order_key(row), row[4])
    assert first_ends == expected


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_real_traces(path):
    check_reach(path)


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_random_traces(trace, tmp_path):
    check_reach(trace.write(tmp_path / "trace.sqlite"))
