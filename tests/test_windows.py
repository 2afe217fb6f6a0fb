"""Intervals in windows, compared with the drawing next to the macros."""

from __future__ import annotations

import re

import duckdb
import pytest

from nsys_insight.model import views
from nsys_insight.paths import read_query


def find_marks(line: str, pattern: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(pattern, line)]


@pytest.mark.parametrize("macro", ["begun_in", "whole_in", "cut_in", "cut_to"])
def test_the_drawing_shows_what_the_macros_return(macro):
    """Take the position of a character as its time."""
    drawing = read_query("model/windows/macros").partition("\n\n")[0]
    lines = {line.split()[1]: line for line in drawing.splitlines() if line.startswith("--     ")}
    windows = [(start, end - 1) for start, end in find_marks(lines["windows"], r"\|<.*?>\|")]
    intervals = find_marks(lines["intervals"], "=+")
    drawn_parts = find_marks(lines[macro], "=+")
    with duckdb.connect() as connection:
        views.create_macros(connection)
        connection.execute("CREATE TABLE windows (start_ns BIGINT, end_ns BIGINT)")
        connection.execute("CREATE TABLE intervals (gpu_id BIGINT, start_ns BIGINT, end_ns BIGINT)")
        connection.executemany("INSERT INTO windows VALUES (?, ?)", windows)
        connection.executemany("INSERT INTO intervals VALUES (0, ?, ?)", intervals)
        query = f"SELECT start_ns, end_ns FROM {macro}('intervals', 'windows') ORDER BY start_ns"
        parts = connection.execute(query).fetchall()
    assert (len(windows), len(intervals)) == (2, 4)
    assert parts == drawn_parts


@pytest.mark.parametrize(
    ("macro", "parts"), [("cut_in", [(10, 15), (20, 30)]), ("cut_to", [(2, 3), (10, 15), (20, 30)])]
)
def test_a_long_interval_has_a_part_in_each_window_also_without_a_gpu(macro, parts):
    with duckdb.connect() as connection:
        views.create_macros(connection)
        connection.execute(
            """CREATE TABLE windows AS FROM (VALUES (0, 15), (15, 15), (20, 31)) AS w(start_ns, end_ns);
            CREATE TABLE intervals AS
            FROM (VALUES (NULL, 2, 3), (NULL, 10, 30), (NULL, 40, 50)) AS i(gpu_id, start_ns, end_ns)"""
        )
        query = f"SELECT start_ns, end_ns FROM {macro}('intervals', 'windows') ORDER BY start_ns"
        assert connection.execute(query).fetchall() == parts
