"""Invalid rows: a bad row is left out and reported, and everything else is answered."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import planted
import pytest
from command_line import run
from opening import only_rules
from sweeps import sweep
from synthetic import Trace

import nsys_insight

KERNEL, CALL = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
INT64_MAX, INT64_MIN = (1 << 63) - 1, -(1 << 63)


def loop(path, steps=8, nvtx=""):
    return planted.sync_bound(steps=steps, nvtx=nvtx).write(path)


def change(path, sql, *values):
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(sql, values)


def ask(path, report="top", **params):
    """Return the rows of a report, and the notes on the trace."""
    messages = []
    with nsys_insight.open(path, note=messages.append) as trace:
        return trace.answer(report, **params).dicts(), messages


def ask_all(path, *reports):
    """Run several reports in one session."""
    with nsys_insight.open(path) as trace:
        return {report: trace.answer(report).dicts() for report in reports}


@pytest.fixture
def path(tmp_path):
    return loop(tmp_path / "trace.sqlite")


class TestTimes:
    @pytest.mark.slow
    @pytest.mark.parametrize("start", [INT64_MAX, INT64_MIN, 1 << 60, None, "abc", 1e300], ids=str)
    def test_a_row_with_no_possible_start_is_left_out_and_counted(self, path, start):
        path_without_row = loop(path.with_name("without.sqlite"))
        change(path_without_row, f"DELETE FROM {KERNEL} WHERE rowid = 5")
        # nsys declares NOT NULL; a damaged file may have NULL.
        change(path, f"CREATE TABLE other AS SELECT * FROM {KERNEL}")
        change(path, f"DROP TABLE {KERNEL}")
        change(path, f"ALTER TABLE other RENAME TO {KERNEL}")
        change(path, f"UPDATE {KERNEL} SET start = ? WHERE rowid = 5", start)
        rows, messages = ask(path)
        assert rows == ask(path_without_row)[0]
        assert messages == [
            (f"1 of {sum(row['calls'] for row in rows) + 1} kernels are left out: their times are impossible")
        ]

    def test_kernels_without_an_end_are_counted(self, path):
        total = sum(row["calls"] for row in ask(path)[0])
        change(path, f"CREATE TABLE other AS SELECT * FROM {KERNEL}")
        change(path, f"DROP TABLE {KERNEL}")
        change(path, f"ALTER TABLE other RENAME TO {KERNEL}")
        change(path, f'UPDATE {KERNEL} SET "end" = NULL WHERE rowid IN (5, 6)')
        rows, messages = ask(path)
        assert messages == [f"2 of {total} kernels have no end and count as 0 ns"]
        assert sum(row["calls"] for row in rows) == total

    @pytest.mark.slow
    def test_every_report_answers_with_the_valid_rows(self, path):
        change(path, f'UPDATE {KERNEL} SET start = ?, "end" = ? WHERE rowid = 5', INT64_MIN, INT64_MAX)
        change(path, f'UPDATE {CALL} SET "end" = ? WHERE rowid = 7', INT64_MAX)
        with nsys_insight.open(path) as trace:
            for report in (
                "launches",
                "gaps",
                "idle",
                "steps",
                "per-token",
                "classify",
                "syncs",
                "api",
                "nvtx",
                "host",
            ):
                trace.answer(report)
            assert "1 of" in trace.describe_trace()["left_out"]

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "scope",
        [{"device": 0}, {"from_ns": 1}, {"nvtx": "step"}, {"steady": True}],
        ids=lambda scope: next(iter(scope)),
    )
    def test_a_scope_can_be_queried_in_spite_of_a_bad_row(self, path, scope):
        path, path_without_row = (loop(path.with_name(f"{name}.sqlite"), nvtx="step") for name in ("bad", "without"))
        change(path_without_row, f"DELETE FROM {KERNEL} WHERE rowid = 5")
        change(path, f'UPDATE {KERNEL} SET "end" = ? WHERE rowid = 5', INT64_MAX)
        messages = []
        with (
            nsys_insight.open(path, note=messages.append).scope(**scope) as part,
            nsys_insight.open(path_without_row).scope(**scope) as good,
        ):
            assert part.answer("top").rows() == good.answer("top").rows() != []
        assert [text.partition(" of ")[0] for text in messages] == ["1"]

    def test_an_end_before_the_start_counts_as_no_time_and_is_reported(self, path):
        change(path, f'UPDATE {KERNEL} SET "end" = start - 5 WHERE rowid = 5')
        _, messages = ask(path)
        assert len(messages) == 1
        assert "end before they start and count as 0 ns" in messages[0]

    def test_epoch_times_are_valid(self, path):
        earlier = ask(path)[0]
        for table in (KERNEL, CALL, "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"):
            change(path, f'UPDATE {table} SET start = start + 1767323045000000000, "end" = "end" + 1767323045000000000')
        rows, messages = ask(path)
        assert rows == earlier
        # They are those that `nsys export --ts-normalize` writes.
        assert [message.partition(" by ")[0] for message in messages] == ["all times are shifted"]

    @pytest.mark.parametrize("kind", ["TEXT", *sweep(["REAL", "BLOB", "DATE", ""])])
    def test_a_column_may_have_another_type(self, path, kind):
        """The answers are the same in place and from a copy."""
        earlier = ask(path)[0]
        with closing(sqlite3.connect(path)) as database, database:
            for name in ("start", "gridX"):
                database.execute(f"ALTER TABLE {KERNEL} ADD COLUMN other {kind}")
                database.execute(f"UPDATE {KERNEL} SET other = {name}")
                database.execute(f"ALTER TABLE {KERNEL} DROP COLUMN {name}")
                database.execute(f"ALTER TABLE {KERNEL} RENAME COLUMN other TO {name}")
        for use_cache in (False, True):
            messages = []
            with nsys_insight.open(path, note=messages.append, use_cache=use_cache) as trace:
                assert trace.answer("top").dicts() == earlier
                assert trace.sql("SELECT count(grid_x) AS n FROM kernels")["n"].item() == sum(
                    row["calls"] for row in earlier
                )
            assert not messages


class TestNumbers:
    def test_an_impossible_size_is_unknown(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for size in (1000, INT64_MAX, INT64_MIN, -1):
            host.copy("H2D", size)
        rows, messages = ask(trace.write(tmp_path / "t.sqlite"), "copies")
        assert sum(row["size_bytes"] for row in rows) == 1000
        assert messages == ["the size of 3 of 4 copies is impossible and counts as unknown"]

    @pytest.mark.slow
    @pytest.mark.parametrize("number", [-1, INT64_MIN, INT64_MAX, 1 << 40])
    def test_an_impossible_correlation_id_joins_nothing(self, path, number):
        change(path, f"UPDATE {KERNEL} SET correlationId = ? WHERE rowid = 5", number)
        change(path, f"UPDATE {CALL} SET correlationId = ? WHERE rowid = 9", number)
        ask_all(path, "idle", "gaps", "launches", "classify", "graph-candidates")

    @pytest.mark.slow
    @pytest.mark.parametrize("number", [-1, INT64_MIN, INT64_MAX])
    def test_an_impossible_shape_breaks_no_report(self, path, number):
        """Set each column in another kernel; no report fails."""
        columns = ("gridX", "blockY", "deviceId", "registersPerThread", "dynamicSharedMemory")
        for row, column in enumerate(columns, 5):
            change(path, f"UPDATE {KERNEL} SET {column} = ? WHERE rowid = {row}", number)
        ask_all(path, "top", "launch-configs", "occupancy", "idle", "roofline")


class TestRepeats:
    @pytest.mark.slow
    def test_a_repeated_call_counts_once_and_is_reported(self, path):
        reports = ("idle", "launches", "classify", "api")
        earlier = ask_all(path, *reports)
        change(path, f"INSERT INTO {CALL} SELECT * FROM {CALL}")
        messages = []
        with nsys_insight.open(path, note=messages.append) as trace:
            for report in reports:
                assert trace.answer(report).dicts() == earlier[report], report
        assert len(messages) == 1
        assert "are in the trace twice and are counted once" in messages[0]

    @pytest.mark.slow
    def test_reports_answer_if_calls_share_correlation_ids(self, path):
        change(path, f"UPDATE {CALL} SET correlationId = 3 WHERE rowid % 3 = 0")
        ask_all(path, "idle", "gaps", "launches", "classify", "graph-candidates", "host", "syncs", "steps")

    @pytest.mark.slow
    def test_reports_answer_if_shared_ids_were_not_checked(self, path, monkeypatch):
        monkeypatch.setattr("nsys_insight.ingest.raw._FIRST_CALLS", 0)
        change(path, f"UPDATE {CALL} SET correlationId = 3 WHERE rowid % 3 = 0")
        ask_all(path, "idle", "gaps", "launches", "classify", "graph-candidates")

    def test_shares_add_up_to_the_wall_time(self, path):
        change(path, f"INSERT INTO {CALL} SELECT * FROM {CALL}")
        change(path, f"INSERT INTO {CALL} SELECT * FROM {CALL} LIMIT 7")
        assert sum(row["wall_pct"] for row in ask(path, "idle")[0]) == pytest.approx(100, abs=0.1)


class TestOverlaps:
    @pytest.mark.slow
    def test_kernels_that_overlap_on_a_stream_still_have_steps(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for step in range(40):
            start = step * 10_000
            host.kernel("a", start=start, runs=6_000).kernel("b", start=start + 1_000, runs=12_000).kernel(
                "c", start=start + 2_000, runs=20_000
            )
        ask(trace.write(tmp_path / "t.sqlite"), "steps")


class TestMessages:
    def test_no_message_shows_our_own_sql(self, path):
        from nsys_insight.errors import QueryError
        from nsys_insight.packs import library

        pack = library.get_pack("top")
        broken = type(pack)(**{**vars(pack), "sql": "SELECT 'x'::BIGINT AS name FROM kernels"})
        with nsys_insight.open(path) as trace, pytest.raises(QueryError) as raised:
            trace.answer(broken)
        assert "LINE" not in raised.value.message
        assert "SELECT" not in raised.value.message

    def test_an_error_in_the_users_sql_names_the_place(self, path):
        from nsys_insight.errors import QueryError

        with nsys_insight.open(path) as trace, pytest.raises(QueryError) as raised:
            trace.query("SELECT no_such FROM kernels")
        assert "no_such" in raised.value.message

    def test_the_users_own_error_is_reported_after_rows_are_checked(self, path):
        from nsys_insight.errors import QueryError

        with nsys_insight.open(path) as trace, pytest.raises(QueryError, match="abc"):
            trace.query("SELECT 'abc'::BIGINT")


def ask_sql(path, sql):
    with nsys_insight.open(path) as trace:
        return trace.query(sql).dicts()


class TestWhereItIsReported:
    """Every kind of output reports the rows that are left out."""

    @pytest.fixture
    def bad(self, path):
        change(path, f"UPDATE {KERNEL} SET start = ? WHERE rowid = 5", INT64_MAX)
        return path

    def test_json_has_it_twice(self, bad, tmp_path):
        from nsys_insight.render import write

        with nsys_insight.open(bad) as trace:
            write(trace.answer("top"), tmp_path / "x.json", "json")
        answer = json.loads((tmp_path / "x.json").read_text())
        assert [note for note in answer["notes"] if "kernels are left out: their times are impossible" in note]
        assert "1 of" in answer["trace"]["left_out"]

    def test_markdown_has_it_below_the_table(self, bad, tmp_path):
        from nsys_insight.render import write

        with nsys_insight.open(bad) as trace:
            write(trace.answer("top"), tmp_path / "x.md", "markdown")
        assert "kernels are left out: their times are impossible" in (tmp_path / "x.md").read_text()

    @staticmethod
    def pages(path):
        """Return the page of each kind, from content that is gathered once."""
        from nsys_insight.packs.step_options import AUTO
        from nsys_insight.page import content, html, markdown

        with nsys_insight.open(path) as trace:
            content_data = content.gather(trace, AUTO)
            return [
                html.render_page(content_data, html.Drawings()),
                markdown.write_report(content_data),
            ]

    @pytest.mark.slow
    def test_the_page_shows_it_once_at_the_top(self, bad, path):
        for text in self.pages(bad):
            assert text.count("kernels are left out: their times are impossible") == 1
        for text in self.pages(loop(path.with_name("good.sqlite"))):
            assert "times are impossible" not in text

    @pytest.mark.parametrize("fmt", ["table", *sweep(["markdown", "csv", "json", "jsonl"]), "parquet"])
    def test_the_command_reports_it_once_on_stderr(self, bad, tmp_path, fmt):
        result = run("top", bad, "--format", fmt, "-o", tmp_path / "out")
        assert result.returncode == 0, result.stderr
        assert result.stderr.count("kernels are left out: their times are impossible") == 1


@pytest.fixture(scope="module")
def late(tmp_path_factory):
    trace = Trace()
    host = trace.thread()
    for _ in range(500):
        host.launch("k()", api=5, runs=10)
    path = trace.write(tmp_path_factory.mktemp("late") / "late.sqlite")
    for _ in range(8):
        change(path, f"INSERT INTO {KERNEL} SELECT * FROM {KERNEL}")
    change(path, f'UPDATE {KERNEL} SET "end" = ? WHERE rowid = 127999', INT64_MAX)
    return path


class TestABadRowThatIsFoundLate:
    """A streaming answer has written rows when it finds an invalid one."""

    SQL = "SELECT start_ns, end_ns FROM kernels"

    @pytest.mark.slow
    @pytest.mark.parametrize("fmt", ["csv", "jsonl", "parquet"])
    def test_a_file_is_written_again(self, late, tmp_path, fmt):
        result = run("sql", late, self.SQL, "-o", tmp_path / f"out.{fmt}", "--threads", 1)
        assert result.returncode == 0, result.stderr
        assert "1 of 128,000 kernels are left out" in result.stderr
        if fmt != "parquet":
            assert len((tmp_path / f"out.{fmt}").read_text().splitlines()) == 127_999 + (fmt == "csv")

    @pytest.mark.slow
    def test_stdout_ends_with_one_sentence(self, late):
        result = run("sql", late, self.SQL, "--format", "csv", "--threads", 1)
        assert result.returncode == 1
        assert "error: a row could not be read after others had been written" in result.stderr
        assert "hint: write to a file, which is restarted without it: -o answer.csv" in result.stderr
        assert "Traceback" not in result.stderr


class TestIds:
    def test_a_repeated_id_multiplies_no_rows(self, path):
        """StringIds repeats each id twice: at first, 8 kernels were 64."""
        counts = "SELECT (SELECT count(*) FROM kernels), (SELECT count(*) FROM api_calls), (SELECT count(*) FROM gpus)"
        with nsys_insight.open(path) as trace:
            expected = trace.sql(counts).rows()
        for table in ("StringIds", "TARGET_INFO_GPU", "PROCESSES"):
            with closing(sqlite3.connect(path)) as database, database:
                types = {name: kind for _, name, kind, *_ in database.execute(f"PRAGMA table_info({table})")}
            repeat = ", ".join(f"{name} || 'x'" if kind == "TEXT" else name for name, kind in types.items())
            change(path, f"CREATE TABLE twice AS SELECT * FROM {table} UNION ALL SELECT {repeat} FROM {table}")
            change(path, f"DROP TABLE {table}")
            change(path, f"ALTER TABLE twice RENAME TO {table}")
        messages = []
        with nsys_insight.open(path, note=messages.append) as trace:
            assert trace.sql(counts).rows() == expected
            trace.sql("FROM processes")
        (message,) = messages
        assert re.fullmatch(
            r"(\d+) of \d+ names, 1 of 2 rows of PROCESSES and 1 of 2 rows of TARGET_INFO_GPU are left out: "
            "their ids are taken",
            message,
        )

    @pytest.mark.parametrize(
        ("gpu", "command"),
        [
            (1 << 31, "idle"),
            *sweep([(1 << 62, "diagnose"), (-1, "diagnose"), (1 << 31, "convert"), (1 << 62, "convert")]),
        ],
    )
    def test_an_impossible_gpu_is_unknown(self, path, gpu, command, tmp_path):
        change(path, "UPDATE TARGET_INFO_CUDA_DEVICE SET gpuId = ?", gpu)
        process = run(command, path, *(["-o", tmp_path / "trace.duckdb"] if command == "convert" else []))
        assert (process.returncode, "Traceback" in process.stderr) == (0, False), process.stderr
        if gpu > 0:
            assert "the GPU number of 1 of 1 rows of TARGET_INFO_CUDA_DEVICE is impossible" in process.stderr

    def test_a_name_that_the_trace_does_not_have(self, path):
        change(path, f"UPDATE {CALL} SET nameId = 999999 WHERE rowid % 3 = 0")
        process = run("api", path)
        assert (process.returncode, "(no name)" in process.stdout) == (0, True), process.stderr

    @pytest.mark.slow
    def test_a_page_with_a_name_that_the_trace_does_not_have(self, path, tmp_path):
        change(path, f"UPDATE {CALL} SET nameId = 999999 WHERE rowid % 3 = 0")
        with only_rules():
            process = run("report", path, "-o", tmp_path / "page.html")
        assert (process.returncode, "Traceback" in process.stderr) == (0, False)
        assert "(no name)" in (tmp_path / "page.html").read_text(encoding="utf-8")
