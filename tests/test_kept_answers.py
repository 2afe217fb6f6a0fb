"""Answers about a big trace stay in the cache folder: the same question is then answered by reading."""

from __future__ import annotations

import os
import shutil

import duckdb
import pytest

import nsys_insight
from nsys_insight.cli.main import main
from nsys_insight.errors import QueryError
from nsys_insight.facts import file
from nsys_insight.ingest import cache_entries, open_strategies
from nsys_insight.ingest.scope import WHOLE_TRACE
from nsys_insight.session import connection, kept_answers
from nsys_insight.session.ahead import Question
from nsys_insight.sql.statements import split


@pytest.fixture(autouse=True)
def big(monkeypatch):
    """Every export is a big one, and every answer is worth keeping."""
    monkeypatch.setattr(open_strategies, "_BIG", 0)
    monkeypatch.setattr(kept_answers, "_WORTH_S", 0)


@pytest.fixture
def worked_out(monkeypatch):
    """Give the queries that are run, and not read."""
    queries, store = [], connection.store

    def noting(session, table, query):
        queries.append(query)
        return store(session, table, query)

    monkeypatch.setattr(connection, "store", noting)
    return queries


def ask(path, report, scope=WHOLE_TRACE, **params):
    with nsys_insight.open(path, scope=scope) as trace:
        answer = trace.answer(report, **params)
        return answer.columns, answer.notes, answer.rows()


def kept(cache):
    return list(cache.glob("*-answers.duckdb"))


@pytest.mark.parametrize(
    "report", ["top", "idle", "classify", "host", "steps", "fusion", "per-token", "nvtx", "copies"]
)
def test_an_answer_is_read_with_its_columns_and_notes(report, sample, worked_out):
    first = ask(sample("decode_eager"), report)
    assert worked_out
    worked_out.clear()
    assert ask(sample("decode_eager"), report) == first
    assert not worked_out


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


def test_another_question_adds_to_them(sample, cache, worked_out):
    ask(sample("decode_eager"), "top")
    ask(sample("decode_eager"), "idle")
    worked_out.clear()
    ask(sample("decode_eager"), "top")
    ask(sample("decode_eager"), "idle")
    assert not worked_out
    assert len(kept(cache)) == 1


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


def test_of_a_part_of_a_trace_nothing_is_kept_and_nothing_is_taken(sample, cache, worked_out):
    part = WHOLE_TRACE.narrowed(nvtx="decode_step")
    ask(sample("decode_eager"), "top", part)
    assert not kept(cache)
    whole = ask(sample("decode_eager"), "top")
    worked_out.clear()
    assert ask(sample("decode_eager"), "top", part) != whole
    assert worked_out


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
    assert not kept(cache)


def test_an_answer_is_not_that_of_another_trace_in_the_same_place(sample, tmp_path):
    path = tmp_path / "trace.sqlite"
    shutil.copy(sample("decode_eager"), path)
    first = ask(path, "top")
    shutil.copy(sample("churn"), path)
    assert ask(path, "top") == ask(sample("churn"), "top") != first


def test_an_answer_by_other_definitions_is_not_used(sample, worked_out, monkeypatch):
    ask(sample("decode_eager"), "top")
    worked_out.clear()
    monkeypatch.setattr(file, "definitions", lambda: "another version")
    ask(sample("decode_eager"), "top")
    assert worked_out


def test_an_answer_with_data_of_ncu_is_not_one_without(tmp_path):
    (tmp_path / "trace.ncu.duckdb").touch()
    keys = {
        kept_answers.KeptAnswers(duckdb.connect(), _Facts(tmp_path), beside)._key(
            "internal.answer_1", Question("FROM a")
        )
        for beside in (None, tmp_path / "trace.ncu.duckdb")
    }
    assert len(keys) == 2


def test_what_is_made_of_an_answer_is_known_by_that_answer(tmp_path):
    answers = kept_answers.KeptAnswers(duckdb.connect(), _Facts(tmp_path), None)
    one, other = (answers._key(f"internal.answer_{number}", Question(f"SELECT {number}")) for number in (1, 2))
    made = [answers._key(f"internal.answer_{at + 2}", Question(f"FROM internal.answer_{at}")) for at in (1, 2)]
    again = answers._key("internal.answer_5", Question("SELECT 1"))
    assert again == one != other
    assert made[0] != made[1]
    assert answers._key("internal.answer_6", Question("FROM internal.answer_5")) == made[0]
    assert not answers._key("internal.answer_7", Question("FROM internal.answer_99"))


def test_a_long_answer_is_not_kept(sample, worked_out, monkeypatch):
    monkeypatch.setattr(kept_answers, "_MOST_ROWS", 3)
    ask(sample("decode_eager"), "top")
    worked_out.clear()
    ask(sample("decode_eager"), "top")
    assert worked_out


def test_quick_answers_are_not_kept(sample, cache, monkeypatch):
    monkeypatch.setattr(kept_answers, "_WORTH_S", 1000)
    ask(sample("decode_eager"), "top")
    assert not kept(cache)


def test_of_many_answers_the_old_ones_go(sample, worked_out, monkeypatch):
    monkeypatch.setattr(kept_answers, "_MOST_ANSWERS", 1)
    ask(sample("decode_eager"), "top")
    ask(sample("decode_eager"), "idle")
    worked_out.clear()
    ask(sample("decode_eager"), "idle")
    assert not worked_out
    ask(sample("decode_eager"), "top")
    assert worked_out


def test_without_the_cache_nothing_stays(sample, cache):
    with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
        trace.answer("top").rows()
    assert not cache.exists() or not list(cache.iterdir())


def test_a_damaged_file_is_made_anew(sample, cache, monkeypatch):
    first = ask(sample("decode_eager"), "top")
    (path,) = kept(cache)
    status, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 4 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 4)
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    monkeypatch.setattr(cache_entries, "_is_sound", lambda _: True)
    assert ask(sample("decode_eager"), "top") == first
    assert ask(sample("decode_eager"), "top") == first


def test_who_interrupts_the_reading_of_one_damages_none(sample, cache, worked_out, monkeypatch):
    ask(sample("decode_eager"), "top")

    def interrupted(*_):
        raise duckdb.InterruptException

    with nsys_insight.open(sample("decode_eager")) as trace, monkeypatch.context() as patched:
        patched.setattr(kept_answers.KeptAnswers, "_taken", interrupted)
        with pytest.raises(QueryError):
            trace.answer("top")
    assert kept(cache)
    worked_out.clear()
    ask(sample("decode_eager"), "top")
    assert not worked_out


class _Facts:
    def __init__(self, folder):
        self._folder = folder

    def entry(self, name):
        return self._folder / f"none-{name}"
