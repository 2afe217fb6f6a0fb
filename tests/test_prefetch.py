"""Answers about small traces are calculated in parallel before they are requested, with the same results."""

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
from nsys_insight.model.producers import all_producers, facts_read, producer_of
from nsys_insight.packs.library import built_in_packs
from nsys_insight.session import connection, open_strategies, prefetch, stored_answers
from nsys_insight.session.prefetch import Question
from nsys_insight.sql.statements import split_statements

REPORTS = [pack for pack in built_in_packs().values() if pack.page]


def comparable_answer(answer):
    """Return an answer for comparison. The last digits of floats are dropped: they depend on the order of adding."""
    rows = [[f"{cell:.12g}" if isinstance(cell, float) else cell for cell in row] for row in answer.rows()]
    return answer.columns, answer.notes, rows


@pytest.fixture
def answer_threads(monkeypatch):
    """Return the names of the threads that calculated answers, both tables and rows."""
    threads = []

    def record_thread(function):
        def call_and_record(*arguments):
            # Once in a session, the text of an empty answer asks whether there is GPU work.
            if not any("FROM gpu_ops LIMIT 1" in str(argument) for argument in arguments[1:]):
                threads.append(threading.current_thread().name)
            return function(*arguments)

        return call_and_record

    for name in ("store_answer", "read_rows"):
        monkeypatch.setattr(connection, name, record_thread(getattr(connection, name)))
    return threads


@pytest.mark.parametrize(
    "name", ["churn", *sweep(["decode_eager", "decode_graph_node", "decode_graph_whole", "decode_fresh"])]
)
def test_prefetched_answers_equal_those_given_one_by_one(name, sample, answer_threads, computed_facts):
    with nsys_insight.open(sample(name)) as trace:
        one_by_one = {pack.name: comparable_answer(trace.answer(pack)) for pack in REPORTS}
    facts_before = set(computed_facts)
    computed_facts.clear()
    answer_threads.clear()
    with nsys_insight.open(sample(name)) as trace:
        trace.load()
        trace.prefetch((pack, {}) for pack in reversed(REPORTS))
        assert len(answer_threads) == len(REPORTS)
        assert len(set(answer_threads)) > 1
        assert {pack.name: comparable_answer(trace.answer(pack)) for pack in REPORTS} == one_by_one
        # The advice of the report without rows, about NVTX, reads how the trace was captured.
        assert len(answer_threads) <= len(REPORTS) + 1, "no answer is calculated again"
    assert set(computed_facts) == facts_before
    assert len(computed_facts) == len(facts_before), "each fact is calculated once"


@pytest.mark.slow
def test_queries_are_prefetched_too(sample, answer_threads):
    queries = ["SELECT count(*) AS n FROM kernels", "SELECT count(*) AS n FROM steps"]
    with nsys_insight.open(sample("churn")) as trace:
        trace.prefetch((), queries)
        assert len(answer_threads) == 2
        rows = [trace.rows(query) for query in queries]
        assert len(answer_threads) == 2
        trace.rows(queries[0])
        assert len(answer_threads) == 3, "an answer is given once"
        trace.prefetch((), [queries[0]])
        trace.prefetch((), [queries[1], queries[0]])
        assert len(answer_threads) == 5, "an existing answer is not calculated again"
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
            trace.prefetch((), [query])
        assert [tuple(row) for row in trace.rows(query)] == answer.rows()
        if is_ahead:
            trace.prefetch((), [query])
        assert trace.dicts(query) == answer.to_dicts()
        assert isinstance(trace.rows(query)[0].at, str)


@pytest.mark.slow
def test_a_failed_answer_is_calculated_again_on_request(sample, monkeypatch):
    store_answer = stored_answers.store_result

    def failing(session, table, query):
        if "_launch_totals" in query:
            raise duckdb.BinderException("it fails")
        return store_answer(session, table, query)

    with nsys_insight.open(sample("churn")) as trace:
        monkeypatch.setattr(stored_answers, "store_result", failing)
        trace.prefetch((pack, {}) for pack in REPORTS)
        with pytest.raises(QueryError, match="it fails"):
            trace.answer("classify")
        assert trace.answer("top").rows()
        monkeypatch.setattr(stored_answers, "store_result", store_answer)
        assert trace.answer("classify").rows()


