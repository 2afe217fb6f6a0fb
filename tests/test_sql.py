"""SQL queries: from the command line, a file or a pipe, with parameters, on one trace or several."""

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
from nsys_insight.ingest import copy, extension
from nsys_insight.ingest.files import make_labels
from nsys_insight.ingest.private import is_private
from nsys_insight.session.schema import describe_schema
from nsys_insight.sql.statements import parse_value, split_statements

REPOSITORY = Path(__file__).parents[1]
CHURN = str(REPOSITORY / "sample_traces" / "churn.sqlite")
EAGER = str(REPOSITORY / "sample_traces" / "decode_eager.sqlite")


def run(*arguments, stdin=""):
    return command_line.run(*arguments, stdin=stdin, cwd=REPOSITORY)


def query_sqlite(path, query):
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
        return database.execute(query).fetchall()


class TestStatements:
    def test_each_statement_has_its_line_and_the_name_it_defines(self):
        statements = split_statements("-- one\nCREATE TEMP TABLE A AS\n  SELECT 1;\n\nFROM a;; -- end\n")
        assert [(statement.defined_name, statement.line) for statement in statements] == [("a", 0), ("", 4)]
        assert [statement.sql for statement in statements] == ["-- one\nCREATE TEMP TABLE A AS\n  SELECT 1", "FROM a"]

    @pytest.mark.parametrize(
        ("text", "value"),
        [("12", 12), ("-1.5", -1.5), ("true", True), ("null", None), ("x's", "x's"), ("'12'", "12"), ("'a''b'", "a'b")],
    )  # fmt: skip
    def test_values_are_parsed_by_their_form(self, text, value):
        assert parse_value(text) == value
        assert type(parse_value(text)) is type(value)

    def test_values_are_not_run_as_sql(self):
        assert split_statements("SELECT $a", {"a": "1; DROP TABLE x"})[0].sql == "SELECT '1; DROP TABLE x'"

    @pytest.mark.parametrize(("text", "values"), [("SELECT $a", {}), ("SELECT 1", {"a": 1})])
    def test_a_parameter_without_a_value_or_a_value_without_a_parameter_is_refused(self, text, values):
        with pytest.raises(UsageError):
            split_statements(text, values)

    @pytest.mark.parametrize("text", ["DROP TABLE x", "SELECT 1; SET x = 1", "PIVOT kernels ON stream_id", "SELEC 1"])
    def test_other_statements_than_queries_and_definitions_are_refused(self, text):
        with pytest.raises(QueryError):
            split_statements(text)


class TestErrors:
    @pytest.mark.parametrize(
        ("query", "message", "hint"),
        [
            ("SELECT dur FROM kernels", "no column 'dur'", "did you mean duration_ns"),
            ("SELECT k.stream_idx FROM kernels AS k", "no column 'stream_idx'", "stream_id"),
            ("FROM kernel", "no view 'kernel'", "did you mean kernels"),
            ("FROM raw.CUPTI_ACTIVITY_KIND_KERNL", "no view", "did you mean raw.CUPTI_ACTIVITY_KIND_KERNEL"),
            ("SELECT summ(1)", "no function 'summ'", "did you mean sum?"),
        ],
    )
    def test_unknown_names_have_suggestions(self, query, message, hint):
        with nsys_insight.open(CHURN) as trace, pytest.raises(QueryError, match=message) as caught:
            trace.sql(query)
        assert hint in caught.value.hint

    def test_the_error_shows_the_position_in_the_text(self):
        result = run("sql", CHURN, "SELECT 1;\n\nSELECT name,\n  dur\nFROM kernels")
        assert result.returncode == 1
        assert result.stderr.splitlines()[:3] == ["error: there is no column 'dur'", "line 4:   dur", " " * 10 + "^"]

    @pytest.mark.slow
    def test_a_failed_query_does_not_change_the_output_file(self, tmp_path):
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
        outputs = [
            run("sql", CHURN, query, "--format", "csv").stdout,
            run("sql", CHURN, "--file", tmp_path / "q.sql", "--format", "csv").stdout,
            run("sql", CHURN, "--format", "csv", stdin=query).stdout,
            run("sql", CHURN, "-", "--format", "csv", stdin=query).stdout,
        ]
        assert outputs == ["n\n500\n"] * 4

    def test_parameters_and_several_statements(self):
        text = "CREATE TEMP TABLE long AS FROM kernels WHERE short_name = $name; SELECT count(*) AS n FROM long"
        assert run("sql", CHURN, text, "-p", "name=add", "--format", "csv").stdout == "n\n160\n"
        result = run("sql", CHURN, "SELECT 1 AS a; SELECT 2 AS b", "--format", "json")
        assert (result.returncode, result.stdout) == (2, "")
        assert run("sql", CHURN, "SELECT 1 AS a; SELECT 2 AS b").stdout.count("1 row") == 2

    def test_profile_reports_the_time(self):
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
    def test_all_formats_have_the_same_rows(self, tmp_path):
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
        peak_mib = int(result.stderr.rpartition("at most ")[2].partition(" MiB")[0].replace(",", ""))
        assert (tmp_path / "a.csv").stat().st_size > 100_000_000
        assert peak_mib < 250


