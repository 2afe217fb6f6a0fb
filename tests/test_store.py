"""The cache file of a big trace stores facts and answers for later questions."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from contextlib import suppress

import duckdb
import pytest

import nsys_insight
from nsys_insight.cli.main import main
from nsys_insight.errors import QueryError
from nsys_insight.facts import operations
from nsys_insight.ingest import cache_entries, store
from nsys_insight.ingest.scope import FULL_TRACE
from nsys_insight.session import open_strategies, stored_answers
from nsys_insight.session import store as session_store
from nsys_insight.session.prefetch import Question
from nsys_insight.sql.statements import split_statements

ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b"


@pytest.fixture(autouse=True)
def big(monkeypatch):
    """Treat every export as big, and every answer as worth storing."""
    monkeypatch.setattr(open_strategies, "_BIG_BYTES", 0)
    monkeypatch.setattr(session_store, "_MIN_SAVED_S", 0)


@pytest.fixture
def facts_only(monkeypatch):
    """Store no answers, so that the next question reads the facts."""
    monkeypatch.setattr(session_store, "_MIN_SAVED_S", 1e9)


@pytest.fixture
def executed_queries(monkeypatch):
    """Collect the queries that are run, instead of read from the cache."""
    queries, store_result = [], stored_answers.store_result

    def record_and_store(session, table, query):
        queries.append(query)
        return store_result(session, table, query)

    monkeypatch.setattr(stored_answers, "store_result", record_and_store)
    return queries


def ask(path, report, scope=FULL_TRACE, **params):
    with nsys_insight.open(path, scope=scope) as trace:
        answer = trace.answer(report, **params)
        return answer.columns, answer.notes, answer.rows()


def list_cache_files(cache):
    """List the cache files of exports."""
    return [path for path in cache.glob("*.duckdb") if not path.name.startswith("model-")]


def stored_tables(cache, schema):
    """List the tables of a schema in the cache files."""
    tables = set()
    for path in list_cache_files(cache):
        with duckdb.connect(path, read_only=True) as database:
            query = f"SELECT table_name FROM duckdb_tables() WHERE schema_name = '{schema}' AND table_name <> 'notes'"
            tables |= {name for (name,) in database.execute(query).fetchall()}
    return tables


# Facts


@pytest.mark.slow
@pytest.mark.parametrize("report", ["idle", "classify", "host", "gaps", "fusion"])
def test_the_next_question_finds_the_facts_of_the_last_one(report, sample, cache, computed_facts):
    first = ask(sample("decode_eager"), report)
    assert computed_facts
    assert stored_tables(cache, "facts")
    computed_facts.clear()
    assert ask(sample("decode_eager"), report) == first
    assert not computed_facts


@pytest.mark.slow
def test_another_question_adds_to_the_facts(facts_only, sample, cache, computed_facts):
    ask(sample("decode_eager"), "idle")
    idle = set(computed_facts)
    ask(sample("decode_eager"), "classify")
    assert stored_tables(cache, "facts")
    computed_facts.clear()
    ask(sample("decode_eager"), "classify")
    ask(sample("decode_eager"), "idle")
    assert idle
    assert not computed_facts


@pytest.mark.slow
def test_step_options_apply_to_one_question(facts_only, sample, cache, computed_facts):
    default_answer = ask(sample("decode_eager"), "per-token")
    other = ask(sample("decode_eager"), "per-token", tokens=64)
    assert other != default_answer
    computed_facts.clear()
    assert ask(sample("decode_eager"), "per-token") == default_answer
    assert not computed_facts


@pytest.mark.slow
def test_a_scoped_trace_neither_stores_nor_reads_facts(facts_only, sample, cache, computed_facts):
    full_answer = ask(sample("decode_eager"), "idle")
    computed_facts.clear()
    with nsys_insight.open(sample("decode_eager"), scope=FULL_TRACE.narrowed(nvtx="decode_step")) as trace:
        assert trace.answer("idle").rows() != full_answer
    assert "idle" in computed_facts
    assert stored_tables(cache, "facts")


def test_without_the_cache_no_facts_are_stored(sample, cache):
    with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
        assert trace.answer("idle").rows()
    assert not cache.exists() or not list(cache.iterdir())


@pytest.mark.slow
def test_facts_are_not_those_of_another_trace_in_the_same_place(sample, cache, tmp_path):
    path = tmp_path / "trace.sqlite"
    shutil.copy(sample("decode_eager"), path)
    first = ask(path, "idle")
    shutil.copy(sample("churn"), path)
    assert ask(path, "idle") == ask(sample("churn"), "idle") != first


@pytest.mark.slow
def test_facts_of_other_definitions_are_not_used(facts_only, sample, cache, computed_facts, monkeypatch):
    ask(sample("decode_eager"), "idle")
    computed_facts.clear()
    monkeypatch.setattr(session_store, "digest_definitions", lambda: "another version")
    ask(sample("decode_eager"), "idle")
    assert computed_facts


@pytest.mark.slow
def test_answers_from_the_file_are_those_from_memory(sample, cache, monkeypatch):
    reports = ("idle", "classify", "syncs", "streams", "steps", "host", "pace")
    filed = {report: ask(sample("churn"), report) for report in reports}
    monkeypatch.setattr(open_strategies, "_BIG_BYTES", 10**12)
    assert {report: ask(sample("churn"), report) for report in reports} == filed


def stops_on_interrupt(trace, ask, wait_for_start):
    """Return whether a running question ends within ten seconds after it is interrupted."""
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    assert wait_for_start()
    start = time.monotonic()
    while thread.is_alive() and time.monotonic() < start + 10:
        trace._connection.interrupt()
        thread.join(0.05)
    return not thread.is_alive()


def test_an_interrupt_stops_the_copy_for_the_question(sample, monkeypatch):
    has_started = threading.Event()

    def copy_endlessly(connection, *_, **__):
        has_started.set()
        connection.execute(ENDLESS)

    monkeypatch.setattr(store, "copy_export", copy_endlessly)

    def ask():
        with suppress(duckdb.Error):
            trace._connection.files.load()

    with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
        assert stops_on_interrupt(trace, ask, lambda: has_started.wait(10))


@pytest.mark.slow
def test_steps_and_phases_share_one_table_of_operations(facts_only, sample, cache, monkeypatch):
    reads, call_windows = [], operations.call_windows

    def record_and_read(connection):
        reads.append(connection)
        return call_windows(connection)

    monkeypatch.setattr(operations, "call_windows", record_and_read)

    def read_phases():
        with nsys_insight.open(sample("decode_eager")) as trace:
            trace.rows("FROM steps")
            return trace.rows("FROM phase_steps ORDER BY phase_step")

    in_file = read_phases()
    assert len(reads) == 1
    monkeypatch.setattr(open_strategies, "_BIG_BYTES", 10**12)
    assert read_phases() == in_file != []
    assert len(reads) == 2  # in memory, too


@pytest.mark.slow
def test_without_a_writable_cache_folder_the_answer_is_the_same(sample, cache, monkeypatch):
    first = ask(sample("decode_eager"), "idle")
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", "/proc/nsys-insight")
    assert ask(sample("decode_eager"), "idle") == first


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root mounts a small disk")
@pytest.mark.parametrize("size_kb", [12, 16, 64, 500])
def test_on_a_full_disk_facts_are_computed_in_memory(sample, tmp_path, monkeypatch, size_kb):
    with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
        expected = trace.answer("idle").rows()
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_kb}k", "none", disk]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(disk / "cache"))
        assert ask(sample("decode_eager"), "idle")[-1] == expected
        assert not list(disk.rglob(".nsys-insight-*"))
    finally:
        subprocess.run(["umount", "-l", disk], check=True)  # this process still has open files


# Answers


@pytest.mark.slow
@pytest.mark.parametrize(
    "report", ["top", "idle", "classify", "host", "steps", "fusion", "per-token", "nvtx", "copies"]
)
def test_a_stored_answer_has_its_columns_and_notes(report, sample, executed_queries):
    first = ask(sample("decode_eager"), report)
    assert executed_queries
    executed_queries.clear()
    assert ask(sample("decode_eager"), report) == first
    assert not executed_queries


@pytest.mark.slow
@pytest.mark.parametrize("command", ["diagnose", "report"])
def test_a_diagnosis_and_a_page_use_stored_answers(command, sample, executed_queries, tmp_path, monkeypatch):
    path = tmp_path / "answer.html" if command == "report" else tmp_path / "answer.md"

    def run():
        path.unlink(missing_ok=True)
        words = ["nsys-insight", command, sample("decode_eager"), "-o", path]
        monkeypatch.setattr("sys.argv", [*map(str, words)])
        with pytest.raises(SystemExit, match="0"):
            main()
        return path.read_text()

    first = run()
    assert executed_queries
    executed_queries.clear()
    assert run() == first
    assert not executed_queries


@pytest.mark.slow
def test_another_question_adds_to_the_answers(sample, cache, executed_queries):
    ask(sample("decode_eager"), "top")
    ask(sample("decode_eager"), "idle")
    executed_queries.clear()
    ask(sample("decode_eager"), "top")
    ask(sample("decode_eager"), "idle")
    assert not executed_queries
    assert len(list_cache_files(cache)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("report", "params"),
    [("per-token", {"tokens": 64}), ("gaps", {"min_gap_ns": 50_000}), ("top", {"group_by": "nvtx"})],
)
def test_a_question_with_other_options_is_another_one(report, params, sample):
    default_answer = ask(sample("decode_eager"), report)
    other = ask(sample("decode_eager"), report, **params)
    assert other != default_answer
    assert ask(sample("decode_eager"), report, **params) == other
    assert ask(sample("decode_eager"), report) == default_answer


@pytest.mark.slow
def test_a_scoped_trace_neither_stores_nor_reads_answers(sample, cache, executed_queries):
    part = FULL_TRACE.narrowed(nvtx="decode_step")
    ask(sample("decode_eager"), "top", part)
    assert not stored_tables(cache, "results")
    full_answer = ask(sample("decode_eager"), "top")
    executed_queries.clear()
    assert ask(sample("decode_eager"), "top", part) != full_answer
    assert executed_queries


@pytest.mark.slow
def test_with_user_definitions_no_stored_answer_is_read(sample, executed_queries):
    with nsys_insight.open(sample("decode_eager")) as trace:
        before = trace.answer("top").rows()
    executed_queries.clear()
    with nsys_insight.open(sample("decode_eager")) as trace:
        (definition,) = split_statements("CREATE MACRO twice(x) AS 2 * x")
        trace.define(definition)
        assert trace.answer("top").rows() == before
    assert executed_queries


def test_a_user_query_is_run_each_time(sample, cache, executed_queries):
    for _ in range(2):
        executed_queries.clear()
        with nsys_insight.open(sample("decode_eager")) as trace:
            trace.query("SELECT count(*) FROM kernels")
        assert executed_queries
    assert not stored_tables(cache, "results")


@pytest.mark.slow
def test_an_answer_is_not_that_of_another_trace_in_the_same_place(sample, tmp_path):
    path = tmp_path / "trace.sqlite"
    shutil.copy(sample("decode_eager"), path)
    first = ask(path, "top")
    shutil.copy(sample("churn"), path)
    assert ask(path, "top") == ask(sample("churn"), "top") != first


@pytest.mark.slow
def test_an_answer_of_other_definitions_is_not_used(sample, executed_queries, monkeypatch):
    ask(sample("decode_eager"), "top")
    executed_queries.clear()
    monkeypatch.setattr(session_store, "digest_definitions", lambda: "another version")
    ask(sample("decode_eager"), "top")
    assert executed_queries


def test_answers_with_and_without_ncu_data_have_different_keys(sample, tmp_path):
    (tmp_path / "trace.ncu.duckdb").touch()
    keys = set()
    for ncu in (None, tmp_path / "trace.ncu.duckdb"):
        answers = session_store.Store(duckdb.connect(), sample("decode_eager"), ncu, is_persistent=False)
        keys.add(answers._key("internal.answer_1", Question("FROM a")))
        answers.close()
    assert len(keys) == 2


def test_the_key_of_a_derived_answer_depends_on_its_source(sample):
    answers = session_store.Store(duckdb.connect(), sample("decode_eager"), None, is_persistent=False)
    first_key, second_key = (
        answers._key(f"internal.answer_{number}", Question(f"SELECT {number}")) for number in (1, 2)
    )
    derived_keys = [
        answers._key(f"internal.answer_{number + 2}", Question(f"FROM internal.answer_{number}")) for number in (1, 2)
    ]
    repeated_key = answers._key("internal.answer_5", Question("SELECT 1"))
    assert repeated_key == first_key != second_key
    assert derived_keys[0] != derived_keys[1]
    assert answers._key("internal.answer_6", Question("FROM internal.answer_5")) == derived_keys[0]
    assert not answers._key("internal.answer_7", Question("FROM internal.answer_99"))
    answers.close()


@pytest.mark.slow
def test_a_long_answer_is_not_stored(sample, executed_queries, monkeypatch):
    monkeypatch.setattr(store, "_MAX_ROWS", 3)
    ask(sample("decode_eager"), "top")
    executed_queries.clear()
    ask(sample("decode_eager"), "top")
    assert executed_queries


def test_quick_answers_are_not_stored(sample, cache, monkeypatch):
    monkeypatch.setattr(session_store, "_MIN_SAVED_S", 1000)
    ask(sample("decode_eager"), "top")
    assert not stored_tables(cache, "results")


@pytest.mark.slow
def test_the_oldest_of_many_answers_are_removed(sample, executed_queries, monkeypatch):
    monkeypatch.setattr(store, "_MAX_RESULTS", 1)
    ask(sample("decode_eager"), "top")
    ask(sample("decode_eager"), "idle")
    executed_queries.clear()
    ask(sample("decode_eager"), "idle")
    assert not executed_queries
    ask(sample("decode_eager"), "top")
    assert executed_queries


def test_without_the_cache_no_answer_is_stored(sample, cache):
    with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
        trace.answer("top").rows()
    assert not cache.exists() or not list(cache.iterdir())


@pytest.mark.slow
def test_a_damaged_file_is_built_again(sample, cache, monkeypatch):
    first = ask(sample("decode_eager"), "top")
    (path,) = list_cache_files(cache)
    status, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 4 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 4)
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    monkeypatch.setattr(cache_entries, "_is_intact", lambda _: True)
    assert ask(sample("decode_eager"), "top") == first
    assert ask(sample("decode_eager"), "top") == first


@pytest.mark.slow
def test_an_interrupted_read_does_not_damage_stored_answers(sample, cache, executed_queries, monkeypatch):
    ask(sample("decode_eager"), "top")

    def interrupt(*_):
        raise duckdb.InterruptException

    with nsys_insight.open(sample("decode_eager")) as trace, monkeypatch.context() as patched:
        patched.setattr(session_store.Store, "take", interrupt)
        with pytest.raises(QueryError):
            trace.answer("top")
    assert stored_tables(cache, "results")
    executed_queries.clear()
    ask(sample("decode_eager"), "top")
    assert not executed_queries


def test_batches_are_read_from_the_work_file(sample):
    with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
        answer = trace.answer("launches")
        assert [row for batch in answer.batches() for row in batch] == answer.rows() != []
