"""Whole numbers read from the pages of a SQLite file are those that SQLite gives; what is not plain is left to it."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsys_insight.ingest import attach, cache, constants, raw, sqlite_cells, sqlite_pages
from nsys_insight.ingest.sqlite_cells import NULL, NotPlainError
from nsys_insight.ingest.sqlite_pages import batches

SAMPLES = Path(__file__).parents[1] / "sample_traces"
# On both sides of each number of bytes that a cell may have.
EDGES = [sign * (1 << bits) + more for bits in (0, 7, 8, 15, 23, 31, 47, 62) for sign in (1, -1) for more in (-1, 0, 1)]
NUMBERS = st.sampled_from([*EDGES, (1 << 63) - 1, NULL + 1, None]) | st.integers(NULL + 1, (1 << 63) - 1)


def make(path, statements, rows=(), *, table="t", page_size=4096):
    """Write a file with a table, made by statements, of rows."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA page_size = {page_size}")
        for statement in statements:
            database.execute(statement)
        if rows:
            database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        database.commit()
    return path


def read(path, columns, *, table="t", threads=2):
    """Give the rows of some columns, as they are in the pages."""
    found = []
    for batch in batches(path, table, columns, threads):
        cells = [
            [None if name in batch.nullable and cell == NULL else cell for cell in batch.columns[name].tolist()]
            for name in columns
        ]
        found += zip(*cells, strict=True)
    return found


def selected(path, columns, *, table="t"):
    with closing(sqlite3.connect(path)) as database:
        return database.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY rowid").fetchall()


@given(data=st.data(), page_size=st.sampled_from([512, 1024, 4096, 65536]), batch=st.sampled_from([1, 50, 1_000_000]))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_numbers_are_those_that_sqlite_gives(data, page_size, batch, tmp_path, monkeypatch):
    """Text, blobs and other numbers beside them do not matter, nor do rows that were removed."""
    monkeypatch.setattr(sqlite_pages, "_PART", data.draw(st.sampled_from([1, 8192, 4 << 20])))
    monkeypatch.setattr(sqlite_pages, "_BATCH", batch)
    cells = (
        NUMBERS,
        st.none() | st.text(max_size=14) | st.binary(max_size=20) | st.floats(allow_nan=False),
        NUMBERS,
        NUMBERS,
    )
    some = data.draw(st.lists(st.tuples(*cells), min_size=1, max_size=12))
    rows = list(itertools.islice(itertools.cycle(some), data.draw(st.sampled_from([1, 9, 800]))))
    path = make(
        tmp_path / "t.sqlite", ["CREATE TABLE t (a INTEGER, b, c INTEGER, d INTEGER)"], rows, page_size=page_size
    )
    with closing(sqlite3.connect(path)) as database:
        database.execute("DELETE FROM t WHERE rowid % ? = 0", [data.draw(st.sampled_from([2, 7, 1000]))])
        database.commit()
    for columns in (["a", "c"], ["d"], ["d", "a"]):
        assert read(path, columns) == selected(path, columns)


@given(data=st.data(), columns=st.integers(1, 30))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_of_many_headers_are_told_apart(data, columns, tmp_path):
    """Of few cells a header is one word of eight bytes, of more it is several."""
    kinds = data.draw(st.lists(st.tuples(*[NUMBERS] * columns), min_size=1, max_size=40))
    rows = [kinds[at % len(kinds)] for at in data.draw(st.lists(st.integers(0, 1000), min_size=1, max_size=300))]
    names = [f"c{at}" for at in range(columns)]
    path = make(tmp_path / "t.sqlite", [f"CREATE TABLE t ({' INTEGER, '.join(names)} INTEGER)"], rows)
    wanted = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    assert read(path, wanted) == selected(path, wanted)


def test_two_headers_that_give_one_number_are_left_to_sqlite(tmp_path, monkeypatch):
    names = [f"c{at}" for at in range(12)]
    rows = [(*[number] * 7, *[7] * 5) for number in (1, 300, 1 << 40)]
    path = make(tmp_path / "t.sqlite", [f"CREATE TABLE t ({' INTEGER, '.join(names)} INTEGER)"], rows)
    assert read(path, names) == rows
    monkeypatch.setattr(sqlite_cells, "_ODD", 0)
    with pytest.raises(NotPlainError, match="tell apart"):
        read(path, names)


