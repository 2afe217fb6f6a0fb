"""The facts of a big trace are in a file, which stays in the cache folder for the next question."""

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
from nsys_insight.errors import UsageError
from nsys_insight.facts import file, operations
from nsys_insight.facts.context import NOTHING_SAID
from nsys_insight.facts.store import Facts
from nsys_insight.ingest import open_strategies
from nsys_insight.ingest import store as cache_of_exports
from nsys_insight.ingest.scope import WHOLE_TRACE

ENDLESS = "SELECT count(*) FROM range(1_000_000_000) AS a, range(1_000_000) AS b WHERE a.range < b.range"


@pytest.fixture(autouse=True)
def big(monkeypatch):
    """Every export is a big one."""
    monkeypatch.setattr(open_strategies, "_BIG", 0)


def ask(path, report, **options):
    with nsys_insight.open(path) as trace:
        return trace.answer(report, **options).rows()


def kept(cache):
    return [path.name for path in cache.glob("*-facts-*.duckdb")]


@pytest.mark.parametrize("report", ["idle", "classify", "host", "gaps", "fusion"])
def test_the_next_question_finds_the_facts_of_the_last_one(report, sample, cache, found):
    first = ask(sample("decode_eager"), report)
    assert found
    assert len(kept(cache)) == 1
    found.clear()
    assert ask(sample("decode_eager"), report) == first
    assert not found


def test_another_question_adds_to_them(sample, cache, found):
    ask(sample("decode_eager"), "idle")
    idle = set(found)
    ask(sample("decode_eager"), "classify")
    assert len(kept(cache)) == 1
    found.clear()
    ask(sample("decode_eager"), "classify")
    ask(sample("decode_eager"), "idle")
    assert idle
    assert not found


def test_what_the_user_says_about_steps_holds_for_one_question(sample, cache, found):
    usual = ask(sample("decode_eager"), "per-token")
    other = ask(sample("decode_eager"), "per-token", tokens=64)
    assert other != usual
    found.clear()
    assert ask(sample("decode_eager"), "per-token") == usual
    assert not found


def test_of_a_part_of_a_trace_nothing_stays_and_nothing_is_taken(sample, cache, found):
    whole = ask(sample("decode_eager"), "idle")
    found.clear()
    with nsys_insight.open(sample("decode_eager"), scope=WHOLE_TRACE.narrowed(nvtx="decode_step")) as trace:
        assert trace.answer("idle").rows() != whole
    assert "idle" in found
    assert len(kept(cache)) == 1


def test_without_the_cache_nothing_stays(sample, cache, tmp_path):
    with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
        assert trace.answer("idle").rows()
    assert not cache.exists() or not list(cache.iterdir())


def test_facts_are_not_those_of_another_trace_in_the_same_place(sample, cache, tmp_path):
    path = tmp_path / "trace.sqlite"
    shutil.copy(sample("decode_eager"), path)
    first = ask(path, "idle")
    shutil.copy(sample("churn"), path)
    assert ask(path, "idle") == ask(sample("churn"), "idle") != first


def test_facts_that_were_found_in_another_way_are_not_used(sample, cache, found, monkeypatch):
    ask(sample("decode_eager"), "idle")
    found.clear()
    monkeypatch.setattr(file, "definitions", lambda: "another version")
    ask(sample("decode_eager"), "idle")
    assert found


def test_answers_from_the_file_are_those_from_memory(sample, cache, monkeypatch):
    reports = ("idle", "classify", "syncs", "streams", "steps", "host", "pace")
    filed = {report: ask(sample("churn"), report) for report in reports}
    monkeypatch.setattr(open_strategies, "_BIG", 10**12)
    assert {report: ask(sample("churn"), report) for report in reports} == filed


@pytest.mark.parametrize("name", ["decode_eager", "decode_graph_node", "churn"])
def test_idle_time_and_steps_are_found_at_once_where_there_are_two_threads(name, sample, monkeypatch):
    fill, both, finding = Facts._fill, threading.Barrier(2), []

    def noting(self, kind, *options):
        if kind in ("idle", "steps"):
            finding.append(threading.current_thread())
            if threads == 2:
                both.wait(10)
        fill(self, kind, *options)

    monkeypatch.setattr(Facts, "_fill", noting)
    rows = []
    for threads in (1, 2):
        with nsys_insight.open(sample(name), use_cache=False, threads=threads) as trace:
            rows.append(trace.answer("classify").rows())
        assert len(finding) == 2
        assert len(set(finding)) == threads
        finding.clear()
    assert rows[0] == rows[1] != []


def test_what_is_wrong_with_steps_is_said_though_they_are_found_beside_idle_time(sample):
    with nsys_insight.open(sample("decode_eager"), use_cache=False, threads=2) as trace:
        with pytest.raises(UsageError, match="is named 'nothing'"):
            trace.answer("classify", step_range="nothing")
        assert trace.answer("classify").rows()


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


def test_who_stops_a_question_stops_both_that_are_at_work_for_it(sample, monkeypatch):
    begun = threading.Semaphore(0)

    def lasting(self, kind, *_):
        if kind in ("idle", "steps"):
            begun.release()
            self._connection.execute(ENDLESS)

    monkeypatch.setattr(Facts, "_fill", lasting)

    def ask():
        with suppress(duckdb.Error):
            trace._connection._files.prepare("FROM step_budget", NOTHING_SAID)

    with nsys_insight.open(sample("decode_eager"), use_cache=False, threads=2) as trace:
        assert stops(trace, ask, lambda: begun.acquire(timeout=10) and begun.acquire(timeout=10))


def test_who_stops_a_question_stops_the_copy_that_is_made_for_it(sample, monkeypatch):
    begun = threading.Event()

    def lasting(connection, *_, **__):
        begun.set()
        connection.execute(ENDLESS)

    monkeypatch.setattr(cache_of_exports, "_create_of_pages", lasting)
    monkeypatch.setattr(cache_of_exports, "_copy", lasting)

    def ask():
        with suppress(duckdb.Error):
            trace._connection._files.load("few")

    with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
        assert stops(trace, ask, lambda: begun.wait(10))


def test_steps_and_phases_are_made_of_the_same_operations(sample, cache, monkeypatch):
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


def test_where_no_cache_folder_can_be_written_to_the_answer_is_the_same(sample, cache, monkeypatch):
    first = ask(sample("decode_eager"), "idle")
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", "/proc/nsys-insight")
    assert ask(sample("decode_eager"), "idle") == first


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
        assert ask(sample("decode_eager"), "idle") == expected
        assert not list(disk.rglob(".nsys-insight-*"))
    finally:
        subprocess.run(["umount", "-l", disk], check=True)  # this process still has what it kept
