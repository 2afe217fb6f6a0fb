"""Answers about small traces are worked out several at a time before they are asked for, and are what they would be."""

from __future__ import annotations

import re
import threading
import time
from graphlib import TopologicalSorter

import duckdb
import pytest
from sweeps import sweep

import nsys_insight
from nsys_insight.errors import QueryError
from nsys_insight.model.producers import facts_read, producer_of, producers
from nsys_insight.packs.library import built_in
from nsys_insight.session import connection, open_strategies, prefetch, stored_answers
from nsys_insight.session.prefetch import Question
from nsys_insight.sql.statements import split

REPORTS = [pack for pack in built_in().values() if pack.page]


def told(answer):
    """An answer; sums of fractions differ by the order of what is added, in their last digits."""
    rows = [[f"{cell:.12g}" if isinstance(cell, float) else cell for cell in row] for row in answer.rows()]
    return answer.columns, answer.notes, rows


@pytest.fixture
def worked_out(monkeypatch):
    """Give the threads in which answers were worked out, tables and rows."""
    threads = []

    def noting(work):
        def noted(*asked):
            threads.append(threading.current_thread().name)
            return work(*asked)

        return noted

    for name in ("store_answer", "read_rows"):
        monkeypatch.setattr(connection, name, noting(getattr(connection, name)))
    return threads


@pytest.mark.parametrize(
    "name", ["churn", *sweep(["decode_eager", "decode_graph_node", "decode_graph_whole", "decode_fresh"])]
)
def test_answers_are_those_to_questions_asked_one_by_one(name, sample, worked_out, found):
    with nsys_insight.open(sample(name)) as trace:
        one_by_one = {pack.name: told(trace.answer(pack)) for pack in REPORTS}
    once = set(found)
    found.clear()
    worked_out.clear()
    with nsys_insight.open(sample(name)) as trace:
        trace.load()
        trace.ahead((pack, {}) for pack in reversed(REPORTS))
        assert len(worked_out) == len(REPORTS)
        assert len(set(worked_out)) > 1
        assert {pack.name: told(trace.answer(pack)) for pack in REPORTS} == one_by_one
        assert len(worked_out) == len(REPORTS), "none was worked out again"
    assert set(found) == once
    assert len(found) == len(once), "each fact was found once"


@pytest.mark.slow
def test_queries_are_answered_ahead_as_well(sample, worked_out):
    queries = ["SELECT count(*) AS n FROM kernels", "SELECT count(*) AS n FROM steps"]
    with nsys_insight.open(sample("churn")) as trace:
        trace.ahead((), queries)
        assert len(worked_out) == 2
        rows = [trace.rows(query) for query in queries]
        assert len(worked_out) == 2
        trace.rows(queries[0])
        assert len(worked_out) == 3, "an answer is given once"
        trace.ahead((), [queries[0]])
        trace.ahead((), [queries[1], queries[0]])
        assert len(worked_out) == 5, "what is there is not worked out again"
        assert [trace.rows(query) for query in queries] == rows
    with nsys_insight.open(sample("churn")) as trace:
        assert [trace.rows(query) for query in queries] == rows


@pytest.mark.parametrize("is_ahead", [True, False])
def test_rows_are_those_of_an_answer_as_a_table(is_ahead, sample):
    """Times with a zone come as text: Python has no module for them unless it is installed."""
    query = (
        "SELECT to_timestamp(0) AS at, [to_timestamp(1)] AS more, number FROM range(3) AS n(number) ORDER BY ALL DESC"
    )
    with nsys_insight.open(sample("churn")) as trace:
        answer = trace.sql(query)
        if is_ahead:
            trace.ahead((), [query])
        assert [tuple(row) for row in trace.rows(query)] == answer.rows()
        if is_ahead:
            trace.ahead((), [query])
        assert trace.dicts(query) == answer.to_dicts()
        assert isinstance(trace.rows(query)[0].at, str)


@pytest.mark.slow
def test_what_fails_is_worked_out_again_when_it_is_asked_for(sample, monkeypatch):
    store_answer = stored_answers.store

    def failing(session, table, query):
        if "_launch_totals" in query:
            raise duckdb.BinderException("it fails")
        return store_answer(session, table, query)

    with nsys_insight.open(sample("churn")) as trace:
        monkeypatch.setattr(stored_answers, "store", failing)
        trace.ahead((pack, {}) for pack in REPORTS)
        with pytest.raises(QueryError, match="it fails"):
            trace.answer("classify")
        assert trace.answer("top").rows()
        monkeypatch.setattr(stored_answers, "store", store_answer)
        assert trace.answer("classify").rows()