def test_a_division_by_zero_is_unknown(sample):
    """Infinity and NaN cannot be cast to BIGINT. Any duration can be 0 in a damaged trace."""
    with open_trace(sample("decode_eager")) as trace:
        query = "SELECT 1 / 0, 0 / 0, 1 % 0.0, round(100 / (0 * duration_ns))::BIGINT FROM kernels LIMIT 1"
        assert trace.query(query).rows() == [(None,) * 4]
    with nsys_insight.open([sample("decode_eager"), sample("churn")]) as traces:
        assert traces.sql("SELECT max(1 / (0 * duration_ns)) AS most FROM kernels").rows() == [(None,)]


def test_show_tables_lists_the_documented_views_and_those_of_the_user(sample):
    with open_trace(sample("decode_eager")) as trace:
        names = [row["name"] for row in trace.query("SHOW TABLES").dicts()]
        assert names == sorted(row["view"] for row in describe_schema().dicts())
        assert len(names) > 50
        (statement,) = split_statements("CREATE VIEW mine AS SELECT 1 AS one")
        trace.define(statement)
        rows = trace.query("show all tables;").dicts()
        assert sorted({row["name"] for row in rows} - set(names)) == ["mine"]
        assert all(row["description"] for row in rows if row["name"] != "mine")


def test_catalogs_list_the_model_only(sample):
    with open_trace(sample("decode_eager")) as trace:
        names = sorted({*(row["view"] for row in describe_schema().dicts()), "mine"})
        (statement,) = split_statements("CREATE OR REPLACE VIEW mine AS SELECT 1 AS one")
        trace.define(statement)
        for query in (
            "SELECT table_name FROM information_schema.tables ORDER BY 1",
            "SELECT DISTINCT c.table_name FROM Information_Schema . columns AS c ORDER BY 1",
            "SELECT view_name FROM duckdb_views() ORDER BY 1",
        ):
            assert [name for (name,) in trace.query(query).rows()] == names
        assert trace.query("SELECT 'duckdb_views()' -- duckdb_views()").rows() == [("duckdb_views()",)]


def test_an_unknown_column_lists_the_columns_of_its_view(sample):
    with open_trace(sample("decode_eager")) as trace, pytest.raises(QueryError) as error:
        trace.query("SELECT nme FROM gpu_ops")
    assert "gpu_ops has kind, start_ns, end_ns, duration_ns" in error.value.hint


def test_operations_name_kernels_and_copies_alike(sample):
    with open_trace(sample("decode_eager")) as trace:
        kinds = dict(trace.query("SELECT kind, count(DISTINCT op) FROM operations GROUP BY ALL").rows())
        assert kinds == {"kernel": 30, "copy": 2, "memset": 1}
        assert trace.query("SELECT count(*) FROM operations WHERE op IS NULL").rows() == [(0,)]


class TestSteps:
    @pytest.mark.slow
    def test_steps_are_found_on_demand(self):
        table = run("sql", EAGER, "SELECT count(*) AS steps FROM steps WHERE phase = 'steady'", "--format", "csv")
        assert table.stdout == "steps\n32\n", table.stderr
        with nsys_insight.open(EAGER) as trace:
            (view,) = split_statements("CREATE VIEW mine AS SELECT method, step_count FROM step_method")
            trace.define(view)
            query = "SELECT method, step_count FROM mine"
            assert trace.sql(query).rows() == [("nvtx", 32)]
            assert trace.answer("steps", step_method="sequence").row_count
            assert trace.sql(query).rows() == [("nvtx", 32)], "the step options of a report apply only to that report"
            trace.sql("FROM raw.StringIds LIMIT 1")  # opens the file again
            assert trace.sql(query).rows() == [("nvtx", 32)]

    @pytest.mark.slow
    def test_a_column_named_steps_does_not_start_the_step_search(self):
        query = "SELECT count(*) AS steps FROM kernels -- not FROM steps"
        with nsys_insight.open(CHURN) as trace:
            assert trace.sql(query).rows() == [(500,)]
            assert "steps" not in trace._connection.files._facts._fill_options
            assert trace.sql("SELECT count(*) FROM steps").rows() == [(20,)]
        with nsys_insight.open([CHURN, EAGER]) as traces:
            assert traces.sql(query).rows() == [(500 + 6469,)]

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["step_totals", "answer_1", "found_steps", "listed_gaps"])
    def test_a_user_table_may_have_the_name_of_an_internal_table(self, name):
        with nsys_insight.open(CHURN) as trace, open_trace(CHURN) as other:
            (table,) = split_statements(f"CREATE TEMP TABLE {name} AS SELECT 'mine' AS whose")
            trace.define(table)
            for report in ("top", "steps", "gaps"):
                assert trace.answer(report).rows() == other.answer(report).rows()
            assert trace.sql(f"FROM {name}").rows() == [("mine",)]


