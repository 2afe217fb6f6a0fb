"""The content of a file is data. Nothing in it is evaluated, so an untrusted trace reads no other file."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest
from command_line import PROCESS, run
from conversions import without_most_facts
from sweeps import sweep

import nsys_insight
from nsys_insight.errors import InsightError, QueryError, TraceError
from nsys_insight.ingest import extension, tables_only
from nsys_insight.sql.statements import split_statements

REPOSITORY = Path(__file__).parents[1]
SECRET = "hunter2"  # noqa: S105 - nobody's password
# SQLite ends a comment at the first */, but comments nest in DuckDB. So the text from UNION on is a comment in SQLite
# and a query in DuckDB.
POLYGLOT = "SELECT name, value FROM kept /* /* */ -- */ UNION ALL SELECT name::VARCHAR, value::VARCHAR FROM {}"

MAGIC = bytes.fromhex("d9d505f920a163d7")  # the first bytes of a journal


@pytest.fixture
def secret(tmp_path):
    """Give a private file of the user."""
    path = tmp_path / "private.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(f"CREATE TABLE people AS SELECT 'PROCESS_0:COMMAND' AS name, '{SECRET}' AS value")
    return path


def run_command(*command):
    """Run a command; return its exit code and its output."""
    process = run(*command, cwd=REPOSITORY)
    return process.returncode, process.stdout, process.stderr


def copy_and_edit(sample, path, *statements):
    """Copy a sample and run statements in it. `writable_schema` allows any text in the schema."""
    shutil.copyfile(sample("churn"), path)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            database.execute(statement)
    return path


@pytest.fixture
def hostile(sample, tmp_path, secret):
    """Give an export with a view over another file instead of a table."""
    view = POLYGLOT.format(f"sqlite_scan('{secret}', 'people')")
    return copy_and_edit(
        sample, tmp_path / "hostile.sqlite",
        "ALTER TABLE META_DATA_CAPTURE RENAME TO kept", f"CREATE VIEW META_DATA_CAPTURE AS {view}",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["info"],
        ["info", "--cache"],
        ["info", "--no-cache"],
        ["report"],
        ["sql", "-n", "0", "FROM raw.META_DATA_CAPTURE"],
        ["sql", "-n", "0", "FROM capture"],
    ],
    ids=" ".join,
)
def test_a_view_in_the_place_of_a_table_reads_no_other_file(hostile, command):
    name, *flags = command
    code, out, err = run_command(name, hostile, *flags)
    assert SECRET not in out + err
    assert code == 0
    assert "churn" in out, "the content of the file itself is printed"


def test_sqlite_evaluates_a_view_as_its_own_sql(hostile):
    """A view over a table of the file gives the rows of that table."""
    with nsys_insight.open(hostile) as trace:
        values = [row.value for row in trace.rows("FROM raw.META_DATA_CAPTURE")]
    assert len(values) > 10
    assert SECRET not in values


@pytest.mark.parametrize("kind", ["table", "View", "trigger"])
def test_a_view_is_detected_under_any_type_in_the_schema(sample, tmp_path, secret, kind):
    view = POLYGLOT.format(f"sqlite_scan('{secret}', 'people')")
    path = copy_and_edit(
        sample, tmp_path / "odd.sqlite",
        "ALTER TABLE META_DATA_CAPTURE RENAME TO kept", f"CREATE VIEW META_DATA_CAPTURE AS {view}",
        f"UPDATE sqlite_master SET type = '{kind}' WHERE name = 'META_DATA_CAPTURE'",
    )  # fmt: skip
    with contextlib.suppress(InsightError), nsys_insight.open(path, use_cache=False) as trace:
        assert SECRET not in str(trace.rows("FROM raw.META_DATA_CAPTURE"))


def test_virtual_tables_triggers_and_generated_columns_are_left_out(sample, tmp_path):
    path = copy_and_edit(
        sample, tmp_path / "odd.sqlite",
        "CREATE VIRTUAL TABLE GPU_METRICS USING fts4(timestamp, typeId, value)",
        "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN DELETE FROM StringIds; END",
        "CREATE TABLE odd (a INTEGER, b TEXT GENERATED ALWAYS AS (zeroblob(1000000000)))",
        "INSERT INTO odd (a) VALUES (7)",
        "CREATE TABLE two (a INTEGER PRIMARY KEY) WITHOUT ROWID",
    )  # fmt: skip
    with nsys_insight.open(path) as trace:
        assert trace.sql("SELECT count(*) AS n FROM kernels")["n"].item() == 500
        assert trace.sql("FROM raw.odd").rows() == [(7,)]
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
def test_an_endless_or_invalid_view_is_not_read(sample, tmp_path, view):
    path = copy_and_edit(
        sample, tmp_path / "endless.sqlite", "DROP TABLE META_DATA_CAPTURE", f"CREATE VIEW META_DATA_CAPTURE AS {view}"
    )
    start_s = time.perf_counter()
    with contextlib.suppress(TraceError), nsys_insight.open(path) as trace:
        assert trace.sql("SELECT count(*) AS n FROM kernels")["n"].item() == 500
        assert trace.rows("FROM raw.META_DATA_CAPTURE") == []
    assert time.perf_counter() - start_s < 20


def test_plain_exports_are_read_in_place(sample):
    for name in ("churn", "decode_eager", "decode_fresh", "decode_graph_node", "decode_graph_whole"):
        assert tables_only.has_only_tables(sample(name))


def test_a_journal_that_names_another_file_is_not_replayed(sample, tmp_path):
    """SQLite removes the file that a journal names as its super-journal."""
    path = Path(shutil.copy(sample("churn"), tmp_path / "trace.sqlite"))
    other_file = tmp_path / "precious"
    other_file.write_bytes(b"\0" * 10)
    content, name, size = path.read_bytes(), str(other_file).encode(), 4096
    header_fields = [1, 0, len(content) // size, 512, size]  # a page, checksums from 0, sizes of file, sector and page
    header = MAGIC + b"".join(number.to_bytes(4, "big") for number in header_fields)
    page = (1).to_bytes(4, "big") + content[:size] + sum(content[size - 200 : 0 : -200]).to_bytes(4, "big")
    trailer = (2**30 // size + 1).to_bytes(4, "big") + name
    trailer += len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + MAGIC
    (tmp_path / "trace.sqlite-journal").write_bytes(header.ljust(512, b"\0") + page + trailer)
    with pytest.raises(TraceError, match="journal"), nsys_insight.open(path):
        pass
    assert other_file.exists()


# DuckDB files ---------------------------------------------------------------------------------------------------------

# Sources that a view may read instead of being a table.
REPLACEMENTS = {
    "sqlite": "sqlite_scan('{here}/private.sqlite', 'people')",
    "csv": "read_csv('{here}/private.csv')",
    "text": "(SELECT 'a' AS name, content AS value FROM read_text('{here}/private.csv'))",
}


@pytest.fixture
def private_folder(secret, tmp_path):
    (tmp_path / "private.csv").write_text(f"name,value\na,{SECRET}\n")
    return tmp_path


@pytest.fixture(scope="module")
def shared_conversion(sample, tmp_path_factory):
    path = tmp_path_factory.mktemp("converted") / "trace.duckdb"
    with without_most_facts():
        code, _, err = run_command("convert", sample("churn"), "-o", path)
    assert code == 0, err
    return path


@pytest.fixture
def converted(shared_conversion, tmp_path):
    return Path(shutil.copy(shared_conversion, tmp_path / "trace.duckdb"))


def open_with_sqlite(path):
    """Open a DuckDB file for writing, with the extension that reads SQLite files."""
    connection = duckdb.connect(path, config={"allow_unsigned_extensions": True})
    connection.execute(f"LOAD '{extension.find_scanner()}'")
    return connection


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "source"),
    [
        *((["sql", "-n", "0", "FROM capture"], source) for source in REPLACEMENTS),
        *sweep([(["info"], "csv")]),
        (["sql", "-n0", "FROM raw.META_DATA_CAPTURE"], "sqlite"),
        *sweep([(["info"], "sqlite"), (["info"], "text")]),
        *sweep((["sql", "-n0", "FROM raw.META_DATA_CAPTURE"], source) for source in ("csv", "text")),
    ],
)
def test_a_view_in_a_duckdb_trace_reads_no_other_file(converted, private_folder, source, command):
    with open_with_sqlite(converted) as database:
        database.execute("DROP TABLE raw.META_DATA_CAPTURE")
        database.execute(
            f"CREATE VIEW raw.META_DATA_CAPTURE AS FROM {REPLACEMENTS[source].format(here=private_folder)}"
        )
    name, *flags = command
    _, out, err = run_command(name, converted, *flags)
    assert SECRET not in out + err
    assert name != "info" or "500" in out


@pytest.mark.slow
@pytest.mark.parametrize("source", ["sqlite", *sweep(["csv", "text"])])
def test_a_view_in_ncus_data_reads_no_other_file(sample, private_folder, source):
    """The data are found next to the trace without being named, and read with the SQLite extension loaded."""
    trace = Path(shutil.copy(sample("churn"), private_folder / "trace.sqlite"))
    store = private_folder / "trace.ncu.duckdb"
    code, _, err = run_command("ncu", "import", REPOSITORY / "tests/data/ncu/zoo_a.ncu.raw.csv", "-o", store)
    assert code == 0, err
    with open_with_sqlite(store) as database:
        columns = [
            name
            for (name,) in database.execute(
                "SELECT column_name FROM duckdb_columns() WHERE table_name = 'ncu_rules'"
            ).fetchall()
        ]
        database.execute("DROP TABLE ncu_rules")
        column_list = ", ".join(f"value AS {name}" if name != "launch" else "0 AS launch" for name in columns)
        database.execute(
            f"CREATE VIEW ncu_rules AS SELECT {column_list} FROM {REPLACEMENTS[source].format(here=private_folder)}"
        )
    queries = ("FROM ncu_rules", "FROM raw.ncu_rules", "FROM ncu.main.ncu_rules", "FROM ncu.ncu_rules")
    reports = (["headroom", trace], ["ncu", "report", store], ["ncu", "report", store, "--trace", trace])
    for command in (*(["sql", trace, query] for query in queries), *reports):
        code, out, err = run_command(*command)
        assert SECRET not in out + err
        assert code in (1, 3), "a file without its tables is not an ncu file"


def test_a_table_with_a_generated_column_is_not_read(converted):
    with duckdb.connect(converted) as database:
        database.execute("DROP TABLE raw.OSRT_API")
        database.execute("CREATE TABLE raw.OSRT_API (start BIGINT, nameId BIGINT GENERATED ALWAYS AS (start + 1))")
        database.execute("INSERT INTO raw.OSRT_API VALUES (1)")
    with nsys_insight.open(converted) as trace:
        assert trace.rows("SELECT count(*) AS n FROM os_calls")[0].n == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trace.main.spy", *sweep(["trace.spy", '"TRACE"."spy"', "(FROM trace.main.spy)"])])
def test_other_views_of_a_duckdb_trace_cannot_be_queried(converted, private_folder, sample, name):
    """With a SQLite trace open as well, such a view would reach any SQLite file."""
    with open_with_sqlite(converted) as database:
        database.execute(f"CREATE VIEW spy AS FROM {REPLACEMENTS['sqlite'].format(here=private_folder)}")
    with nsys_insight.open(converted) as trace, pytest.raises(QueryError):
        trace.query(f"FROM {name}")
    name = name.replace("trace", "trace_0").replace("TRACE", "trace_0")
    with nsys_insight.open([converted, sample("churn")]) as trace:
        assert "sqlite_scanner" not in str(
            trace.rows("SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name LIKE 'sqlite%'")
        )
        for query in (
            f"FROM {name}",
            f"DESCRIBE {name}",
            f"SUMMARIZE {name}",
            f"SELECT (SELECT value FROM {name} LIMIT 1)",
        ):
            with pytest.raises(QueryError):
                print(trace.query(query).rows())
        with pytest.raises(QueryError):
            trace.define(split_statements(f"CREATE TEMP VIEW mine AS FROM {name}")[0])


@pytest.mark.slow
def test_queries_reach_only_the_tables_of_a_folder(sample, private_folder):
    folder = private_folder / "folder"
    assert run_command("convert", sample("churn"), "-o", folder)[0] == 0
    shutil.copy(private_folder / "private.csv", folder / "raw" / "private.csv")
    duckdb.sql(f"COPY (SELECT '{SECRET}' AS x) TO '{folder}/raw/deep.parquet.bak' (FORMAT parquet)")
    with nsys_insight.open(folder) as trace:
        assert trace.rows("SELECT count(*) AS n FROM kernels")[0].n == 500
        for name in ("raw/private.csv", "raw/deep.parquet.bak", "../private.csv", "raw/../../private.csv"):
            with pytest.raises(QueryError):
                trace.query(f"FROM '{folder}/{name}'")


@pytest.mark.slow
def test_the_name_of_a_folder_may_look_like_a_pattern(sample, tmp_path):
    folder = tmp_path / "run[1]*"
    assert run_command("convert", sample("churn"), "-o", folder)[0] == 0
    with nsys_insight.open(folder) as trace:
        assert trace.rows("SELECT count(*) AS n FROM kernels")[0].n == 500


# Commands and private data of a trace ---------------------------------------------------------------------------------


@pytest.fixture
def command_trace(sample, tmp_path):
    """Give a trace that names a program, and a stand-in for ncu."""
    path = copy_and_edit(
        sample, tmp_path / "commanding.sqlite",
        "UPDATE META_DATA_CAPTURE SET value = '/bin/touch' WHERE name = 'PROCESS_0:COMMAND'",
        f"UPDATE META_DATA_CAPTURE SET value = '{tmp_path / 'pwned'}' WHERE name = 'PROCESS_0:ARGUMENT_0'",
    )  # fmt: skip
    ncu = tmp_path / "ncu"
    ncu.write_text('#!/bin/sh\nif [ "$1" = --version ]; then echo "Version 2025.3.0.0"; exit; fi\n'
                   'while [ "$1" != /bin/touch ]; do shift; done\n"$@"\n')  # fmt: skip
    ncu.chmod(0o755)
    return path, ncu


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--trust-trace"]])
def test_the_program_that_a_trace_names_does_not_run(command_trace, flags, monkeypatch):
    path, ncu = command_trace
    monkeypatch.setenv("NSYS_INSIGHT_NCU", str(ncu))
    code, out, err = run_command("ncu", "plan", path, "--run", *flags)
    assert not (path.parent / "pwned").exists()
    assert code == 2
    assert "/bin/touch" in out, "the command is shown"
    assert f"-- /bin/touch {path.parent / 'pwned'}" in err, "and how to run it"
    run_command("ncu", "plan", path, "--run", "--", "/bin/touch", path.parent / "pwned")
    assert (path.parent / "pwned").exists(), "the command of the user runs"


@pytest.mark.slow
@pytest.mark.parametrize("to", ["trace.duckdb", "folder"])
def test_a_conversion_contains_no_environment(sample, tmp_path, to):
    trace = copy_and_edit(
        sample, tmp_path / "private.sqlite",
        f"INSERT INTO StringIds VALUES (999999, 'AWS_SECRET={SECRET}')",
        f"INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE', 'TOKEN={SECRET}')",
        f"INSERT INTO META_DATA_CAPTURE VALUES ('DEVICE_DISPLAY_NAME', '{SECRET}')",
        f"INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:USER_NAME', '{SECRET}')",
    )  # fmt: skip
    assert run_command("convert", trace, "-o", tmp_path / to)[0] == 0
    with nsys_insight.open(trace) as before, nsys_insight.open(tmp_path / to) as after:
        for view in ("kernels", "api_calls", "nvtx_ranges", "os_calls", "capture", "profiler_overheads"):
            assert sorted(map(str, before.rows(f"FROM {view}"))) == sorted(map(str, after.rows(f"FROM {view}")))
        for table in after.rows("SELECT DISTINCT table_name FROM duckdb_columns() WHERE schema_name = 'raw'"):
            assert SECRET not in str(after.rows(f'FROM raw."{table.table_name}"'))
        assert SECRET not in str(after.rows("FROM raw.StringIds")) + str(after.rows("FROM raw.META_DATA_CAPTURE"))


# Shared machines ------------------------------------------------------------------------------------------------------

SPILLING = (
    "SELECT a.name, hash(a.start_ns, b.start_ns, c.start_ns) AS h FROM kernels a, kernels b, kernels c ORDER BY h"
)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="rights of files")
def test_spill_files_are_private_and_removed_by_the_next_run(sample, tmp_path):
    """This includes a process that is killed, and a planted link with the name of its folder."""
    elsewhere = tmp_path / "elsewhere"
    temporary = tmp_path / "tmp"
    elsewhere.mkdir()
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [*PROCESS, "sql", str(sample("churn")), SPILLING, "--memory", "100MB"]
    process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stderr=subprocess.DEVNULL)
    (temporary / f"nsys-insight-{process.pid}").symlink_to(elsewhere)
    (temporary / f"nsys-insight-{process.pid}-1").symlink_to(elsewhere)
    deadline = time.monotonic() + 60
    while (
        not (spill_files := [path for path in temporary.glob("*/*/*") if path.is_file()])
        and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    assert spill_files, "it spills"
    assert [path.stat().st_mode & 0o77 for path in temporary.iterdir() if not path.is_symlink()] == [0]
    process.kill()
    process.wait()
    assert any(path.is_dir() and not path.is_symlink() for path in temporary.iterdir()), "it was killed"
    subprocess.run(
        [*PROCESS, "top", str(sample("churn"))], cwd=REPOSITORY, env=environment, check=True, capture_output=True
    )
    assert all(path.is_symlink() for path in temporary.iterdir())
    assert list(elsewhere.iterdir()) == []


def test_a_hint_can_be_pasted_for_any_file_name(tmp_path):
    path = tmp_path / "$(touch pwned);.gz"
    path.write_bytes(b"\x1f\x8b" + bytes(100))
    _, _, err = run_command("top", path)
    assert "gunzip --keep '$(touch pwned);.gz'" in err
