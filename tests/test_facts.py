"""Facts: each is found once a session, when it is first read, in whichever way the trace is read."""

from __future__ import annotations

import re
from importlib import import_module
from itertools import pairwise

import pytest
from opening import open_trace

import nsys_insight
from nsys_insight.facts import idle, operations
from nsys_insight.ingest import store
from nsys_insight.model import views
from nsys_insight.model.producers import every_table, options_of, producers
from nsys_insight.paths import queries_folder
from nsys_insight.session import open_strategies
from nsys_insight.sql.statements import split

STATEMENTS = [producer.name for producer in producers().values() if producer.is_statement]
MODULES = [name for name in producers() if name not in STATEMENTS]


@pytest.mark.slow
def test_a_fact_is_found_once_after_those_that_it_is_found_in(sample, found):
    with nsys_insight.open(sample("decode_eager")) as trace:
        trace.answer("classify")
        first = list(found)
        trace.answer("classify")
        trace.answer("host")
        trace.sql("FROM waits, steps LIMIT 1")
    assert len(first) == len(set(first)) == len(set(found) & set(first))
    assert first.index("waits") < first.index("steps") < first.index("step_budget")
    assert first.index("idle") < first.index("step_budget")
    assert found.count("steps") == 1


@pytest.mark.slow
def test_what_follows_from_steps_is_found_again_where_they_are_others(sample, found):
    with nsys_insight.open(sample("decode_eager")) as trace:
        one = trace.answer("classify").rows()
        assert trace.answer("classify", tokens=64).rows() != one
        assert (found.count("steps"), found.count("step_budget"), found.count("waits")) == (2, 2, 1)
        assert trace.answer("classify").rows() == one


def test_only_what_is_read_is_found(sample, found):
    with nsys_insight.open(sample("churn")) as trace:
        trace.answer("top")
    # Whether anything is missing altogether is looked at for every report: it is a question of a few rows.
    assert set(found) == {"api_names", "unrecorded"}


