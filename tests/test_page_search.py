"""Rows whose key is in some spans are found in the pages of a SQLite file, as SQLite finds them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsys_insight.ingest import page_search
from nsys_insight.ingest.page_search import Search
from nsys_insight.ingest.sqlite_cells import NotPlainError
from nsys_insight.ingest.sqlite_pages import Reader


def table(path, keys):
    """A SQLite file of small pages with a row for each key; the other column is the place of the row."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA page_size = 512")
        database.execute("CREATE TABLE t (place INTEGER, key INTEGER)")
        database.executemany("INSERT INTO t VALUES (?, ?)", enumerate(keys))
    return path


def found(path, spans):
    return [
        place
        for batch in Search(path, "t", ["place"], "key").batches(spans)
        for place in batch.columns["place"].tolist()
    ]


@given(
    counts=st.lists(st.sampled_from([0, 1, 1, 2, 3, 30, 200]), min_size=1, max_size=60).filter(any),
    edges=st.sets(st.integers(0, 65), min_size=2, max_size=20),
    every=st.integers(1, 9),
    at_once=st.integers(1, 5),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_of_spans_are_found_wherever_pages_end(counts, edges, every, at_once, tmp_path):
    """Keys may be missing, and have more rows than a page."""
    keys = [key for key, count in enumerate(counts) for _ in range(count)]
    rising = sorted(edges)
    spans = list(zip(rising[::2], (edge - 1 for edge in rising[1::2]), strict=False))
    path = table(tmp_path / "t.sqlite", keys)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_search, "_EVERY", every)
        patch.setattr(page_search, "_AT_ONCE", at_once)
        assert found(path, spans) == [
            place for place, key in enumerate(keys) if any(first <= key <= last for first, last in spans)
        ]


def test_a_row_may_be_looked_at_for_many_spans(tmp_path):
    """In a leaf there may be more spans than rows: of most of them it has none."""
    path = table(tmp_path / "t.sqlite", range(0, 20_000, 1_000))
    spans = [(key, key) for key in range(0, 20_000, 40)]
    assert found(path, spans) == list(range(20))


def test_among_many_rows_few_pages_are_read(tmp_path, monkeypatch):
    keys = sorted(number * number % 5_000 for number in range(40_000))
    path = table(tmp_path / "t.sqlite", keys)
    wanted = range(0, 5_000, 500)
    search = Search(path, "t", ["place"], "key")
    read = []
    data_of = Reader.data_of
    monkeypatch.setattr(Reader, "data_of", lambda reader, pages: read.extend(pages) or data_of(reader, pages))
    (batch,) = search.batches([(key, key) for key in wanted])
    assert batch.columns["place"].tolist() == [place for place, key in enumerate(keys) if key in wanted]
    assert len(read) < 12 * len(wanted)


@given(keys=st.lists(st.integers(-3, 40), min_size=1, max_size=300), data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_in_any_order_do_no_harm(keys, data, tmp_path):
    """Whoever asks must know that keys rise; what comes of others is refused, or some rows, none of them twice."""
    keys = [key for key in keys for _ in range(data.draw(st.integers(1, 9)))]
    path = table(tmp_path / "t.sqlite", keys)
    try:
        places = found(path, [(2, 5), (9, 30)])
    except NotPlainError:
        return
    assert len(places) == len(set(places))


def test_a_span_that_begins_before_the_one_before_it_ended_is_refused(tmp_path):
    path = table(tmp_path / "t.sqlite", [0] * 12 + [-1] * 9 + [9] * 9 + [-1] * 27 + [9])
    with pytest.raises(NotPlainError):
        found(path, [(2, 5), (9, 30)])


@pytest.mark.parametrize("keys", [[-(1 << 63), 5], [None, 5], [1, (1 << 63) - 1]])
def test_keys_at_the_edge_of_64_bits_are_left_to_sqlite(keys, tmp_path):
    with pytest.raises(NotPlainError):
        Search(table(tmp_path / "t.sqlite", keys), "t", ["place"], "key")


def test_a_table_without_rows_is_left_to_sqlite(tmp_path):
    with pytest.raises(NotPlainError):
        Search(table(tmp_path / "t.sqlite", []), "t", ["place"], "key")
