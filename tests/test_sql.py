"""Any question: from the command line, a file or a pipe, with parameters, about one trace or several."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import command_line
import polars as pl
import pytest
from opening import open_trace
from synthetic import Trace

import nsys_insight
from nsys_insight.errors import QueryError, UsageError
from nsys_insight.ingest.files import labels_of
from nsys_insight.sql.statements import split, value_of

REPOSITORY = Path(__file__).parents[1]
CHURN = str(REPOSITORY / "sample_traces" / "churn.sqlite")
EAGER = str(REPOSITORY / "sample_traces" / "decode_eager.sqlite")


def run(*arguments, stdin=""):
    return command_line.run(*arguments, stdin=stdin, cwd=REPOSITORY)


def by_sqlite(path, query):
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
        return database.execute(query).fetchall()


class TestStatements:
    def test_each_knows_its_line_and_what_it_defines(self):
        found = split("-- one\nCREATE TEMP TABLE A AS\n  SELECT 1;\n\nFROM a;; -- end\n")
        assert [(statement.creates, statement.line) for statement in found] == [("a", 0), ("", 4)]
        assert [statement.sql for statement in found] == ["-- one\nCREATE TEMP TABLE A AS\n  SELECT 1", "FROM a"]

    @pytest.mark.parametrize(
        ("text", "value"),
        [("12", 12), ("-1.5", -1.5), ("true", True), ("null", None), ("x's", "x's"), ("'12'", "12"), ("'a''b'", "a'b")],
    )  # fmt: skip
    def test_values_have_the_type_that_they_look_like(self, text, value):
        assert value_of(text) == value
        assert type(value_of(text)) is type(value)

    def test_values_are_no_sql(self):
        assert split("SELECT $a", {"a": "1; DROP TABLE x"})[0].sql == "SELECT '1; DROP TABLE x'"

    @pytest.mark.parametrize(("text", "values"), [("SELECT $a", {}), ("SELECT 1", {"a": 1})])
    def test_a_parameter_without_its_value_or_the_other_way_round(self, text, values):
        with pytest.raises(UsageError):
            split(text, values)

    @pytest.mark.parametrize("text", ["DROP TABLE x", "SELECT 1; SET x = 1", "PIVOT kernels ON stream_id", "SELEC 1"])
    def test_what_is_neither_query_nor_definition_is_refused(self, text):
        with pytest.raises(QueryError):
            split(text)


class TestErrors:
    @pytest.mark.parametrize(
        ("query", "said", "hint"),
        [
            ("SELECT dur FROM kernels", "no column 'dur'", "did you mean duration_ns"),
            ("SELECT k.stream_idx FROM kernels AS k", "no column 'stream_idx'", "stream_id"),
            ("FROM kernel", "no view 'kernel'", "did you mean kernels"),
            ("FROM raw.CUPTI_ACTIVITY_KIND_KERNL", "no view", "did you mean raw.CUPTI_ACTIVITY_KIND_KERNEL"),
            ("SELECT summ(1)", "no function 'summ'", "did you mean sum?"),
        ],
    )
    def test_what_is_not_there_and_what_may_have_been_meant(self, query, said, hint):
        with nsys_insight.open(CHURN) as trace, pytest.raises(QueryError, match=said) as caught:
            trace.sql(query)
        assert hint in caught.value.hint

    def test_the_place_is_that_in_what_was_typed(self):
        result = run("sql", CHURN, "SELECT 1;\n\nSELECT name,\n  dur\nFROM kernels")
        assert result.returncode == 1
        assert result.stderr.splitlines()[:3] == ["error: there is no column 'dur'", "line 4:   dur", " " * 10 + "^"]

    @pytest.mark.slow
    def test_a_file_is_left_alone_by_a_query_that_fails(self, tmp_path):
        for name in ("kept.csv", "kept.parquet"):
            (tmp_path / name).write_text("kept")
            assert run("sql", CHURN, "SELECT dur FROM kernels", "-o", tmp_path / name).returncode == 1
            assert (tmp_path / name).read_text() == "kept"
            assert run("sql", CHURN, "SELECT dur FROM kernels", "-o", tmp_path / f"new-{name}").returncode == 1
        assert {path.name for path in tmp_path.iterdir()} == {"kept.csv", "kept.parquet"}


class TestCommand:
    @pytest.mark.slow
    def test_from_the_argument_a_file_or_a_pipe(self, tmp_path):
        query = "SELECT count(*) AS n FROM kernels"
        (tmp_path / "q.sql").write_text(query)
        said = [
            run("sql", CHURN, query, "--format", "csv").stdout,
            run("sql", CHURN, "--file", tmp_path / "q.sql", "--format", "csv").stdout,
            run("sql", CHURN, "--format", "csv", stdin=query).stdout,
            run("sql", CHURN, "-", "--format", "csv", stdin=query).stdout,
        ]
        assert said == ["n\n500\n"] * 4

    def test_parameters_and_several_statements(self):
        text = "CREATE TEMP TABLE long AS FROM kernels WHERE short_name = $name; SELECT count(*) AS n FROM long"
        assert run("sql", CHURN, text, "-p", "name=add", "--format", "csv").stdout == "n\n160\n"
        result = run("sql", CHURN, "SELECT 1 AS a; SELECT 2 AS b", "--format", "json")
        assert (result.returncode, result.stdout) == (2, "")
        assert run("sql", CHURN, "SELECT 1 AS a; SELECT 2 AS b").stdout.count("1 row") == 2

    def test_profile_says_what_it_took(self):
        assert "answered in" in run("sql", CHURN, "FROM kernels LIMIT 3", "--profile").stderr

    @pytest.mark.parametrize(
        "arguments",
        [("--file", "missing.sql"), ("SELECT $a",), ("SELECT 1", "-p", "a"), (), ("CREATE TEMP TABLE a AS SELECT 1",)],
    )
    def test_a_wrong_command_line_has_a_hint(self, arguments):
        result = run("sql", CHURN, *arguments)
        assert result.returncode == 2
        assert result.stderr.splitlines()[-1].startswith("hint: ")

    @pytest.mark.slow
    def test_all_formats_hold_the_same(self, tmp_path):
        query = "SELECT name, duration_ns, graph_id, duration_ns > 1000 AS long FROM kernels ORDER BY start_ns"
        for suffix in ("csv", "parquet", "jsonl", "json"):
            assert run("sql", CHURN, query, "-o", tmp_path / f"a.{suffix}").returncode == 0
        rows = json.loads((tmp_path / "a.json").read_text())["rows"]
        assert len(rows) == 500
        assert pl.read_parquet(tmp_path / "a.parquet").to_dicts() == rows
        assert pl.read_csv(tmp_path / "a.csv").to_dicts() == rows
        assert [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()] == rows

    @pytest.mark.slow
    def test_a_result_larger_than_memory_streams(self, tmp_path):
        query = "SELECT range AS n, repeat('x', 100) AS text FROM range(1_000_000)"
        words = ["sql", CHURN, query, "-o", tmp_path / "a.csv", "--profile", "--memory", "60MB"]
        result = subprocess.run(
            [*command_line.PROCESS, *words], capture_output=True, text=True, check=False, cwd=REPOSITORY
        )
        held = int(result.stderr.rpartition("at most ")[2].partition(" MiB")[0].replace(",", ""))
        assert (tmp_path / "a.csv").stat().st_size > 100_000_000
        assert held < 250


class TestSteps:
    @pytest.mark.slow
    def test_they_are_found_for_any_way_to_ask(self):
        table = run("sql", EAGER, "SELECT count(*) AS steps FROM steps WHERE phase = 'steady'", "--format", "csv")
        assert table.stdout == "steps\n32\n", table.stderr
        with nsys_insight.open(EAGER) as trace:
            (view,) = split("CREATE VIEW mine AS SELECT method, step_count FROM step_method")
            trace.define(view)
            asked = "SELECT method, step_count FROM mine"
            assert trace.sql(asked).rows() == [("nvtx", 32)]
            assert trace.answer("steps", step_method="sequence").row_count
            assert trace.sql(asked).rows() == [("nvtx", 32)], "what a report was told about steps stays with it"
            trace.sql("FROM raw.StringIds LIMIT 1")  # opens the file anew
            assert trace.sql(asked).rows() == [("nvtx", 32)]

    @pytest.mark.slow
    def test_a_column_that_is_called_steps_finds_none(self):
        query = "SELECT count(*) AS steps FROM kernels -- not FROM steps"
        with nsys_insight.open(CHURN) as trace:
            assert trace.sql(query).rows() == [(500,)]
            assert "steps" not in trace._connection._files._facts._found
            assert trace.sql("SELECT count(*) FROM steps").rows() == [(20,)]
        with nsys_insight.open([CHURN, EAGER]) as both:
            assert both.sql(query).rows() == [(500 + 6469,)]

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["step_totals", "answer_1", "found_steps", "listed_gaps"])
    def test_a_table_of_the_user_s_own_may_be_called_as_one_of_ours(self, name):
        with nsys_insight.open(CHURN) as trace, open_trace(CHURN) as other:
            (table,) = split(f"CREATE TEMP TABLE {name} AS SELECT 'mine' AS whose")
            trace.define(table)
            for report in ("top", "steps", "gaps"):
                assert trace.answer(report).rows() == other.answer(report).rows()
            assert trace.sql(f"FROM {name}").rows() == [("mine",)]


class TestRaw:
    def test_tables_and_columns_outside_the_contract_are_there_as_exported(self):
        with nsys_insight.open(CHURN, use_cache=True) as trace:
            assert trace.sql("SELECT count(*) AS n FROM kernels")["n"].item() == 500
            found = trace.sql('SELECT "cacheConfig", start FROM raw.CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start').rows()
            streams = trace.sql("SELECT count(*) FROM raw.TARGET_INFO_SYSTEM_ENV").item()
        assert found == by_sqlite(CHURN, "SELECT cacheConfig, start FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start")
        assert [(streams,)] == by_sqlite(CHURN, "SELECT count(*) FROM TARGET_INFO_SYSTEM_ENV")

    @pytest.mark.slow
    def test_a_scope_narrows_them_too(self):
        with nsys_insight.open(EAGER).scope(nvtx="prefill") as trace:
            assert trace.sql("SELECT count(*) FROM raw.CUPTI_ACTIVITY_KIND_KERNEL").item() == 196


@pytest.fixture(scope="module")
def both():
    with nsys_insight.open([CHURN, EAGER]) as both:
        yield both


class TestSeveral:
    @pytest.mark.slow
    def test_every_view_says_which_trace_a_row_is_of(self):
        query = "SELECT trace, count(*) AS n, sum(duration_ns)::BIGINT AS ns FROM {} GROUP BY ALL ORDER BY trace"
        for use_cache in (None, True):
            with nsys_insight.open([CHURN, EAGER], use_cache=use_cache) as both:
                for view in ("kernels", "gpu_busy", "gpu_gaps", "wall", "nvtx_ranges"):
                    expected = []
                    for path in (CHURN, EAGER):
                        with nsys_insight.open(path) as one:
                            row = one.sql(f"SELECT count(*) AS n, sum(duration_ns)::BIGINT AS ns FROM {view}").row(0)
                        expected += [(Path(path).stem, *row)] if row[0] else []
                    assert both.sql(query.format(view)).rows() == expected, view

    @pytest.mark.slow
    def test_ids_that_repeat_do_not_mix(self, tmp_path):
        paths = []
        for number in range(12):
            trace = Trace()
            host = trace.thread(pid=100)
            for _ in range(number + 1):
                host.launch(f"kernel of rank {number}")
            paths.append(trace.write(tmp_path / f"rank{number:02}.sqlite"))
        with nsys_insight.open(paths) as ranks:
            rows = ranks.sql("SELECT trace, name, count(*) FROM kernels GROUP BY ALL ORDER BY trace").rows()
            launches = ranks.sql("SELECT trace, count(api_name) FROM launches GROUP BY ALL ORDER BY trace").rows()
            with_other_columns = ranks.sql("SELECT trace, sum(duration_ns)::BIGINT AS ns FROM kernels GROUP BY ALL")
            everything = ranks.sql("FROM kernels")
        assert with_other_columns.height == 12
        assert set(with_other_columns.columns) < {*everything.columns, "ns"}
        assert everything.height == sum(range(1, 13))
        assert rows == [(f"rank{number:02}", f"kernel of rank {number}", number + 1) for number in range(12)]
        assert launches == [(f"rank{number:02}", number + 1) for number in range(12)]

    @pytest.mark.slow
    @pytest.mark.parametrize("scope", [{}, {"device": 0}, {"nvtx": "decode_step"}, {"from_ns": 0, "to_ns": 80_000_000}])
    def test_idle_time_of_each_is_put_down_to_causes(self, scope):
        query = "SELECT gpu_id, cause, host, idle_ns FROM gpu_idle WHERE {} ORDER BY ALL"
        paths = (EAGER, EAGER.replace("eager", "graph_node"))
        with nsys_insight.open(paths).scope(**scope) as both:
            for path in paths:
                with nsys_insight.open(path).scope(**scope) as one:
                    of_one = both.sql(query.format(f"trace = '{Path(path).stem}'")).rows()
                    assert of_one == one.sql(query.format("true")).rows()
                    assert of_one

    def test_what_is_of_one_trace_alone_is_said(self):
        with pytest.raises(UsageError, match="ncu data belongs to one trace"):
            nsys_insight.open([CHURN, EAGER], ncu="any.ncu.duckdb")

    def test_a_folder_stands_for_all_in_it(self, tmp_path):
        for name in ("a", "b"):
            shutil.copy(CHURN, tmp_path / f"{name}.sqlite")
        query = "SELECT trace, count(*) AS n FROM kernels GROUP BY ALL ORDER BY trace"
        assert run("sql", tmp_path, query, "--format", "csv").stdout == "trace,n\na,500\nb,500\n"

    def test_labels_tell_them_apart(self):
        assert labels_of([Path("x/rank0/t.sqlite"), Path("x/rank1/t.sqlite")]) == ["rank0/t", "rank1/t"]
        assert labels_of([Path("a.sqlite"), Path("b.sqlite")]) == ["a", "b"]

    @pytest.mark.slow
    def test_steps_are_those_of_each(self):
        query = "SELECT {} count(*) AS steps, sum(duration_ns)::BIGINT AS ns FROM steps GROUP BY ALL ORDER BY ALL"
        alone = []
        for path in (CHURN, EAGER):
            with nsys_insight.open(path) as one:
                alone += [(Path(path).stem, *row) for row in one.sql(query.format("")).rows()]
        with nsys_insight.open([CHURN, EAGER]) as both:
            assert both.sql(query.format("trace,")).rows() == alone

    @pytest.mark.slow
    @pytest.mark.parametrize("report", ["top", "gaps", "classify", "fusion", "info"])
    def test_a_report_has_the_rows_of_each_by_their_place(self, report, both):
        alone, notes = [], []
        for path in (CHURN, EAGER):
            with open_trace(path) as one:
                answer = one.answer(report)
                alone += [(place, Path(path).stem, *row) for place, row in enumerate(answer.rows())]
                notes.append(answer.notes)
        answer = both.answer(report)
        assert answer.rows() == [row[1:] for row in sorted(alone, key=lambda row: row[0])]
        assert answer.columns[0].name == "trace"
        assert {note.removeprefix("churn: ").removeprefix("decode_eager: ") for note in answer.notes} == {
            *notes[0], *notes[1]
        }  # fmt: skip


# What people type for sqlite3 over the tables as nsys exports them, and the same over the views.
SEEDS = {
    "top kernels with percentages": (
        """SELECT s.value AS name, COUNT(*) AS calls, SUM(k.end - k.start) AS total,
               100.0 * SUM(k.end - k.start) / (SELECT SUM(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL) AS pct
           FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON k.demangledName = s.id
           GROUP BY s.value ORDER BY total DESC LIMIT 10""",
        """SELECT name, count(*), sum(duration_ns) AS total, 100 * total / (SELECT sum(duration_ns) FROM kernels)
           FROM kernels GROUP BY ALL ORDER BY total DESC LIMIT 10""",
    ),
    "launches per token": (
        """SELECT COUNT(*) * 1.0 / COUNT(DISTINCT n.start)
           FROM CUPTI_ACTIVITY_KIND_RUNTIME r
           JOIN StringIds s ON r.nameId = s.id
           JOIN NVTX_EVENTS n ON r.globalTid = n.globalTid AND r.start >= n.start AND r.start < n.end
           WHERE n.text = 'decode_step' AND (s.value LIKE 'cudaLaunchKernel%' OR s.value LIKE 'cuLaunchKernel%')""",
        "SELECT avg(launch_calls) FROM steps WHERE phase = 'steady'",
    ),
    "launch configurations": (
        """SELECT s.value, k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY, k.blockZ, k.registersPerThread,
               k.staticSharedMemory, k.dynamicSharedMemory, COUNT(*), AVG(k.end - k.start)
           FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON k.demangledName = s.id
           GROUP BY s.value, k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY, k.blockZ, k.registersPerThread,
               k.staticSharedMemory, k.dynamicSharedMemory""",
        """SELECT name, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers_per_thread, static_shared_bytes,
               dynamic_shared_bytes, count(*), avg(duration_ns)
           FROM kernels GROUP BY ALL""",
    ),
}


@pytest.mark.parametrize("seed", SEEDS)
def test_what_people_ask_of_sqlite3_is_shorter_over_the_views_and_gives_the_same_numbers(seed):
    theirs, ours = (" ".join(query.split()) for query in SEEDS[seed])
    assert len(ours) < len(theirs)
    expected = sorted(by_sqlite(EAGER, theirs))
    with nsys_insight.open(EAGER) as trace:
        got = sorted(trace.sql(ours).rows())
    assert len(got) == len(expected) >= 1
    for row, right in zip(got, expected, strict=True):
        assert [float(cell) if not isinstance(cell, str) else cell for cell in row] == [
            pytest.approx(cell) if not isinstance(cell, str) else cell for cell in right
        ]


def test_what_ncu_measured_is_asked_beside_the_trace(tmp_path):
    """The seven ncu views, joined with the kernels of the trace by their name, grid and block."""
    ncu = REPOSITORY / "tests" / "data" / "ncu" / "decode_eager.ncu.raw.csv"
    done = run(
        "sql", EAGER, "--ncu", ncu, "--format", "json",
        """SELECT count(DISTINCT l.launch) AS launches, count(*) AS metrics,
                  (SELECT count(*) FROM _ncu_shapes) AS shapes
           FROM ncu_launches AS l JOIN ncu_metrics USING (launch)""",
    )  # fmt: skip
    (row,) = json.loads(done.stdout)["rows"]
    assert row["launches"] > 3
    assert row["metrics"] > 100 * row["launches"]
    assert row["shapes"] > 3