class TestRaw:
    @pytest.mark.parametrize("has_extension", [True, False])
    def test_raw_tables_have_all_exported_tables_and_columns(self, has_extension, monkeypatch):
        if not has_extension:
            monkeypatch.setattr(extension, "find_scanner", lambda: None)
        with nsys_insight.open(CHURN, use_cache=True) as trace:
            assert trace.sql("SELECT count(*) AS n FROM kernels")["n"].item() == 500
            rows = trace.sql('SELECT "cacheConfig", start FROM raw.CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start').rows()
            streams = trace.sql("SELECT count(*) FROM raw.TARGET_INFO_SYSTEM_ENV").item()
        assert rows == query_sqlite(CHURN, "SELECT cacheConfig, start FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start")
        settings = [name for (name,) in query_sqlite(CHURN, "SELECT name FROM TARGET_INFO_SYSTEM_ENV")]
        # Without the extension, a copy is read, which has no private rows.
        assert len(settings) - streams == (0 if extension.find_scanner() else len([*filter(is_private, settings)]))

    def test_a_table_that_cannot_be_copied_does_not_stop_the_others(self, tmp_path, monkeypatch):
        monkeypatch.setattr(extension, "find_scanner", lambda: None)
        path = Path(shutil.copy(CHURN, tmp_path / "trace.sqlite"))
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("CREATE TABLE damaged (a INTEGER)")
            database.execute("CREATE TABLE small (a INTEGER, b REAL, c TEXT)")
            database.execute("INSERT INTO small VALUES (1, 1.5, 'x'), ('x', 2, NULL)")
        write_select = copy._write_sqlite_select
        monkeypatch.setattr(
            copy,
            "_write_sqlite_select",
            lambda table, types: "SELECT a FROM nowhere" if table == "damaged" else write_select(table, types),
        )
        with nsys_insight.open(path) as trace:
            assert trace.sql("SELECT count(*) FROM kernels").item() == 500
            assert trace.sql("FROM raw.small ORDER BY b").rows() == [(1, 1.5, "x"), (None, 2.0, None)]

    @pytest.mark.slow
    def test_a_scope_narrows_raw_tables_too(self):
        with nsys_insight.open(EAGER).scope(nvtx="prefill") as trace:
            assert trace.sql("SELECT count(*) FROM raw.CUPTI_ACTIVITY_KIND_KERNEL").item() == 196


@pytest.fixture(scope="module")
def both_traces():
    with nsys_insight.open([CHURN, EAGER]) as both_traces:
        yield both_traces


