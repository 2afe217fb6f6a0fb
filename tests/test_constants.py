"""What a copy shows of columns that it does not write is what they held."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsys_insight.ingest.constants import Copied, noted, shown
from nsys_insight.ingest.sqlite_cells import NULL
from nsys_insight.ingest.sqlite_pages import Batch

COLUMNS = ("start", "process", "device")
# Whole numbers that often repeat, and NULL.
_CELLS = st.sampled_from((0, 1, 7, -5, 1 << 62, None))
_BATCHES = st.lists(st.lists(st.tuples(_CELLS, _CELLS, _CELLS), max_size=4), max_size=5)


def _batch(rows):
    columns = {
        name: np.array([NULL if row[at] is None else row[at] for row in rows], dtype=np.int64)
        for at, name in enumerate(COLUMNS)
    }
    return Batch(columns, frozenset(name for name, cells in columns.items() if (cells == NULL).any()))


def _copied(*batches):
    """Copy batches of rows; return the rows that are shown, the columns that are written, and what is noted."""
    with duckdb.connect() as connection:
        connection.execute("ATTACH ':memory:' AS built")
        copied = Copied(connection, 'built."table"', COLUMNS)
        for rows in batches:
            copied.add(_batch(rows))
        copied.end()
        constants = noted(connection, "built").get("table", {})
        written = [name for name, *_ in connection.execute('DESCRIBE built."table"').fetchall()]
        relation = shown('built.main."table"', constants)
        rows = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM {relation}").fetchall()
        return rows, written, constants


def _in_order(rows):
    return sorted(rows, key=str)


@given(_BATCHES)
def test_all_rows_are_shown_as_they_were(batches):
    rows, written, constants = _copied(*batches)
    assert _in_order(rows) == _in_order(row for batch in batches for row in batch)
    assert {*written, *constants} == {*COLUMNS}
    assert not {*written} & {*constants}


@pytest.mark.parametrize(("device", "value"), [(0, 0), (None, None), (1 << 62, 1 << 62)])
def test_a_column_with_one_value_is_noted_and_not_written(device, value):
    _, written, constants = _copied([(1, 358, device), (2, 359, device)], [(3, 358, device)])
    assert written == ["start", "process"]
    assert constants == {"device": value}


def test_one_that_has_a_second_value_later_is_written_from_there():
    rows, written, constants = _copied([(1, 358, 0), (2, 358, 0)], [(3, 358, 1)], [(4, None, 1)])
    assert rows == [(1, 358, 0), (2, 358, 0), (3, 358, 1), (4, None, 1)]
    assert written == ["start", "device", "process"]
    assert not constants


def test_the_first_column_is_written_in_any_case():
    assert _copied([(1, 2, 3)]) == ([(1, 2, 3)], ["start"], {"process": 2, "device": 3})


def test_a_table_without_rows_has_all_columns():
    assert _copied([], []) == ([], [*COLUMNS], {})
