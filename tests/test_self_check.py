"""The check of `info`: a trace against its file, as SQLite reads it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

import planted
import pytest
from command_line import run
from opening import open_trace, planted_path
from real_traces import REAL, SAMPLES
from schemas import get_validator, validate
from sweeps import sweep

import nsys_insight
from nsys_insight.ingest.files import File, Kind
from nsys_insight.session import self_check

NVTX = "NVTX_EVENTS"
KERNEL, CALL, COPY = (f"CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "RUNTIME", "MEMCPY"))


def change(path, sql, *values):
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(sql, values)


def read(path, sql):
    with closing(sqlite3.connect(path)) as database:
        return database.execute(sql).fetchone()


def check(path):
    with nsys_insight.open(path, use_cache=False) as trace:
        (file_check,) = trace.check_files()
        return file_check


@pytest.fixture
def path(tmp_path):
    return planted.copy_bound(steps=4).write(tmp_path / "trace.sqlite")


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_real_traces_are_equal_to_their_files(path):
    with open_trace(path) as trace:
        (file_check,) = trace.check_files()
    assert file_check.status == "equal", file_check.text
    assert file_check.text.startswith("Equal to the file, as SQLite adds it up: ")
    for table in file_check.tables:
        test = {"NVTX_EVENTS": "eventType IN (59, 60)", CALL: "eventClass <> 67"}.get(table.table, "true")
        rows = read(path, f'SELECT count(*), sum("end" - start) FROM {table.table} WHERE {test}')
        assert (table.view.rows, table.view.time_ns) == rows
        assert not table.remarks


@pytest.mark.parametrize("name", ["two processes", "graphs", "two streams"])
def test_planted_traces_are_equal_to_their_files(name):
    assert check(planted_path(name)).status == "equal"


def test_negative_times_are_equal(path):
    for table in (KERNEL, CALL, COPY):
        change(path, f'UPDATE {table} SET start = start - 1000000000, "end" = "end" - 1000000000')
    assert check(path).status == "equal"


def test_rows_that_do_not_count_are_named(path):
    (kernels,) = read(path, f"SELECT count(*) FROM {KERNEL}")
    (copies,) = read(path, f"SELECT count(*) FROM {COPY}")
    change(path, f"UPDATE {KERNEL} SET start = ? WHERE rowid IN (2, 5)", 1 << 62)
    change(path, f'UPDATE {KERNEL} SET "end" = start - 7 WHERE rowid = 6')
    change(path, f"UPDATE {COPY} SET bytes = ? WHERE rowid = 3", 1 << 50)
    change(path, f"INSERT INTO {CALL} SELECT * FROM {CALL} WHERE rowid = 4")
    file_check = check(path)
    assert file_check.status == "equal"
    assert f": {kernels - 2} of {kernels} kernels (" in file_check.text
    assert file_check.text.partition("; ")[2] == (
        f"2 of {kernels} kernels are left out: their times are impossible; "
        f"1 of {kernels} kernels end before they start and count as 0 ns; "
        f"the size of 1 of {copies} copies is impossible and counts as unknown; "
        "1 API calls are in the file twice and are counted once"
    )
    (sums,) = (table for table in file_check.tables if table.table == KERNEL)
    total = read(path, f'SELECT sum("end" - start) FROM {KERNEL} WHERE rowid NOT IN (2, 5, 6)')
    assert (sums.view.rows, sums.view.time_ns, sums.file_rows) == (kernels - 2, *total, kernels)


@pytest.mark.parametrize("cell", ["abc", *sweep(["", b"\0\1", 1e300, 1.5, None])], ids=repr)
def test_cells_that_are_no_number(path, cell):
    change(path, f"CREATE TABLE other AS SELECT * FROM {KERNEL}")  # without NOT NULL
    change(path, f"DROP TABLE {KERNEL}")
    change(path, f"ALTER TABLE other RENAME TO {KERNEL}")
    change(path, f"UPDATE {KERNEL} SET start = ? WHERE rowid = 2", cell)
    file_check = check(path)
    assert file_check.status == "equal", file_check.text
    assert "1 of " in file_check.text


@pytest.mark.parametrize(
    ("table", "column"),
    [(KERNEL, "end"), (KERNEL, "start"), (COPY, "bytes"), (CALL, "eventClass"), (NVTX, "eventType")],
)
def test_a_column_that_was_renamed(path, table, column):
    if table == NVTX:
        planted.sync_bound(steps=2, nvtx="step").write(path)
    change(path, f'ALTER TABLE {table} RENAME COLUMN "{column}" TO other')
    file_check = check(path)
    assert file_check.status == "equal", file_check.text
    (sums,) = (entry for entry in file_check.tables if entry.table == table)
    assert sums.view.rows == (0 if column == "eventType" else read(path, f"SELECT count(*) FROM {table}")[0])
    assert (sums.view.time_ns is None) == (column in ("start", "end", "eventType"))
    assert (sums.view.size_bytes is None) == (table != COPY or column == "bytes")
    assert sums.remarks == ((f"{table} has no column {column}",) if column != "eventClass" else ())


class TestDifference:
    @pytest.fixture(params=["fewer", "longer", "larger"])
    def fault(self, request, monkeypatch):
        """Let the model lose a row, or add up times or sizes wrongly."""
        wrong_sums = {
            "fewer": lambda sums: sums._replace(rows=sums.rows - 1),
            "longer": lambda sums: sums._replace(time_ns=sums.time_ns + 1),
            "larger": lambda sums: sums._replace(size_bytes=sums.size_bytes + 1),
        }[request.param]
        read_sums = self_check.collect_sums

        def read_wrong_sums(rows):
            all_sums = read_sums(rows)
            for sums in all_sums.values():
                sums[COPY] = wrong_sums(sums[COPY])
            return all_sums

        monkeypatch.setattr(self_check, "collect_sums", read_wrong_sums)
        return {"fewer": "rows", "longer": "ns", "larger": "bytes"}[request.param]

    def test_it_is_an_error_that_names_table_and_numbers(self, path, fault):
        process = run("info", path)
        column = {"rows": "count(*)", "ns": 'sum("end" - start)', "bytes": "sum(bytes)"}[fault]
        (number,) = read(path, f"SELECT {column} FROM {COPY}")
        text = f"{COPY} has {number:,} {fault} in the file and {number + (-1 if fault == 'rows' else 1):,} here"
        assert process.returncode == 1
        assert f"Different from the file: {text}" in process.stdout.replace("\n", " ")
        assert f"error: these answers are not what the file holds: trace: {text}" in process.stderr
        assert "hint: nsys-insight info --check --no-cache" in process.stderr


def test_a_join_that_multiplies_rows_is_found(sample, tmp_path, monkeypatch):
    """The sums come from the views themselves, with their joins."""
    path = shutil.copy(sample("churn"), tmp_path / "trace.sqlite")
    monkeypatch.setattr(self_check, "_VIEWS", tuple(
        view._replace(name="(FROM kernels UNION ALL FROM kernels LIMIT 501)") if view.table == KERNEL else view
        for view in self_check._VIEWS
    ))  # fmt: skip
    assert check(path).text.startswith(f"Different from the file: {KERNEL} has 500 rows in the file and 501 here")


def test_rows_that_the_views_lack_are_found(sample, tmp_path):
    """The sums of one file, and another file that has a kernel more."""
    part = shutil.copy(sample("churn"), tmp_path / "part.sqlite")
    change(part, f"DELETE FROM {KERNEL} WHERE rowid = 7")
    file = File(sample("churn"), Kind.SQLITE, "part")
    with nsys_insight.open(part, use_cache=False) as trace:
        (sums,) = self_check.collect_sums(trace.query(self_check.write_sum_query(["part"])).dicts()).values()
    file_check = self_check.check_file(file.path, file, sums, (-(1 << 60), 1 << 60))
    assert file_check.status == "different"
    assert file_check.text.startswith(
        f"Different from the file: {KERNEL} has 500 rows in the file and 499 here; {KERNEL}"
    )


class TestCommand:
    def test_every_format_for_people_and_json_have_it(self, sample):
        wide = {"COLUMNS": "400"}
        texts = {
            fmt: run("info", sample("churn"), "--format", fmt, env=wide).stdout for fmt in ("table", "markdown", "json")
        }
        sentence = "Equal to the file, as SQLite adds it up: 500 kernels (613 µs), 80 copies (10.1 MiB, 365 µs), "
        assert sentence in texts["table"]
        assert sentence in texts["markdown"]
        validate(json.loads(texts["json"]), "info", "answer")
        assert not get_validator("info").is_valid(json.loads(texts["json"]) | {"summary": {"file_checks": [{}]}})
        ((file_check),) = json.loads(texts["json"])["summary"]["file_checks"]
        assert file_check["status"] == "equal"
        (time_ns,) = read(sample("churn"), f'SELECT sum("end" - start) FROM {KERNEL}')
        sums = {"rows": 500, "time_ns": time_ns, "size_bytes": None}
        kernels = {"table": KERNEL, "view": sums, "file": sums, "file_rows": 500, "remarks": []}
        assert file_check["tables"][0] == kernels

    def test_a_big_file_is_compared_on_request(self, sample, monkeypatch):
        tables = (
            KERNEL,
            CALL,
            COPY,
            "CUPTI_ACTIVITY_KIND_MEMSET",
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            "NVTX_EVENTS",
        )
        rows = sum(read(sample("churn"), f"SELECT count(*) FROM {table}")[0] for table in tables[:5])
        monkeypatch.setattr(self_check, "MAX_ROWS", rows)
        assert "Equal to the file" in run("info", sample("churn")).stdout
        monkeypatch.setattr(self_check, "MAX_ROWS", rows - 1)
        assert (
            "Not checked: --check compares rows and sums with the file (about 1 s)"
            in run("info", sample("churn")).stdout
        )
        assert "Equal to the file" in run("info", sample("churn"), "--check").stdout

    @pytest.mark.slow
    def test_several_traces_have_a_line_each(self):
        out = run("info", *SAMPLES[:2], "--format", "markdown").stdout
        assert all(f"- {path.stem}: Equal to the file".replace("_", r"\_") in out for path in SAMPLES[:2])

    def test_a_scope_is_not_compared(self, sample):
        assert "the file" not in run("info", sample("churn"), "--device", "0").stdout
        process = run("info", sample("churn"), "--device", "0", "--check")
        assert process.returncode == 2
        assert "hint: omit the scope, or --check" in process.stderr

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["duckdb", "parquet"])
    def test_a_converted_trace_has_nothing_to_compare_with(self, sample, tmp_path, kind):
        converted = tmp_path / f"trace.{kind}"
        assert run("convert", sample("churn"), "-o", converted).returncode == 0
        process = run("info", converted, "--check")
        assert process.returncode == 0
        assert process.stdout.endswith("\nNot compared: there is no SQLite export to compare with\n")

    def test_other_commands_do_not_compare(self, sample, monkeypatch):
        monkeypatch.setattr(self_check, "check_file", None)
        assert run("top", sample("churn")).returncode == 0
