"""Rows that cannot be true: one bad row is one bad row. It is left out and said, and everything else answers."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import planted
import pytest
from command_line import run
from sweeps import sweep
from synthetic import Trace

import nsys_insight

KERNEL, CALL = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
MOST, LEAST = (1 << 63) - 1, -(1 << 63)


def loop(path, steps=8, nvtx=""):
    return planted.sync_bound(steps=steps, nvtx=nvtx).write(path)


def change(path, sql, *values):
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(sql, values)


def ask(path, report="top", **params):
    """The rows of a report, and what is said of the trace."""
    said = []
    with nsys_insight.open(path, note=said.append) as trace:
        return trace.answer(report, **params).dicts(), said


def ask_all(path, *reports):
    """Ask several reports of one session."""
    with nsys_insight.open(path) as trace:
        return {report: trace.answer(report).dicts() for report in reports}


@pytest.fixture
def path(tmp_path):
    return loop(tmp_path / "trace.sqlite")


class TestTimes:
    @pytest.mark.slow
    @pytest.mark.parametrize("start", [MOST, LEAST, 1 << 60, None, "abc", 1e300], ids=str)
    def test_a_row_with_no_possible_start_is_left_out_and_counted(self, path, start):
        without = loop(path.with_name("without.sqlite"))
        change(without, f"DELETE FROM {KERNEL} WHERE rowid = 5")
        # nsys says NOT NULL; a damaged file need not keep to it.
        change(path, f"CREATE TABLE other AS SELECT * FROM {KERNEL}")
        change(path, f"DROP TABLE {KERNEL}")
        change(path, f"ALTER TABLE other RENAME TO {KERNEL}")
        change(path, f"UPDATE {KERNEL} SET start = ? WHERE rowid = 5", start)
        rows, said = ask(path)
        assert rows == ask(without)[0]
        assert said == [
            (f"1 of {sum(row['calls'] for row in rows) + 1} kernels are left out: their times are impossible")
        ]

    @pytest.mark.slow
    def test_every_report_answers_with_what_is_good(self, path):
        change(path, f'UPDATE {KERNEL} SET start = ?, "end" = ? WHERE rowid = 5', LEAST, MOST)
        change(path, f'UPDATE {CALL} SET "end" = ? WHERE rowid = 7', MOST)
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
            assert "1 of" in trace.about()["left_out"]

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "scope",
        [{"device": 0}, {"from_ns": 1}, {"nvtx": "step"}, {"steady": True}],
        ids=lambda scope: next(iter(scope)),
    )
    def test_a_part_of_the_trace_can_be_asked_of_all_the_same(self, path, scope):
        path, without = (loop(path.with_name(f"{name}.sqlite"), nvtx="step") for name in ("bad", "without"))
        change(without, f"DELETE FROM {KERNEL} WHERE rowid = 5")
        change(path, f'UPDATE {KERNEL} SET "end" = ? WHERE rowid = 5', MOST)
        said = []
        with (
            nsys_insight.open(path, note=said.append).scope(**scope) as part,
            nsys_insight.open(without).scope(**scope) as good,
        ):
            assert part.answer("top").rows() == good.answer("top").rows() != []
        assert [text.partition(" of ")[0] for text in said] == ["1"]

    def test_an_end_before_the_start_counts_as_no_time_and_is_said(self, path):
        change(path, f'UPDATE {KERNEL} SET "end" = start - 5 WHERE rowid = 5')
        _, said = ask(path)
        assert len(said) == 1
        assert "end before they start and count as 0 ns" in said[0]

    def test_times_of_the_epoch_are_times(self, path):
        earlier = ask(path)[0]
        for table in (KERNEL, CALL, "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"):
            change(path, f'UPDATE {table} SET start = start + 1767323045000000000, "end" = "end" + 1767323045000000000')
        rows, said = ask(path)
        assert rows == earlier
        assert not said

    @pytest.mark.parametrize("kind", ["TEXT", "REAL"])
    def test_a_column_may_have_another_type(self, path, kind):
        earlier = ask(path)[0]
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(f"ALTER TABLE {KERNEL} ADD COLUMN other {kind}")
            database.execute(f"UPDATE {KERNEL} SET other = start")
            database.execute(f"ALTER TABLE {KERNEL} DROP COLUMN start")
            database.execute(f"ALTER TABLE {KERNEL} RENAME COLUMN other TO start")
        rows, said = ask(path)
        assert rows == earlier
        assert not said

    def test_json_says_it_too(self, path, tmp_path):
        from nsys_insight.render import write

        change(path, f"UPDATE {KERNEL} SET start = ? WHERE rowid = 5", MOST)
        with nsys_insight.open(path) as trace:
            write(trace.answer("top"), tmp_path / "x.json", "json")
        assert "1 of" in json.loads((tmp_path / "x.json").read_text())["trace"]["left_out"]


class TestNumbers:
    @pytest.mark.parametrize("size", [MOST, LEAST, -1])
    def test_a_size_that_cannot_be_is_unknown(self, tmp_path, size):
        trace = Trace()
        host = trace.thread()
        host.copy("H2D", 1000).copy("H2D", size)
        rows, said = ask(trace.write(tmp_path / "t.sqlite"), "copies")
        assert sum(row["size_bytes"] for row in rows) == 1000
        assert said == ["the size of 1 of 2 copies is impossible and counts as unknown"]

    @pytest.mark.slow
    @pytest.mark.parametrize("number", [-1, LEAST, MOST, 1 << 40])
    def test_a_correlation_id_that_cannot_be_joins_nothing(self, path, number):
        change(path, f"UPDATE {KERNEL} SET correlationId = ? WHERE rowid = 5", number)
        change(path, f"UPDATE {CALL} SET correlationId = ? WHERE rowid = 9", number)
        ask_all(path, "idle", "gaps", "launches", "classify", "graph-candidates")

    @pytest.mark.slow
    @pytest.mark.parametrize("number", [-1, LEAST, MOST])
    def test_a_shape_that_cannot_be(self, path, number):
        """Each column in a kernel of its own, and no report fails."""
        columns = ("gridX", "blockY", "deviceId", "registersPerThread", "dynamicSharedMemory")
        for row, column in enumerate(columns, 5):
            change(path, f"UPDATE {KERNEL} SET {column} = ? WHERE rowid = {row}", number)
        ask_all(path, "top", "launch-configs", "occupancy", "idle", "roofline")


class TestRepeats:
    @pytest.mark.slow
    def test_a_call_that_is_there_twice_counts_once_and_is_said(self, path):
        reports = ("idle", "launches", "classify", "api")
        earlier = ask_all(path, *reports)
        change(path, f"INSERT INTO {CALL} SELECT * FROM {CALL}")
        said = []
        with nsys_insight.open(path, note=said.append) as trace:
            for report in reports:
                assert trace.answer(report).dicts() == earlier[report], report
        assert len(said) == 1
        assert "are in the trace twice and are counted once" in said[0]

    @pytest.mark.slow
    def test_ids_that_several_calls_have(self, path):
        change(path, f"UPDATE {CALL} SET correlationId = 3 WHERE rowid % 3 = 0")
        ask_all(path, "idle", "gaps", "launches", "classify", "graph-candidates", "host", "syncs", "steps")

    @pytest.mark.slow
    def test_also_where_nobody_looked_for_them(self, path, monkeypatch):
        monkeypatch.setattr("nsys_insight.ingest.raw._FIRST_CALLS", 0)
        change(path, f"UPDATE {CALL} SET correlationId = 3 WHERE rowid % 3 = 0")
        ask_all(path, "idle", "gaps", "launches", "classify", "graph-candidates")

    def test_the_wall_is_not_exceeded(self, path):
        change(path, f"INSERT INTO {CALL} SELECT * FROM {CALL}")
        change(path, f"INSERT INTO {CALL} SELECT * FROM {CALL} LIMIT 7")
        assert sum(row["wall_pct"] for row in ask(path, "idle")[0]) == pytest.approx(100, abs=0.1)


class TestOverlaps:
    @pytest.mark.slow
    def test_kernels_that_overlap_on_a_stream_have_steps_all_the_same(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        for step in range(40):
            at = step * 10_000
            host.kernel("a", at=at, runs=6_000).kernel("b", at=at + 1_000, runs=12_000).kernel(
                "c", at=at + 2_000, runs=20_000
            )
        ask(trace.write(tmp_path / "t.sqlite"), "steps")


class TestMessages:
    def test_no_message_shows_our_own_sql(self, path):
        from nsys_insight.errors import QueryError
        from nsys_insight.packs import library

        pack = library.pack_of("top")
        broken = type(pack)(**{**vars(pack), "sql": "SELECT 'x'::BIGINT AS name FROM kernels"})
        with nsys_insight.open(path) as trace, pytest.raises(QueryError) as raised:
            trace.answer(broken)
        assert "LINE" not in raised.value.message
        assert "SELECT" not in raised.value.message

    def test_whoever_wrote_sql_sees_where_it_failed(self, path):
        from nsys_insight.errors import QueryError

        with nsys_insight.open(path) as trace, pytest.raises(QueryError) as raised:
            trace.query("SELECT no_such FROM kernels")
        assert "no_such" in raised.value.message

    def test_the_users_own_error_is_said_though_all_rows_are_looked_at(self, path):
        from nsys_insight.errors import QueryError

        with nsys_insight.open(path) as trace, pytest.raises(QueryError, match="abc"):
            trace.query("SELECT 'abc'::BIGINT")


def ask_sql(path, sql):
    with nsys_insight.open(path) as trace:
        return trace.query(sql).dicts()


class TestWhereItIsSaid:
    """What is left out is said wherever an answer goes."""

    @pytest.fixture
    def bad(self, path):
        change(path, f"UPDATE {KERNEL} SET start = ? WHERE rowid = 5", MOST)
        return path

    def test_json_has_it_among_the_notes(self, bad, tmp_path):
        from nsys_insight.render import write

        with nsys_insight.open(bad) as trace:
            write(trace.answer("top"), tmp_path / "x.json", "json")
        notes = json.loads((tmp_path / "x.json").read_text())["notes"]
        assert [note for note in notes if "kernels are left out: their times are impossible" in note]

    def test_markdown_has_it_below_the_table(self, bad, tmp_path):
        from nsys_insight.render import write

        with nsys_insight.open(bad) as trace:
            write(trace.answer("top"), tmp_path / "x.md", "markdown")
        assert "kernels are left out: their times are impossible" in (tmp_path / "x.md").read_text()

    @staticmethod
    def pages(path):
        """The page of each kind, of what is gathered once."""
        from nsys_insight.packs.step_options import AUTO
        from nsys_insight.page import content, html, markdown

        with nsys_insight.open(path) as trace:
            found = content.gather(trace, AUTO)
            return [html.page(found, html.Drawings()), markdown.text(found), markdown.agent_text(found)]

    @pytest.mark.slow
    def test_the_page_has_it_at_its_head(self, bad, path):
        for text in self.pages(bad):
            assert text.count("kernels are left out: their times are impossible") == 1
        for text in self.pages(loop(path.with_name("good.sqlite"))):
            assert "times are impossible" not in text

    @pytest.mark.parametrize("fmt", ["table", *sweep(["markdown", "csv", "json", "jsonl"]), "parquet"])
    def test_the_command_says_it_once_on_stderr(self, bad, tmp_path, fmt):
        done = run("top", bad, "--format", fmt, "-o", tmp_path / "out")
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("kernels are left out: their times are impossible") == 1


@pytest.fixture(scope="module")
def late(tmp_path_factory):
    trace = Trace()
    host = trace.thread()
    for _ in range(500):
        host.launch("k()", api=5, runs=10)
    path = trace.write(tmp_path_factory.mktemp("late") / "late.sqlite")
    for _ in range(8):
        change(path, f"INSERT INTO {KERNEL} SELECT * FROM {KERNEL}")
    change(path, f'UPDATE {KERNEL} SET "end" = ? WHERE rowid = 127999', MOST)
    return path


class TestARowThatIsMetLate:
    """Of an answer that is written while it runs, rows are gone when one is met that cannot be true."""

    SQL = "SELECT start_ns, end_ns FROM kernels"

    @pytest.mark.slow
    @pytest.mark.parametrize("fmt", ["csv", "jsonl", "parquet"])
    def test_a_file_is_begun_again(self, late, tmp_path, fmt):
        done = run("sql", late, self.SQL, "-o", tmp_path / f"out.{fmt}", "--threads", 1)
        assert done.returncode == 0, done.stderr
        assert "1 of 128,000 kernels are left out" in done.stderr
        if fmt != "parquet":
            assert len((tmp_path / f"out.{fmt}").read_text().splitlines()) == 127_999 + (fmt == "csv")

    @pytest.mark.slow
    def test_stdout_ends_with_one_sentence(self, late):
        done = run("sql", late, self.SQL, "--format", "csv", "--threads", 1)
        assert done.returncode == 1
        assert "error: a row could not be read after others had been written" in done.stderr
        assert "hint: write to a file, which is restarted without it: -o answer.csv" in done.stderr
        assert "Traceback" not in done.stderr