def test_rows_of_too_many_headers_are_left_to_sqlite(tmp_path, monkeypatch):
    rows = [tuple((2, 1 << 10, 1 << 20)[at // 3**place % 3] for place in range(4)) for at in range(81)]
    path = make(tmp_path / "t.sqlite", ["CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER, d INTEGER)"], rows)
    monkeypatch.setattr(sqlite_cells, "_MOST", 81)
    assert read(path, ["d", "a"]) == [(row[3], row[0]) for row in rows]
    monkeypatch.setattr(sqlite_cells, "_MOST", 80)
    with pytest.raises(NotPlainError):
        read(path, ["d", "a"])


def test_a_cell_far_from_the_beginning_of_its_row_is_left_to_sqlite(tmp_path):
    texts = ", ".join(f"t{at}" for at in range(30))
    path = make(
        tmp_path / "t.sqlite", [f"CREATE TABLE t (a INTEGER, {texts}, b INTEGER)"], [(7, *["x" * 20] * 30, 8)] * 9
    )
    assert read(path, ["a"]) == [(7,)] * 9
    with pytest.raises(NotPlainError):
        read(path, ["b"])


def test_rows_that_share_their_bytes_are_left_to_sqlite(tmp_path):
    """A page may name one row a thousand times; it would be read as often."""
    path = make(tmp_path / "t.sqlite", ["CREATE TABLE t (a INTEGER, b)"], [(number, "x" * 30) for number in range(9)])
    content = bytearray(path.read_bytes())
    leaf = content[4096:]
    leaf[3:5] = (1500).to_bytes(2, "big")
    leaf[8:3008] = leaf[8:10] * 1500
    path.write_bytes(content[:4096] + leaf)
    with pytest.raises(NotPlainError, match="share"):
        read(path, ["a"])


def test_high_numbers_of_rows_take_up_to_nine_bytes(tmp_path):
    path = make(tmp_path / "t.sqlite", ["CREATE TABLE t (a INTEGER)"])
    with closing(sqlite3.connect(path)) as database:
        numbers = [-1, *(1 << bits for bits in range(63)), *((1 << bits) - 1 for bits in range(63))]
        database.executemany("INSERT OR IGNORE INTO t(rowid, a) VALUES (?, ?)", [(row, row) for row in numbers])
        database.commit()
    assert read(path, ["a"]) == selected(path, ["a"])


def test_an_empty_table_has_no_rows(tmp_path):
    assert read(make(tmp_path / "t.sqlite", ["CREATE TABLE t (a INTEGER)"]), ["a"]) == []


@pytest.mark.parametrize(
    ("statements", "row"),
    [
        (["CREATE TABLE t (a REAL)"], (0.5,)),
        (["CREATE TABLE t (a)"], ("text",)),
        (["CREATE TABLE t (a)"], (b"",)),
        (["CREATE TABLE t (a)"], (NULL,)),
        (["CREATE TABLE t (a INTEGER PRIMARY KEY)"], (7,)),
        (["CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER) WITHOUT ROWID"], (7, 8)),
        (["CREATE TABLE t (b, a INTEGER)"], ("x" * 100, 7)),
        (["CREATE TABLE t (a INTEGER, b)"], (7, "x" * 5000)),
        (["CREATE TABLE t (a INTEGER, b)"], (7, "x" * 50000)),
        (["CREATE TABLE t (b INTEGER, a INTEGER AS (b + 1) STORED, c INTEGER)"], None),
    ],
    ids=[
        "real", "text", "empty blob", "NULL's number", "key", "no rowid", "long text before", "overflow", "long",
        "generated",
    ],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_sqlite(statements, row, tmp_path):
    """Also where it is one row of many, or the one that holds what stands for NULL in a column that has one."""
    path = make(tmp_path / "t.sqlite", statements)
    with closing(sqlite3.connect(path)) as database:
        if row is None:
            database.execute("INSERT INTO t(b, c) VALUES (1, 2)")
        else:
            if "PRIMARY" not in statements[0]:
                database.executemany("INSERT INTO t(a) VALUES (?)", [(number,) for number in [None, *range(500)]])
            database.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(row))})", row)
        database.commit()
    with pytest.raises(NotPlainError):
        read(path, ["a"])


def test_a_table_that_has_no_pages_is_left_to_sqlite(tmp_path):
    path = make(tmp_path / "t.sqlite", ["CREATE VIRTUAL TABLE t USING fts5(a)"])
    with pytest.raises(NotPlainError):
        read(path, ["a"])


def test_a_column_that_was_added_later_is_left_to_sqlite(tmp_path):
    path = make(tmp_path / "t.sqlite", ["CREATE TABLE t (a INTEGER)"], [(1,), (2,)])
    with closing(sqlite3.connect(path)) as database:
        database.execute("ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 5")
        database.commit()
    assert read(path, ["a"]) == [(1,), (2,)]
    with pytest.raises(NotPlainError):
        read(path, ["b"])


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_file_that_is_being_written_is_left_to_sqlite(suffix, tmp_path):
    path = make(tmp_path / "t.sqlite", ["CREATE TABLE t (a INTEGER)"], [(1,)])
    path.with_name(path.name + suffix).write_bytes(b"pages")
    with pytest.raises(NotPlainError):
        read(path, ["a"])


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_left_to_sqlite_or_read_as_it_is(data, tmp_path):
    """No byte of it makes anything else happen."""
    path = make(
        tmp_path / "t.sqlite",
        ["CREATE TABLE t (a INTEGER, b INTEGER)"],
        [(row, -row) for row in range(400)],
        page_size=512,
    )
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(1024, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    with suppress(NotPlainError):
        read(path, ["a", "b"])


@pytest.mark.parametrize("name", sorted(path.stem for path in SAMPLES.glob("*.sqlite")))
def test_the_numbers_of_real_traces_are_those_that_sqlite_gives(name):
    path = SAMPLES / f"{name}.sqlite"
    present = attach.sqlite_columns(path)
    for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"):
        columns = [column for column in raw.contract()[table] if column in present[table]]
        quoted = [f'"{column}"' for column in columns]
        assert read(path, columns, table=table) == selected(path, quoted, table=table)


def test_a_copy_made_of_pages_is_the_one_that_the_extension_makes(monkeypatch):
    path = SAMPLES / "decode_graph_node.sqlite"

    def rows():
        import duckdb

        found = {}
        copy = cache.build(path, lasting=False, part="lean")
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH '{copy}' AS copy (READ_ONLY)")
            noted = constants.noted(connection, "copy")
            for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                relation = constants.shown(f'copy."{table}"', noted.get(table, {}))
                columns = sorted(name for name, *_ in connection.execute(f"DESCRIBE FROM {relation}").fetchall())
                select = ", ".join(f'"{name}"' for name in columns)
                found[table] = connection.execute(f"SELECT {select} FROM {relation} ORDER BY ALL").fetchall()
        return found

    of_pages = rows()

    def none(*_):
        raise NotPlainError
        yield

    monkeypatch.setattr(sqlite_pages, "batches", none)
    assert rows() == of_pages
    assert len(of_pages["CUPTI_ACTIVITY_KIND_KERNEL"]) > 1000
