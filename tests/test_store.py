"""The cache file of a big trace: facts and answers of one question stay for the next one."""

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
from nsys_insight.ingest.scope import WHOLE_TRACE
from nsys_insight.session import open_strategies, stored_answers
from nsys_insight.session import store as session_store
from nsys_insight.session.prefetch import Question
from nsys_insight.sql.statements import split

ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b"


@pytest.fixture(autouse=True)
def big(monkeypatch):
    """Every export is a big one, and every answer is worth keeping."""
    monkeypatch.setattr(open_strategies, "_BIG", 0)
    monkeypatch.setattr(session_store, "_WORTH_S", 0)


@pytest.fixture
def facts_alone(monkeypatch):
    """Keep no answers, so that the next question asks for facts."""
    monkeypatch.setattr(session_store, "_WORTH_S", 1e9)


@pytest.fixture
def worked_out(monkeypatch):
    """Give the queries that are run, and not read."""
    queries, put = [], stored_answers.store

    def noting(session, table, query):
        queries.append(query)
        return put(session, table, query)

    monkeypatch.setattr(stored_answers, "store", noting)
    return queries


def ask(path, report, scope=WHOLE_TRACE, **params):
    with nsys_insight.open(path, scope=scope) as trace:
        answer = trace.answer(report, **params)
        return answer.columns, answer.notes, answer.rows()


def files(cache):
    """Give the cache files of exports."""
    return [path for path in cache.glob("*.duckdb") if not path.name.startswith("model-")]


def kept(cache, schema):
    """Give the tables of a schema in the cache files."""
    tables = set()
    for path in files(cache):
        with duckdb.connect(path, read_only=True) as opened:
            named = f"SELECT table_name FROM duckdb_tables() WHERE schema_name = '{schema}' AND table_name <> 'notes'"
            tables |= {name for (name,) in opened.execute(named).fetchall()}
    return tables


# Facts


@pytest.mark.slow
@pytest.mark.parametrize("report", ["idle", "classify", "host", "gaps", "fusion"])
def test_the_next_question_finds_the_facts_of_the_last_one(report, sample, cache, found):
    first = ask(sample("decode_eager"), report)
    assert found
    assert kept(cache, "facts")
    found.clear()
    assert ask(sample("decode_eager"), report) == first
    assert not found


@pytest.mark.slow
def test_another_question_adds_to_the_facts(facts_alone, sample, cache, found):
    ask(sample("decode_eager"), "idle")
    idle = set(found)
    ask(sample("decode_eager"), "classify")
    assert kept(cache, "facts")
    found.clear()
    ask(sample("decode_eager"), "classify")
    ask(sample("decode_eager"), "idle")
    assert idle
    assert not found


@pytest.mark.slow
def test_what_the_user_says_about_steps_holds_for_one_question(facts_alone, sample, cache, found):
    usual = ask(sample("decode_eager"), "per-token")
    other = ask(sample("decode_eager"), "per-token", tokens=64)
    assert other != usual
    found.clear()
    assert ask(sample("decode_eager"), "per-token") == usual
    assert not found


@pytest.mark.slow
def test_of_a_part_of_a_trace_nothing_stays_and_nothing_is_taken(facts_alone, sample, cache, found):
    whole = ask(sample("decode_eager"), "idle")
    found.clear()
    with nsys_insight.open(sample("decode_eager"), scope=WHOLE_TRACE.narrowed(nvtx="decode_step")) as trace:
        assert trace.answer("idle").rows() != whole
    assert "idle" in found
    assert kept(cache, "facts")


def test_without_the_cache_no_fact_stays(sample, cache):
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
def test_facts_that_were_found_in_another_way_are_not_used(facts_alone, sample, cache, found, monkeypatch):
    ask(sample("decode_eager"), "idle")
    found.clear()
    monkeypatch.setattr(session_store, "definitions", lambda: "another version")
    ask(sample("decode_eager"), "idle")
    assert found


@pytest.mark.slow
def test_answers_from_the_file_are_those_from_memory(sample, cache, monkeypatch):
    reports = ("idle", "classify", "syncs", "streams", "steps", "host", "pace")
    filed = {report: ask(sample("churn"), report) for report in reports}
    monkeypatch.setattr(open_strategies, "_BIG", 10**12)
    assert {report: ask(sample("churn"), report) for report in reports} == filed


def stops(trace, ask, has_begun):
    """Tell whether a question that has begun ends within ten seconds of being stopped."""
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    assert has_begun()
    began = time.monotonic()
    while asking.is_alive() and time.monotonic() < began + 10:
        trace._connection.interrupt()
        asking.join(0.05)
    return not asking.is_alive()


