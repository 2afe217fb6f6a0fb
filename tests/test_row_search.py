"""Rows of an export near given times, found without reading the others."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsys_insight.ingest import row_search


def table(rows):
    """Return a database with a table `events` of (row number, start) pairs."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE events (start INTEGER)")
    database.executemany("INSERT INTO events (rowid, start) VALUES (?, ?)", rows)
    return database


@given(
    starts=st.lists(st.integers(-50, 3000), min_size=1, max_size=60).map(sorted),
    steps=st.lists(st.integers(1, 90), min_size=60, max_size=60),
    value=st.integers(-60, 3010),
    probes=st.integers(1, 40),
)
def test_the_search_finds_the_first_row_that_is_not_before_the_time(starts, steps, value, probes):
    numbers = [sum(steps[: index + 1]) for index in range(len(starts))]  # rows that were deleted leave holes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_search, "PROBE_COUNT", probes)
        row = row_search.Rows(table(zip(numbers, starts, strict=True)), "events").find_row(value)
    index = bisect_left(starts, value)
    previous_row, limit = (
        numbers[index - 1] if index else 0,
        numbers[index] if index < len(numbers) else numbers[-1] + 1,
    )
    assert previous_row < row <= limit


@given(st.lists(st.tuples(st.integers(0, 80), st.integers(-1, 12)).map(lambda pair: (pair[0], sum(pair)))))
def test_merged_spans_have_the_same_rows_once(spans):
    merged_spans = list(row_search.merge_spans(spans))
    rows = [number for first, last in merged_spans for number in range(first, last + 1)]
    assert rows == sorted({number for first, last in spans for number in range(first, last + 1)})
    assert len(merged_spans) <= len(spans)