@pytest.mark.slow
def test_facts_that_would_be_found_otherwise_are_left_until_they_are_asked_for(sample, worked_out):
    asked = [("per-token", {"tokens": 64}), ("steps", {}), ("top", {}), ("classify", {"tokens": 64})]
    with nsys_insight.open(sample("decode_eager")) as trace:
        one_by_one = [told(trace.answer(report, **params)) for report, params in asked]
    worked_out.clear()
    with nsys_insight.open(sample("decode_eager")) as trace:
        trace.ahead((built_in()[report], params) for report, params in asked)
        assert len(worked_out) == 3
        assert [told(trace.answer(report, **params)) for report, params in asked] == one_by_one
        assert len(worked_out) == 4


def test_answers_of_a_connection_that_is_used_no_more_are_not_given(sample):
    with nsys_insight.open(sample("churn")) as trace:
        trace.ahead([(built_in()["top"], {}), (built_in()["idle"], {})])
        trace._connection._files._strategies.repeat()
        trace._connection._files.open()
        assert trace.answer("top").rows()


@pytest.mark.parametrize("why", ["big", "one thread", "a limit of time", "definitions", "several"])
def test_some_questions_are_answered_one_by_one(why, sample, worked_out, monkeypatch):
    options = {"one thread": {"threads": 1}, "a limit of time": {"timeout_s": 60}}.get(why, {})
    if why == "big":
        monkeypatch.setattr(open_strategies, "_BIG", 0)
    path = [sample("churn"), sample("decode_fresh")] if why == "several" else sample("churn")
    with nsys_insight.open(path, **options) as trace:
        if why == "definitions":
            trace.define(*split("CREATE MACRO twice(x) AS 2 * x"))
        trace.ahead((pack, {}) for pack in REPORTS)
        assert not worked_out
        assert trace.answer("top").rows()


@pytest.mark.slow
def test_the_rows_of_a_small_trace_are_held_where_much_is_asked(sample):
    def held(trace):
        of_raw = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'held'"
        return {name for (name,) in trace._connection.duckdb.execute(of_raw).fetchall()}

    with nsys_insight.open(sample("churn")) as trace:
        trace.answer("top")
        assert not held(trace)
    with nsys_insight.open(sample("churn")) as trace:
        trace.load()
        trace.answer("top")
        assert "CUPTI_ACTIVITY_KIND_KERNEL" in held(trace)
        assert trace.rows("FROM devices")  # over what a view showed before
        assert "TARGET_INFO_CUDA_DEVICE" in held(trace)
    with nsys_insight.open(sample("churn")).scope(device=0) as trace:
        trace.load()
        trace.answer("top")
        assert not held(trace), "a scope has relations of its own"


@pytest.mark.slow
def test_who_interrupts_them_waits_for_none_that_have_not_begun():
    main, begun = duckdb.connect(), []

    def answer(session, asked):
        begun.append(asked)
        session.execute(asked.query)

    endless = "SELECT count(*) FROM range(1_000_000_000) AS a, range(1_000_000) AS b WHERE a.range < b.range"
    questions = [Question(f"{endless} AND {number} < 9") for number in range(6)]
    answers = prefetch.Prefetch()
    threading.Timer(0.5, answers.interrupt).start()
    began = time.perf_counter()
    answers.run(main, questions, answer)
    assert len(begun) == 2
    assert not any(answers.take(asked, main) for asked in questions)
    assert time.perf_counter() - began < 10


def test_no_two_facts_wait_for_each_other():
    """Each is found by one thread at a time, and while it is found those are that it is made of."""
    lock_of = {name: producer.scratch for name, producer in producers().items()}
    made_of = {lock: set() for lock in lock_of.values()}
    for name, lock in lock_of.items():
        texts = (part for statement in producers()[name].statements for part in re.split(r";\s*\n", statement))
        read = {table for text in texts for table in facts_read(text)}
        made_of[lock] |= {lock_of[producer_of(table).name] for table in read} - {lock}
    assert made_of["steps"] >= {"waits", "gpu_reach"}
    TopologicalSorter(made_of).prepare()  # which raises if there is a circle