def test_a_fact_that_fails_is_found_when_it_can_be(sample, monkeypatch):
    from nsys_insight.facts import steps

    fill = steps.fill
    with nsys_insight.open(sample("churn")) as trace:
        monkeypatch.setattr(steps, "fill", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            trace.answer("steps")
        monkeypatch.setattr(steps, "fill", fill)
        assert trace.answer("steps").rows()


@pytest.mark.parametrize("name", ["decode_eager", "decode_graph_node", "churn"])
def test_operations_joined_with_their_calls_part_by_part_are_the_same(sample, name, monkeypatch):
    read = (
        "FROM facts.idle_time ORDER BY ALL", "FROM facts.idle_calls ORDER BY ALL",
        "FROM facts.steps ORDER BY ALL", "FROM facts.step_kernels ORDER BY ALL",
        "FROM facts.step_launches ORDER BY ALL",
    )  # fmt: skip

    def rows():
        with open_trace(sample(name)) as trace:
            trace.answer("classify")
            trace.answer("pace")
            return [trace._connection.duckdb.execute(sql).fetchall() for sql in read]

    whole = rows()
    monkeypatch.setattr(operations, "MOST", 100)
    monkeypatch.setattr(idle, "MOST", 100)
    assert rows() == whole


def test_the_parts_hold_every_correlation_id_once(sample, monkeypatch):
    monkeypatch.setattr(operations, "MOST", 100)
    with open_trace(sample("decode_eager")) as trace:
        trace.answer("idle")
        windows = operations.call_windows(trace._connection.duckdb)
    assert len(windows) > 10
    assert (windows[0][0], windows[-1][1]) == (None, None)
    assert all(first[1] == second[0] for first, second in pairwise(windows))


def test_no_window_counts_row_by_row():
    """DuckDB 1.5 evaluates count(*) FILTER over a growing window from its start, for each row."""
    counted = re.compile(r"count\(\*\)\s*FILTER\s*\([^()]*\)\s*OVER", re.IGNORECASE)
    assert [
        path.name for path in queries_folder().rglob("*.sql") if counted.search(path.read_text(encoding="utf-8"))
    ] == []


@pytest.mark.parametrize("fact", STATEMENTS)
def test_its_table_has_the_columns_of_its_statement(fact, sample):
    """`BY NAME` refuses a column too many; one that the statement lacks would be NULL without a word."""
    with open_trace(sample("churn")) as trace:
        trace.sql(f"SELECT count(*) FROM {next(name for name in shown(fact))}")
        columns = [name for name, *_ in trace._connection.duckdb.execute(f"DESCRIBE facts.{fact}").fetchall()]
        query = f"DESCRIBE {producers()[fact].query}"
        statement = [name for name, *_ in trace._connection.duckdb.execute(query).fetchall()]
    assert sorted(columns) == sorted(statement)


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_producer_of_one_statement_fills_the_table_of_its_name(name):
    assert producers()[name].tables == {name}
    assert producers()[name].fill.startswith(f"INSERT INTO facts.{name} BY NAME")


@pytest.mark.parametrize("name", MODULES)
def test_any_other_producer_has_a_module_of_its_name(name):
    assert callable(import_module(f"nsys_insight.facts.{name}").fill)
    assert producers()[name].tables
    assert producers()[producers()[name].scratch]


def test_options_are_declared_where_they_are_taken_and_follow_from_what_is_read():
    declared = {name: producer.options for name, producer in producers().items() if producer.options}
    assert declared == {"steps": {"steps"}, "gaps": {"min_gap_ns"}}
    of_steps, of_gaps = (
        {name for name in producers() if option in options_of(name)} for option in ("steps", "min_gap_ns")
    )
    assert of_steps == {
        "cpu_work", "critical_path", "fusion", "idle_charges", "ranks", "step_budget", "step_idle", "step_kernels",
        "steps",
    }  # fmt: skip
    assert of_gaps == {"explained_gaps", "gap_callers", "gaps"}


def test_every_fact_is_shown_and_every_one_that_is_read_is_there():
    assert all(shown(fact) for fact in STATEMENTS)
    read = {name for view in views.definitions().values() for name in view.mentions.of_schema("facts")}
    assert read <= every_table()


def shown(fact):
    return [view.name for view in views.documented().values() if fact in view.mentions.of_schema("facts")]


class TestBigExports:
    @pytest.fixture(autouse=True)
    def everything_is_big(self, monkeypatch, tmp_path):
        monkeypatch.setattr(open_strategies, "_BIG", 0)
        monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(tmp_path / "cache"))

    @pytest.mark.slow
    def test_a_diagnosis_is_of_a_copy_and_is_the_same(self, sample):
        with open_trace(sample("decode_eager")) as other:
            expected = other.diagnose().text()
        with nsys_insight.open(sample("decode_eager")) as trace:
            assert trace.diagnose().text() == expected
            assert trace._connection._files._strategies.cached
        assert store.find(sample("decode_eager"))

    @pytest.mark.slow
    def test_a_report_without_steps_reads_in_place(self, sample):
        with nsys_insight.open(sample("decode_eager")) as trace:
            for report in ("top", "gaps", "idle"):
                trace.answer(report)
            assert not store.find(sample("decode_eager"))
            trace.answer("classify")
        assert store.find(sample("decode_eager"))

    @pytest.mark.slow
    def test_without_the_cache_nothing_is_left(self, sample, tmp_path):
        with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
            trace.load()
            assert trace._connection._files._strategies.cached
            assert trace.answer("syncs").rows()
        assert not list(tmp_path.glob("cache/*.duckdb"))

    @pytest.mark.slow
    def test_where_it_cannot_be_copied_it_is_read_in_place(self, sample, monkeypatch):
        def full(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(store, "copies", full)
        with nsys_insight.open(sample("decode_eager")) as trace:
            trace.load()
            assert trace.answer("syncs").rows()
            assert not trace._connection._files._strategies.cached

    @pytest.mark.slow
    def test_definitions_and_earlier_answers_stay(self, sample):
        with nsys_insight.open(sample("decode_eager")) as trace:
            for statement in split("CREATE TEMP VIEW mine AS SELECT count(*) AS n FROM kernels"):
                trace.define(statement)
            before = trace.sql("FROM mine").item()
            top = trace.answer("top")
            trace.load()
            assert trace.sql("FROM mine").item() == before
            assert top.rows()
