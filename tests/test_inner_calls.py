"""Calls inside other ones are found, in whatever order a trace has its calls."""

from __future__ import annotations

from itertools import groupby

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsys_insight.model import views
from nsys_insight.model.producers import producers
from nsys_insight.paths import query

Call = tuple[int, int, int]  # thread, start, end
TABLES = """
    CREATE SCHEMA raw; CREATE SCHEMA facts;
    CREATE TABLE raw.CUPTI_ACTIVITY_KIND_RUNTIME (
        globalTid BIGINT, start BIGINT, "end" BIGINT, eventClass BIGINT, correlationId BIGINT);
    CREATE VIEW api_calls AS
        SELECT pid_of(globalTid) AS process_id, tid_of(globalTid) AS thread_id, start AS start_ns, "end" AS end_ns,
            'runtime' AS api, correlationId AS correlation_id
        FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME WHERE eventClass IS DISTINCT FROM 67"""


def found(calls: list[Call], *, again: bool = False) -> tuple[list[Call], bool]:
    """Give the inner calls that the fact has, and whether a thread got the full look."""
    with duckdb.connect() as connection:
        views.create_macros(connection)
        connection.execute(TABLES)
        rows = [(thread, start, end, 0, number) for number, (thread, start, end) in enumerate(calls)]
        if again:  # rows that repeat a call lie around it
            rows += [(thread, start - 1, end + 1, 67, number) for number, (thread, start, end) in enumerate(calls)]
        if rows:
            connection.executemany("INSERT INTO raw.CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", rows)
        for name in ("overlapping_threads", "inner_calls"):
            connection.execute(producers()[name].create + producers()[name].fill)
            connection.execute(f"CREATE VIEW _{name} AS FROM facts.{name}")
        inner = connection.execute("SELECT thread_id, start_ns, end_ns FROM facts.inner_calls ORDER BY ALL").fetchall()
        looked = query("facts/inner_calls").partition("WITH nesting_threads")[2].partition("SELECT process_id,")[0]
        threads = connection.execute(f"WITH nesting_threads{looked} FROM nesting_threads").fetchall()
    return inner, bool(threads)


def inner(calls: list[Call]) -> list[Call]:
    """Look at each call by itself: those that begin first and last longest are outside the others."""
    told = []
    for _, group in groupby(sorted(calls, key=lambda call: (call[0], call[1], -call[2])), key=lambda call: call[0]):
        latest = None
        for call in group:
            if latest is not None and max(call[1] + 1, call[2]) <= latest:
                told.append(call)
            latest = call[2] if latest is None else max(latest, call[2])
    return sorted(told)


@st.composite
def calls(draw: st.DrawFn) -> list[Call]:
    lengths = st.one_of(st.just(1), st.integers(0, 12))
    made = draw(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 40), lengths), max_size=14))
    found = [(thread, start, start + length) for thread, start, length in made]
    return sorted(found, key=lambda call: call[1]) if draw(st.booleans()) else found


@pytest.mark.slow
@given(calls())
def test_they_are_those_that_a_look_at_each_call_finds(made):
    assert found(made)[0] == inner(made)


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, -1])
def test_calls_one_after_the_other_need_no_full_look(step):
    made = [(thread, at, at + 10) for thread in (1, 2) for at in range(0, 500, 10)][::step]
    assert found(made, again=True) == ([], False)


def test_runs_of_calls_that_are_stored_out_of_order_need_none():
    made = [(1, at, at + 10) for at in range(0, 500, 10)]
    assert found(made[25:] + made[10:25] + made[:10]) == ([], False)


@pytest.mark.parametrize("step", [10, 1_000_000])
def test_nor_do_runs_with_parts_of_others_in_their_holes(step):
    made = [(1, at, at + step) for at in range(0, 100 * step, step)]
    parts = [made[first : first + 10] for first in range(0, 100, 10)]
    stored = [call for part in (*parts[::2], *parts[1::2]) for call in part]
    assert found(stored) == ([], False)
    within = (1, 55 * step + 2, 55 * step + 7)
    assert found([*stored, within]) == ([within], True)


@pytest.mark.slow
def test_a_call_inside_one_that_is_stored_far_from_it_is_found():
    made = [(1, at, at + 10) for at in range(0, 500, 10)]
    assert found([*made, (1, 252, 255)])[0] == [(1, 252, 255)]
    assert found([(1, 252, 255), *made])[0] == [(1, 252, 255)]
    assert found([*made, (2, 252, 255)])[0] == []
