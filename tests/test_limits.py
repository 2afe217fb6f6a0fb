"""What DuckDB may use: it follows from the machine, from the files, and from what the user says."""

from __future__ import annotations

import pytest

import nsys_insight
from nsys_insight.errors import QueryError
from nsys_insight.ingest import limits
from nsys_insight.ingest.limits import Limits, suited


@pytest.fixture
def machine(monkeypatch):
    """Make this machine one of so many cores and so much memory."""

    def of(cores, gb):
        monkeypatch.setattr(limits, "_cores", lambda: cores)
        monkeypatch.setattr(limits, "ram", lambda: gb * 10**9)

    return of


@pytest.mark.parametrize(
    ("cores", "gb", "settled"),
    [
        (2, 8, ("800MB", 2)),
        (4, 8, ("800MB", 4)),
        (128, 512, ("800MB", 8)),  # more threads gain nothing
        (16, 2, ("500MB", 8)),  # no more than a quarter of what there is
        (2, 1, ("256MB", 2)),  # and never less than any report needs
    ],
)
def test_memory_follows_from_cores_and_from_what_there_is(cores, gb, settled, machine):
    machine(cores, gb)
    assert Limits().settled == settled


def test_facts_of_a_copy_need_fewer_threads_than_a_scan(machine):
    machine(16, 64)
    assert Limits().of_copy.settled == ("800MB", 4)
    assert Limits("4GB", 12).of_copy.settled == ("4GB", 12)
    assert Limits().wider().of_copy.settled == ("3200MB", 2)
    machine(2, 64)
    assert Limits().of_copy.settled == ("800MB", 2)


def test_what_the_user_says_holds(machine):
    machine(16, 64)
    assert Limits("4GB", 3).settled == ("4GB", 3)
    assert Limits(threads=2).settled == ("800MB", 2)
    assert Limits("4GB").wider() is None


def test_a_query_that_does_not_fit_is_given_more_once(machine):
    machine(16, 64)
    wider = Limits().wider()
    assert wider.settled == ("3200MB", 2)
    assert wider.wider() is None
    machine(16, 6)
    assert wider.settled == ("3000MB", 2)  # half of what there is


def test_small_files_need_one_thread(sample, tmp_path, machine):
    machine(8, 64)
    small = sample("churn")
    assert suited([small, small], None, None).settled[1] == 1
    assert suited([small], None, 3).settled[1] == 3
    big = tmp_path / "big.sqlite"
    with big.open("wb") as file:
        file.truncate(20_000_000)
    assert suited([small, big], None, None).settled[1] == 8
    assert suited([tmp_path], None, None).settled[1] == 8  # a folder of Parquet files: nobody adds them up


def test_a_query_that_fails_for_memory_is_asked_again_with_more(sample, monkeypatch):
    question = "SELECT len(list(i)) FROM range(5000000) AS r(i)"  # which cannot spill
    for limit in ("_BASE", "_LEAST"):
        monkeypatch.setattr(limits, limit, 32_000_000)
    with nsys_insight.open(sample("churn")) as trace:
        assert trace.sql(question).item() == 5_000_000
    monkeypatch.setattr(Limits, "wider", lambda _: None)
    with nsys_insight.open(sample("churn")) as trace, pytest.raises(QueryError, match=r"more memory than the limit"):
        trace.sql(question)


def test_one_answer_whatever_the_threads(sample):
    with nsys_insight.open(sample("churn"), threads=1) as one, nsys_insight.open(sample("churn"), threads=4) as four:
        assert one.answer("idle").rows() == four.answer("idle").rows()
        assert four.sql("SELECT current_setting('threads')").item() == 4
