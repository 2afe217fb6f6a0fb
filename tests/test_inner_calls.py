"""Calls inside other calls are found for any order of the calls in a trace."""

from __future__ import annotations

from itertools import groupby

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsys_insight.ingest import processes
from nsys_insight.model import views
from nsys_insight.model.producers import get_producer

Call = tuple[int, int, int]  # thread, start, end
TABLES = """
    CREATE SCHEMA raw; CREATE SCHEMA facts;
    CREATE TABLE raw.CUPTI_ACTIVITY_KIND_RUNTIME (
        globalTid BIGINT, start BIGINT, "end" BIGINT, eventClass BIGINT, correlationId BIGINT);
    CREATE VIEW api_calls AS
        SELECT pid_of(globalTid) AS process_id, tid_of(globalTid) AS thread_id, start AS start_ns, "end" AS end_ns,
            'runtime' AS api, correlationId AS correlation_id
        FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME WHERE eventClass IS DISTINCT FROM 67"""


def read_inner_calls(calls: list[Call], *, repeat: bool = False) -> tuple[list[Call], bool]:
    """Return the inner calls of the fact, and whether a thread was checked call by call."""
    with duckdb.connect() as connection:
        views.create_macros(connection)
        processes.create_macros(connection)
        connection.execute(TABLES)
        rows = [(thread, start, end, 0, number) for number, (thread, start, end) in enumerate(calls)]
        if repeat:  # rows that repeat a call enclose it
            rows += [(thread, start - 1, end + 1, 67, number) for number, (thread, start, end) in enumerate(calls)]
        if rows:
            connection.executemany("INSERT INTO raw.CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", rows)
        for name in ("overlapping_threads", "inner_calls"):
            connection.execute(f"CREATE TABLE facts.{name} AS {get_producer(name).query}")
            connection.execute(f"CREATE VIEW _{name} AS FROM facts.{name}")
        inner_calls = connection.execute(
            "SELECT thread_id, start_ns, end_ns FROM facts.inner_calls ORDER BY ALL"
        ).fetchall()
        thread_query = (
            get_producer("inner_calls").query.partition("WITH nesting_threads")[2].partition("SELECT process_id,")[0]
        )
        threads = connection.execute(f"WITH nesting_threads{thread_query} FROM nesting_threads").fetchall()
    return inner_calls, bool(threads)


def find_inner_calls(calls: list[Call]) -> list[Call]:
    """Check each call separately. Of overlapping calls, the first and longest one is the outer call."""
    inner_calls = []
    for _, group in groupby(sorted(calls, key=lambda call: (call[0], call[1], -call[2])), key=lambda call: call[0]):
        latest_end = None
        for call in group:
            if latest_end is not None and max(call[1] + 1, call[2]) <= latest_end:
                inner_calls.append(call)
            latest_end = call[2] if latest_end is None else max(latest_end, call[2])
    return sorted(inner_calls)


@st.composite
def call_lists(draw: st.DrawFn) -> list[Call]:
    lengths = st.one_of(st.just(1), st.integers(0, 12))
    spans = draw(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 40), lengths), max_size=14))
    calls = [(thread, start, start + length) for thread, start, length in spans]
    return sorted(calls, key=lambda call: call[1]) if draw(st.booleans()) else calls


@pytest.mark.slow
@given(call_lists())
def test_inner_calls_equal_a_check_of_each_call(calls):
    assert read_inner_calls(calls)[0] == find_inner_calls(calls)


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, -1])
def test_consecutive_calls_need_no_full_check(step):
    calls = [(thread, start, start + 10) for thread in (1, 2) for start in range(0, 500, 10)][::step]
    assert read_inner_calls(calls, repeat=True) == ([], False)


def test_runs_of_calls_stored_out_of_order_need_no_full_check():
    calls = [(1, start, start + 10) for start in range(0, 500, 10)]
    assert read_inner_calls(calls[25:] + calls[10:25] + calls[:10]) == ([], False)


@pytest.mark.parametrize("step", [10, 1_000_000])
def test_interleaved_runs_of_calls_need_no_full_check(step):
    calls = [(1, start, start + step) for start in range(0, 100 * step, step)]
    pieces = [calls[first : first + 10] for first in range(0, 100, 10)]
    stored_calls = [call for piece in (*pieces[::2], *pieces[1::2]) for call in piece]
    assert read_inner_calls(stored_calls) == ([], False)
    inner_call = (1, 55 * step + 2, 55 * step + 7)
    assert read_inner_calls([*stored_calls, inner_call]) == ([inner_call], True)


@pytest.mark.slow
def test_an_inner_call_stored_far_from_its_outer_call_is_found():
    calls = [(1, start, start + 10) for start in range(0, 500, 10)]
    assert read_inner_calls([*calls, (1, 252, 255)])[0] == [(1, 252, 255)]
    assert read_inner_calls([(1, 252, 255), *calls])[0] == [(1, 252, 255)]
    assert read_inner_calls([*calls, (2, 252, 255)])[0] == []
