"""Facts: each is computed once a session, when it is first read, with every way to open the trace."""

from __future__ import annotations

import re
from importlib import import_module
from itertools import pairwise

import our_sql
import pytest
from opening import open_trace

import nsys_insight
from nsys_insight.errors import UsageError
from nsys_insight.facts import idle, operations
from nsys_insight.ingest import store
from nsys_insight.model import views
from nsys_insight.model.producers import all_producers, fact_tables, get_producer, options_of
from nsys_insight.session import open_strategies
from nsys_insight.sql.statements import split_statements

STATEMENTS = [producer.name for producer in all_producers().values() if producer.query]
MODULES = [name for name in all_producers() if name not in STATEMENTS]


@pytest.mark.slow
def test_a_fact_is_computed_once_and_after_the_facts_it_reads(sample, computed_facts):
    with nsys_insight.open(sample("decode_eager")) as trace:
        trace.answer("classify")
        first = list(computed_facts)
        trace.answer("classify")
        trace.answer("host")
        trace.sql("FROM waits, steps LIMIT 1")
    assert len(first) == len(set(first)) == len(set(computed_facts) & set(first))
    assert first.index("waits") < first.index("steps") < first.index("step_budget")
    assert first.index("idle") < first.index("step_budget")
    assert computed_facts.count("steps") == 1


@pytest.mark.slow
def test_facts_about_steps_are_computed_again_for_other_step_options(sample, computed_facts):
    with nsys_insight.open(sample("decode_eager")) as trace:
        default_rows = trace.answer("classify").rows()
        assert trace.answer("classify", tokens=64).rows() != default_rows
        assert [computed_facts.count(name) for name in ("steps", "step_budget", "waits")] == [2, 2, 1]
        assert trace.answer("classify").rows() == default_rows


def test_only_facts_that_are_read_are_computed(sample, computed_facts):
    with nsys_insight.open(sample("churn")) as trace:
        trace.answer("top")
    # Every report checks whether data is missing, which takes a query of a few rows.
    assert set(computed_facts) == {"api_names", "demangled_names", "unrecorded"}


@pytest.mark.slow
def test_rules_that_do_not_apply_compute_no_facts(sample, computed_facts):
    """The trace has one stream, no long kernels of few blocks, and single conversions to 16 bits."""
    with nsys_insight.open(sample("decode_eager")) as trace:
        trace.diagnose()
    assert not {"stream_times", "nvtx_places"} & set(computed_facts)