def test_who_stops_a_question_stops_the_copy_that_is_made_for_it(sample, monkeypatch):
    begun = threading.Event()

    def lasting(connection, *_, **__):
        begun.set()
        connection.execute(ENDLESS)

    monkeypatch.setattr(store, "copy_export", lasting)

    def ask():
        with suppress(duckdb.Error):
            trace._connection._files.load()

    with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
        assert stops(trace, ask, lambda: begun.wait(10))


@pytest.mark.slow
def test_steps_and_phases_are_made_of_the_same_operations(facts_alone, sample, cache, monkeypatch):
    looks, windows = [], operations.call_windows

    def noting(connection):
        looks.append(connection)
        return windows(connection)

    monkeypatch.setattr(operations, "call_windows", noting)

    def phases():
        with nsys_insight.open(sample("decode_eager")) as trace:
            trace.rows("FROM steps")
            return trace.rows("FROM phase_steps ORDER BY phase_step")

    in_file = phases()
    assert len(looks) == 1
    monkeypatch.setattr(open_strategies, "_BIG", 10**12)
    assert phases() == in_file != []
    assert len(looks) == 2  # in memory, too


@pytest.mark.slow
def test_where_no_cache_folder_can_be_written_to_the_answer_is_the_same(sample, cache, monkeypatch):
    first = ask(sample("decode_eager"), "idle")
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", "/proc/nsys-insight")
    assert ask(sample("decode_eager"), "idle") == first


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root mounts a small disk")
@pytest.mark.parametrize("size_kb", [12, 16, 64, 500])
def test_on_a_full_disk_they_are_found_in_memory(sample, tmp_path, monkeypatch, size_kb):
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
        subprocess.run(["umount", "-l", disk], check=True)  # this process still has what it kept


# Answers


@pytest.mark.slow
@pytest.mark.parametrize(
    "report", ["top", "idle", "classify", "host", "steps", "fusion", "per-token", "nvtx", "copies"]
)
def test_an_answer_is_read_with_its_columns_and_notes(report, sample, worked_out):
    first = ask(sample("decode_eager"), report)
    assert worked_out
    worked_out.clear()
    assert ask(sample("decode_eager"), report) == first
    assert not worked_out


@pytest.mark.slow
@pytest.mark.parametrize("command", ["diagnose", "report"])
def test_a_diagnosis_and_a_page_are_made_of_answers_that_are_read(command, sample, worked_out, tmp_path, monkeypatch):
    path = tmp_path / "answer.html" if command == "report" else tmp_path / "answer.md"

    def run():
        path.unlink(missing_ok=True)
        words = ["nsys-insight", command, sample("decode_eager"), "-o", path]
        monkeypatch.setattr("sys.argv", [*map(str, words)])
        with pytest.raises(SystemExit, match="0"):
            main()
        return path.read_text()

    first = run()
    assert worked_out
    worked_out.clear()
    assert run() == first
    assert not worked_out


@pytest.mark.slow
def test_another_question_adds_to_them(sample, cache, worked_out):
    ask(sample("decode_eager"), "top")
    ask(sample("decode_eager"), "idle")
    worked_out.clear()
    ask(sample("decode_eager"), "top")
    ask(sample("decode_eager"), "idle")
    assert not worked_out
    assert len(files(cache)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("report", "params"),
    [("per-token", {"tokens": 64}), ("gaps", {"min_gap_ns": 50_000}), ("top", {"group_by": "nvtx"})],
)
def test_a_question_with_other_options_is_another_one(report, params, sample):
    usual = ask(sample("decode_eager"), report)
    other = ask(sample("decode_eager"), report, **params)
    assert other != usual
    assert ask(sample("decode_eager"), report, **params) == other
    assert ask(sample("decode_eager"), report) == usual


@pytest.mark.slow
def test_of_a_part_of_a_trace_nothing_is_kept_and_nothing_is_taken(sample, cache, worked_out):
    part = WHOLE_TRACE.narrowed(nvtx="decode_step")
    ask(sample("decode_eager"), "top", part)
    assert not kept(cache, "results")
    whole = ask(sample("decode_eager"), "top")
    worked_out.clear()
    assert ask(sample("decode_eager"), "top", part) != whole
    assert worked_out


@pytest.mark.slow
def test_where_the_user_has_definitions_nothing_is_taken(sample, worked_out):
    with nsys_insight.open(sample("decode_eager")) as trace:
        before = trace.answer("top").rows()
    worked_out.clear()
    with nsys_insight.open(sample("decode_eager")) as trace:
        (own,) = split("CREATE MACRO twice(x) AS 2 * x")
        trace.define(own)
        assert trace.answer("top").rows() == before
    assert worked_out


