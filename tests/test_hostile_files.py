"""What a file holds is data. Nothing in it is evaluated, so a trace from a stranger reads no other file."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import nsys_insight
from nsys_insight.errors import InsightError, TraceError
from nsys_insight.ingest import tables_only

REPOSITORY = Path(__file__).parents[1]
SECRET = "hunter2"  # noqa: S105 - nobody's password
# SQLite reads a view as its own SQL and ends a comment at the first */; in DuckDB's SQL comments nest. What stands
# between is a comment for the one, and for the other a query.
POLYGLOT = "SELECT name, value FROM kept /* /* */ -- */ UNION ALL SELECT name::VARCHAR, value::VARCHAR FROM {}"

MAGIC = bytes.fromhex("d9d505f920a163d7")  # of a journal


@pytest.fixture
def secret(tmp_path):
    """Give a file of the user's own."""
    path = tmp_path / "private.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(f"CREATE TABLE people AS SELECT 'PROCESS_0:COMMAND' AS name, '{SECRET}' AS value")
    return path


def ran(*command):
    """Run a command; return its exit code, and what it printed."""
    words = [sys.executable, "-m", "nsys_insight", *map(str, command)]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def changed(sample, path, *statements):
    """Copy a sample and run statements in it, of which `writable_schema` lets any text become the schema."""
    shutil.copyfile(sample("churn"), path)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            database.execute(statement)
    return path


@pytest.fixture
def hostile(sample, tmp_path, secret):
    """Give an export that has a view over another file in the place of a table."""
    view = POLYGLOT.format(f"sqlite_scan('{secret}', 'people')")
    return changed(
        sample, tmp_path / "hostile.sqlite",
        "ALTER TABLE META_DATA_CAPTURE RENAME TO kept", f"CREATE VIEW META_DATA_CAPTURE AS {view}",
    )  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        ["info"],
        ["info", "--cache"],
        ["info", "--no-cache"],
        ["report", "--template", "agent"],
        ["sql", "-n", "0", "FROM raw.META_DATA_CAPTURE"],
        ["sql", "-n", "0", "FROM capture"],
    ],
    ids=" ".join,
)
def test_a_view_in_the_place_of_a_table_reads_no_other_file(hostile, command):
    name, *flags = command
    code, out, err = ran(name, hostile, *flags)
    assert SECRET not in out + err
    assert code == 0
    assert "churn" in out, "what the file itself says is told"


def test_where_views_are_evaluated_at_all_sqlite_does_it_as_its_own_sql(hostile):
    """The view that is over a table of the file gives the rows of that table."""
    with nsys_insight.open(hostile) as trace:
        values = [row.value for row in trace.rows("FROM raw.META_DATA_CAPTURE")]
    assert len(values) > 10
    assert SECRET not in values


@pytest.mark.parametrize("kind", ["table", "View", "trigger"])
def test_it_is_a_view_whatever_the_schema_calls_it(sample, tmp_path, secret, kind):
    view = POLYGLOT.format(f"sqlite_scan('{secret}', 'people')")
    path = changed(
        sample, tmp_path / "odd.sqlite",
        "ALTER TABLE META_DATA_CAPTURE RENAME TO kept", f"CREATE VIEW META_DATA_CAPTURE AS {view}",
        f"UPDATE sqlite_master SET type = '{kind}' WHERE name = 'META_DATA_CAPTURE'",
    )  # fmt: skip
    with contextlib.suppress(InsightError), nsys_insight.open(path, use_cache=False) as trace:
        assert SECRET not in str(trace.rows("FROM raw.META_DATA_CAPTURE"))


def test_virtual_tables_triggers_and_generated_columns_are_left_out(sample, tmp_path):
    path = changed(
        sample, tmp_path / "odd.sqlite",
        "CREATE VIRTUAL TABLE GPU_METRICS USING fts4(timestamp, typeId, value)",
        "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN DELETE FROM StringIds; END",
        "CREATE TABLE odd (a INTEGER, b TEXT GENERATED ALWAYS AS (zeroblob(1000000000)))",
        "INSERT INTO odd (a) VALUES (7)",
        "CREATE TABLE two (a INTEGER PRIMARY KEY) WITHOUT ROWID",
    )  # fmt: skip
    with nsys_insight.open(path) as trace:
        assert trace.sql("SELECT count(*) AS n FROM kernels")["n"].item() == 500
        assert trace.rows("FROM raw.odd")[0] == (7,)
        assert trace.rows("SELECT count(*) AS n FROM gpu_metrics")[0].n == 0


@pytest.mark.parametrize(
    "view",
    [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS name, i AS value FROM n",
        "SELECT 'a' AS name, count(*) AS value FROM StringIds AS a, StringIds AS b, StringIds AS c, StringIds AS d",
        "SELECT a.value AS name, b.value AS value FROM StringIds AS a, StringIds AS b, StringIds AS c, StringIds AS d",
        "SELECT 'a' AS name, zeroblob(1000000000) AS value",
        "SELECT 'a' AS name, load_extension('/tmp/x.so') AS value",
        "SELECT name, 1 AS value FROM pragma_database_list",
        "SELECT a.name, b.name AS value FROM nowhere AS a, nowhere AS b",
    ],
)
def test_a_view_without_end_is_no_table(sample, tmp_path, view):
    path = changed(
        sample, tmp_path / "endless.sqlite", "DROP TABLE META_DATA_CAPTURE", f"CREATE VIEW META_DATA_CAPTURE AS {view}"
    )
    started = time.perf_counter()
    with contextlib.suppress(TraceError), nsys_insight.open(path) as trace:
        assert trace.sql("SELECT count(*) AS n FROM kernels")["n"].item() == 500
        assert trace.rows("FROM raw.META_DATA_CAPTURE") == []
    assert time.perf_counter() - started < 20


def test_plain_exports_are_read_in_place(sample):
    for name in ("churn", "decode_eager", "decode_fresh", "decode_graph_node", "decode_graph_whole"):
        assert tables_only.is_so(sample(name))


def test_a_journal_that_names_another_file_is_not_worked_in(sample, tmp_path):
    """SQLite removes the file that a journal names as the journal of several databases."""
    path = Path(shutil.copy(sample("churn"), tmp_path / "trace.sqlite"))
    precious = tmp_path / "precious"
    precious.write_bytes(b"\0" * 10)
    content, name, size = path.read_bytes(), str(precious).encode(), 4096
    four = [1, 0, len(content) // size, 512, size]  # a page, checksums from 0, how large file, sector and page are
    head = MAGIC + b"".join(number.to_bytes(4, "big") for number in four)
    page = (1).to_bytes(4, "big") + content[:size] + sum(content[size - 200 : 0 : -200]).to_bytes(4, "big")
    end = (2**30 // size + 1).to_bytes(4, "big") + name
    end += len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + MAGIC
    (tmp_path / "trace.sqlite-journal").write_bytes(head.ljust(512, b"\0") + page + end)
    with pytest.raises(TraceError, match="journal"), nsys_insight.open(path):
        pass
    assert precious.exists()