class TestSeveralTraces:
    @pytest.mark.slow
    def test_every_view_has_a_trace_column(self):
        query = "SELECT trace, count(*) AS n, sum(duration_ns)::BIGINT AS ns FROM {} GROUP BY ALL ORDER BY trace"
        for use_cache in (None, True):
            with nsys_insight.open([CHURN, EAGER], use_cache=use_cache) as both_traces:
                for view in ("kernels", "gpu_busy", "gpu_gaps", "wall", "nvtx_ranges"):
                    expected = []
                    for path in (CHURN, EAGER):
                        with nsys_insight.open(path) as single_trace:
                            row = single_trace.sql(
                                f"SELECT count(*) AS n, sum(duration_ns)::BIGINT AS ns FROM {view}"
                            ).row(0)
                        expected += [(Path(path).stem, *row)] if row[0] else []
                    assert both_traces.sql(query.format(view)).rows() == expected, view

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
            totals = ranks.sql("SELECT trace, sum(duration_ns)::BIGINT AS ns FROM kernels GROUP BY ALL")
            all_kernels = ranks.sql("FROM kernels")
        assert totals.height == 12
        assert set(totals.columns) < {*all_kernels.columns, "ns"}
        assert all_kernels.height == sum(range(1, 13))
        assert rows == [(f"rank{number:02}", f"kernel of rank {number}", number + 1) for number in range(12)]
        assert launches == [(f"rank{number:02}", number + 1) for number in range(12)]

    @pytest.mark.slow
    @pytest.mark.parametrize("scope", [{}, {"device": 0}, {"nvtx": "decode_step"}, {"from_ns": 0, "to_ns": 80_000_000}])
    def test_the_idle_time_of_each_trace_has_the_same_causes_as_alone(self, scope):
        query = "SELECT gpu_id, cause, host, idle_ns FROM gpu_idle WHERE {} ORDER BY ALL"
        paths = (EAGER, EAGER.replace("eager", "graph_node"))
        with nsys_insight.open(paths).scope(**scope) as both_traces:
            for path in paths:
                with nsys_insight.open(path).scope(**scope) as single_trace:
                    rows = both_traces.sql(query.format(f"trace = '{Path(path).stem}'")).rows()
                    assert rows == single_trace.sql(query.format("true")).rows()
                    assert rows

    def test_ncu_data_is_refused_for_several_traces(self):
        with pytest.raises(UsageError, match="ncu data belongs to one trace"):
            nsys_insight.open([CHURN, EAGER], ncu="any.ncu.duckdb")

    def test_a_folder_stands_for_all_its_traces(self, tmp_path):
        for name in ("a", "b"):
            shutil.copy(CHURN, tmp_path / f"{name}.sqlite")
        query = "SELECT trace, count(*) AS n FROM kernels GROUP BY ALL ORDER BY trace"
        assert run("sql", tmp_path, query, "--format", "csv").stdout == "trace,n\na,500\nb,500\n"

    def test_labels_of_traces_differ(self):
        assert make_labels([Path("x/rank0/t.sqlite"), Path("x/rank1/t.sqlite")]) == ["rank0/t", "rank1/t"]
        assert make_labels([Path("a.sqlite"), Path("b.sqlite")]) == ["a", "b"]

    @pytest.mark.slow
    def test_steps_are_those_of_each_trace(self):
        query = "SELECT {} count(*) AS steps, sum(duration_ns)::BIGINT AS ns FROM steps GROUP BY ALL ORDER BY ALL"
        expected = []
        for path in (CHURN, EAGER):
            with nsys_insight.open(path) as single_trace:
                expected += [(Path(path).stem, *row) for row in single_trace.sql(query.format("")).rows()]
        with nsys_insight.open([CHURN, EAGER]) as both_traces:
            assert both_traces.sql(query.format("trace,")).rows() == expected

    @pytest.mark.slow
    @pytest.mark.parametrize("report", ["top", "gaps", "classify", "fusion", "info"])
    def test_a_report_interleaves_the_rows_of_the_traces(self, report, both_traces):
        expected, notes = [], []
        for path in (CHURN, EAGER):
            with open_trace(path) as single_trace:
                answer = single_trace.answer(report)
                expected += [(position, Path(path).stem, *row) for position, row in enumerate(answer.rows())]
                notes.append(answer.notes)
        answer = both_traces.answer(report)
        assert answer.rows() == [row[1:] for row in sorted(expected, key=lambda row: row[0])]
        assert answer.columns[0].name == "trace"
        assert {note.removeprefix("churn: ").removeprefix("decode_eager: ") for note in answer.notes} == {
            *notes[0], *notes[1]
        }  # fmt: skip


# Common queries over the exported tables of nsys in sqlite3, and the same queries over the views.
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
def test_queries_over_the_views_are_shorter_and_give_the_same_numbers_as_sqlite3(seed):
    sqlite_query, view_query = (" ".join(query.split()) for query in SEEDS[seed])
    assert len(view_query) < len(sqlite_query)
    expected = sorted(query_sqlite(EAGER, sqlite_query))
    with nsys_insight.open(EAGER) as trace:
        rows = sorted(trace.sql(view_query).rows())
    assert len(rows) == len(expected) >= 1
    for row, expected_row in zip(rows, expected, strict=True):
        assert [float(cell) if not isinstance(cell, str) else cell for cell in row] == [
            pytest.approx(cell) if not isinstance(cell, str) else cell for cell in expected_row
        ]


def test_ncu_metrics_are_queried_together_with_the_trace(tmp_path):
    """Join the ncu views with the kernels of the trace by name, grid and block."""
    ncu = REPOSITORY / "tests" / "data" / "ncu" / "decode_eager.ncu.raw.csv"
    process = run(
        "sql", EAGER, "--ncu", ncu, "--format", "json",
        """SELECT count(DISTINCT l.launch) AS launches, count(*) AS metrics,
                  (SELECT count(*) FROM _ncu_shapes) AS shapes
           FROM ncu_launches AS l JOIN ncu_metrics USING (launch)""",
    )  # fmt: skip
    (row,) = json.loads(process.stdout)["rows"]
    assert row["launches"] > 3
    assert row["metrics"] > 100 * row["launches"]
    assert row["shapes"] > 3