def test_a_query_of_the_user_is_run_each_time(sample, cache, worked_out):
    for _ in range(2):
        worked_out.clear()
        with nsys_insight.open(sample("decode_eager")) as trace:
            trace.query("SELECT count(*) FROM kernels")
        assert worked_out
    assert not kept(cache, "results")


@pytest.mark.slow
def test_an_answer_is_not_that_of_another_trace_in_the_same_place(sample, tmp_path):
    path = tmp_path / "trace.sqlite"
    shutil.copy(sample("decode_eager"), path)
    first = ask(path, "top")
    shutil.copy(sample("churn"), path)
    assert ask(path, "top") == ask(sample("churn"), "top") != first


@pytest.mark.slow
def test_an_answer_by_other_definitions_is_not_used(sample, worked_out, monkeypatch):
    ask(sample("decode_eager"), "top")
    worked_out.clear()
    monkeypatch.setattr(session_store, "definitions", lambda: "another version")
    ask(sample("decode_eager"), "top")
    assert worked_out


def test_an_answer_with_data_of_ncu_is_not_one_without(sample, tmp_path):
    (tmp_path / "trace.ncu.duckdb").touch()
    keys = set()
    for ncu in (None, tmp_path / "trace.ncu.duckdb"):
        kept_of = session_store.Store(duckdb.connect(), sample("decode_eager"), ncu, lasting=False)
        keys.add(kept_of._key("internal.answer_1", Question("FROM a")))
        kept_of.close()
    assert len(keys) == 2


def test_what_is_made_of_an_answer_is_known_by_that_answer(sample):
    answers = session_store.Store(duckdb.connect(), sample("decode_eager"), None, lasting=False)
    one, other = (answers._key(f"internal.answer_{number}", Question(f"SELECT {number}")) for number in (1, 2))
    made = [answers._key(f"internal.answer_{at + 2}", Question(f"FROM internal.answer_{at}")) for at in (1, 2)]
    again = answers._key("internal.answer_5", Question("SELECT 1"))
    assert again == one != other
    assert made[0] != made[1]
    assert answers._key("internal.answer_6", Question("FROM internal.answer_5")) == made[0]
    assert not answers._key("internal.answer_7", Question("FROM internal.answer_99"))
    answers.close()


@pytest.mark.slow
def test_a_long_answer_is_not_kept(sample, worked_out, monkeypatch):
    monkeypatch.setattr(store, "_MOST_ROWS", 3)
    ask(sample("decode_eager"), "top")
    worked_out.clear()
    ask(sample("decode_eager"), "top")
    assert worked_out


def test_quick_answers_are_not_kept(sample, cache, monkeypatch):
    monkeypatch.setattr(session_store, "_WORTH_S", 1000)
    ask(sample("decode_eager"), "top")
    assert not kept(cache, "results")


@pytest.mark.slow
def test_of_many_answers_the_old_ones_go(sample, worked_out, monkeypatch):
    monkeypatch.setattr(store, "_MOST_RESULTS", 1)
    ask(sample("decode_eager"), "top")
    ask(sample("decode_eager"), "idle")
    worked_out.clear()
    ask(sample("decode_eager"), "idle")
    assert not worked_out
    ask(sample("decode_eager"), "top")
    assert worked_out


def test_without_the_cache_no_answer_stays(sample, cache):
    with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
        trace.answer("top").rows()
    assert not cache.exists() or not list(cache.iterdir())


@pytest.mark.slow
def test_a_damaged_file_is_made_anew(sample, cache, monkeypatch):
    first = ask(sample("decode_eager"), "top")
    (path,) = files(cache)
    status, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 4 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 4)
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    monkeypatch.setattr(cache_entries, "_is_sound", lambda _: True)
    assert ask(sample("decode_eager"), "top") == first
    assert ask(sample("decode_eager"), "top") == first


@pytest.mark.slow
def test_who_interrupts_the_reading_of_one_damages_none(sample, cache, worked_out, monkeypatch):
    ask(sample("decode_eager"), "top")

    def interrupted(*_):
        raise duckdb.InterruptException

    with nsys_insight.open(sample("decode_eager")) as trace, monkeypatch.context() as patched:
        patched.setattr(session_store.Store, "take", interrupted)
        with pytest.raises(QueryError):
            trace.answer("top")
    assert kept(cache, "results")
    worked_out.clear()
    ask(sample("decode_eager"), "top")
    assert not worked_out