@pytest.mark.slow
def test_a_question_with_other_fact_options_is_not_prefetched(sample, answer_threads):
    questions = [("per-token", {"tokens": 64}), ("steps", {}), ("top", {}), ("classify", {"tokens": 64})]
    with nsys_insight.open(sample("decode_eager")) as trace:
        one_by_one = [comparable_answer(trace.answer(report, **params)) for report, params in questions]
    answer_threads.clear()
    with nsys_insight.open(sample("decode_eager")) as trace:
        trace.prefetch((built_in_packs()[report], params) for report, params in questions)
        assert len(answer_threads) == 3
        assert [comparable_answer(trace.answer(report, **params)) for report, params in questions] == one_by_one
        assert len(answer_threads) == 4


def test_answers_of_a_replaced_connection_are_discarded(sample):
    with nsys_insight.open(sample("churn")) as trace:
        trace.prefetch([(built_in_packs()["top"], {}), (built_in_packs()["idle"], {})])
        trace._connection.files._strategies.repeat()
        trace._connection.files.open()
        assert trace.answer("top").rows()


@pytest.mark.parametrize("reason", ["big", "one thread", "a limit of time", "definitions", "several"])
def test_some_questions_are_answered_one_by_one(reason, sample, answer_threads, monkeypatch):
    options = {"one thread": {"threads": 1}, "a limit of time": {"timeout_s": 60}}.get(reason, {})
    if reason == "big":
        monkeypatch.setattr(open_strategies, "_BIG_BYTES", 0)
    path = [sample("churn"), sample("decode_fresh")] if reason == "several" else sample("churn")
    with nsys_insight.open(path, **options) as trace:
        if reason == "definitions":
            trace.define(*split_statements("CREATE MACRO twice(x) AS 2 * x"))
        trace.prefetch((pack, {}) for pack in REPORTS)
        assert not answer_threads
        assert trace.answer("top").rows()


@pytest.mark.slow
def test_the_rows_of_a_small_trace_are_materialized_for_many_questions(sample):
    def list_materialized_tables(trace):
        query = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'in_memory'"
        return {name for (name,) in trace._connection.duckdb.execute(query).fetchall()}

    with nsys_insight.open(sample("churn")) as trace:
        trace.answer("top")
        assert not list_materialized_tables(trace)
    with nsys_insight.open(sample("churn")) as trace:
        trace.load()
        trace.answer("top")
        assert "CUPTI_ACTIVITY_KIND_KERNEL" in list_materialized_tables(trace)
        assert trace.rows("FROM devices")  # reads a view that was queried before
        assert "TARGET_INFO_CUDA_DEVICE" in list_materialized_tables(trace)
    with nsys_insight.open(sample("churn")).scope(device=0) as trace:
        trace.load()
        trace.answer("top")
        assert not list_materialized_tables(trace), "a scope has relations of its own"


@pytest.mark.slow
def test_an_interrupt_does_not_wait_for_questions_that_have_not_started():
    main, started_questions = duckdb.connect(), []

    def answer(session, question):
        started_questions.append(question)
        session.execute(question.query)

    endless = "SELECT count(*) FROM range(1_000_000_000) AS a, range(1_000_000) AS b WHERE a.range < b.range"
    questions = [Question(f"{endless} AND {number} < 9") for number in range(6)]
    answers = prefetch.Prefetch()
    threading.Timer(0.5, answers.interrupt).start()
    started_s = time.perf_counter()
    answers.run(main, questions, answer)
    assert len(started_questions) == 2
    assert not any(answers.take(question, main) for question in questions)
    assert time.perf_counter() - started_s < 10


def test_no_two_facts_wait_for_each_other():
    """One thread at a time calculates each fact. Meanwhile it waits for the facts that this one needs."""
    lock_by_fact = {name: producer.scratch for name, producer in all_producers().items()}
    needed_locks = {lock: set() for lock in lock_by_fact.values()}
    for name, lock in lock_by_fact.items():
        texts = (part for statement in all_producers()[name].statements for part in re.split(r";\s*\n", statement))
        tables_read = {table for text in texts for table in facts_read(text)}
        needed_locks[lock] |= {lock_by_fact[producer_of(table).name] for table in tables_read} - {lock}
    assert needed_locks["steps"] >= {"waits", "gpu_reach"}
    TopologicalSorter(needed_locks).prepare()  # which raises if there is a circle