def test_a_fact_that_failed_is_computed_later(sample, monkeypatch):
    from nsys_insight.facts import steps

    fill = steps.fill
    with nsys_insight.open(sample("churn")) as trace:
        monkeypatch.setattr(steps, "fill", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            trace.answer("steps")
        monkeypatch.setattr(steps, "fill", fill)
        assert trace.answer("steps").rows()


def test_after_options_that_fail_the_answer_is_the_one_before(sample):
    with nsys_insight.open(sample("decode_eager")) as trace:
        rows = trace.answer("steps").rows()
        with pytest.raises(UsageError, match="there is no loop 9"):
            trace.answer("steps", loop="9")
        assert trace.answer("steps").rows() == rows


@pytest.mark.parametrize("name", ["decode_eager", "decode_graph_node", "churn"])
def test_windowed_joins_of_operations_with_calls_give_the_same_facts(sample, name, monkeypatch):
    queries = (
        "FROM facts.idle_time ORDER BY ALL", "FROM facts.idle_calls ORDER BY ALL",
        "FROM facts.steps ORDER BY ALL", "FROM facts.step_kernels ORDER BY ALL",
        "FROM facts.step_launches ORDER BY ALL",
    )  # fmt: skip

    def read_tables():
        with open_trace(sample(name)) as trace:
            trace.answer("classify")
            trace.answer("pace")
            return [trace._connection.duckdb.execute(sql).fetchall() for sql in queries]

    unsplit_rows = read_tables()
    monkeypatch.setattr(operations, "OPERATIONS_PER_JOIN", 100)
    monkeypatch.setattr(idle, "OPERATIONS_PER_WINDOW", 100)
    assert read_tables() == unsplit_rows


def test_the_windows_hold_every_correlation_id_once(sample, monkeypatch):
    monkeypatch.setattr(operations, "OPERATIONS_PER_JOIN", 100)
    with open_trace(sample("decode_eager")) as trace:
        trace.answer("idle")
        windows = operations.call_windows(trace._connection.duckdb)
    assert len(windows) > 10
    assert (windows[0][0], windows[-1][1]) == (None, None)
    assert all(first[1] == second[0] for first, second in pairwise(windows))


def test_no_window_counts_row_by_row():
    """DuckDB 1.5 evaluates count(*) FILTER over a growing window from its start, for each row."""
    count_pattern = re.compile(r"count\(\*\)\s*FILTER\s*\([^()]*\)\s*OVER", re.IGNORECASE)
    assert [path for path in our_sql.list_files() if count_pattern.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("fact", STATEMENTS)
def test_a_fact_has_the_columns_and_types_that_its_query_has_on_a_trace(fact, sample):
    """The columns of its table come from the query on the empty model."""
    with open_trace(sample("churn")) as trace:
        trace.sql(f"SELECT count(*) FROM {next(name for name in list_documented_views(fact))}")
        table, query = (
            [(name, kind) for name, kind, *_ in trace._connection.duckdb.execute(f"DESCRIBE {relation}").fetchall()]
            for relation in (f"facts.{fact}", get_producer(fact).query)
        )
    assert table == query


@pytest.mark.parametrize("name", MODULES)
def test_any_other_producer_has_a_module_of_its_name(name):
    assert callable(import_module(f"nsys_insight.facts.{name}").fill)
    assert all_producers()[name].tables
    assert all_producers()[all_producers()[name].scratch]


def test_a_fact_is_not_planned_without_what_it_needs(sample, computed_facts):
    with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
        assert trace.answer("cpu-work").row_count == 0
    assert "cpu_work" in computed_facts
    assert "nested_ranges" not in computed_facts


def test_options_are_declared_by_producers_and_passed_on_to_their_readers():
    declared = {name: producer.options for name, producer in all_producers().items() if producer.options}
    assert declared == {"steps": {"steps"}, "gaps": {"min_gap_ns"}}
    steps_producers, gap_producers = (
        {name for name in all_producers() if option in options_of(name)} for option in ("steps", "min_gap_ns")
    )
    assert steps_producers == {
        "cpu_work", "critical_path", "frameworks", "fusion", "idle_charges", "launch_waits", "operation_groups",
        "ranks", "repetitions", "short_loops", "step_budget", "step_idle", "step_source", "steady_shapes",
        "steady_windows", "step_kernels", "step_limits", "step_operations", "step_totals", "steps", "unprofiled_step",
    }  # fmt: skip
    assert gap_producers == {"explained_gaps", "gap_callers", "gaps"}


def test_every_fact_is_in_a_view_and_every_table_read_by_a_view_exists():
    assert all(list_documented_views(fact) for fact in STATEMENTS)
    tables_read = {name for view in views.definitions().values() for name in view.mentions.relations_in("facts")}
    assert tables_read <= fact_tables().keys()


def list_documented_views(fact):
    return [view.name for view in views.documented_views().values() if fact in view.mentions.relations_in("facts")]


class TestBigExports:
    @pytest.fixture(autouse=True)
    def treat_exports_as_big(self, monkeypatch, tmp_path):
        monkeypatch.setattr(open_strategies, "_BIG_BYTES", 0)
        monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(tmp_path / "cache"))

    @pytest.mark.slow
    def test_a_diagnosis_reads_a_copy_and_is_the_same(self, sample):
        with open_trace(sample("decode_eager")) as reference:
            expected = reference.diagnose().text()
        with nsys_insight.open(sample("decode_eager")) as trace:
            assert trace.diagnose().text() == expected
            assert trace._connection.files._strategies.cached
        assert store.find_entry(sample("decode_eager"))

    @pytest.mark.slow
    def test_a_report_without_steps_reads_in_place(self, sample):
        with nsys_insight.open(sample("decode_eager")) as trace:
            for report in ("top", "gaps", "api"):
                trace.answer(report)
            assert not store.find_entry(sample("decode_eager"))
            trace.answer("classify")
        assert store.find_entry(sample("decode_eager"))

    @pytest.mark.slow
    def test_without_the_cache_no_file_remains(self, sample, tmp_path):
        with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
            trace.load()
            assert trace._connection.files._strategies.cached
            assert trace.answer("syncs").rows()
        assert not list(tmp_path.glob("cache/*.duckdb"))

    @pytest.mark.slow
    def test_an_export_that_cannot_be_copied_is_read_in_place(self, sample, monkeypatch):
        def full(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(store, "make_copies", full)
        with nsys_insight.open(sample("decode_eager")) as trace:
            trace.load()
            assert trace.answer("syncs").rows()
            assert not trace._connection.files._strategies.cached

    @pytest.mark.slow
    def test_definitions_and_earlier_answers_stay(self, sample):
        with nsys_insight.open(sample("decode_eager")) as trace:
            for statement in split_statements("CREATE TEMP VIEW mine AS SELECT count(*) AS n FROM kernels"):
                trace.define(statement)
            before = trace.sql("FROM mine").item()
            top = trace.answer("top")
            trace.load()
            assert trace.sql("FROM mine").item() == before
            assert top.rows()
