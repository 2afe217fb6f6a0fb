"""The limits of DuckDB: they follow from the machine, the files and the options of the user."""

from __future__ import annotations

import pytest

import nsys_insight
from nsys_insight.errors import QueryError
from nsys_insight.ingest import limits
from nsys_insight.ingest.limits import Limits, choose_limits


@pytest.fixture
def set_machine(monkeypatch):
    """Set the number of cores and the memory that the machine seems to have."""

    def set_cores_and_memory(cores, gb):
        monkeypatch.setattr(limits, "_count_cores", lambda: cores)
        monkeypatch.setattr(limits, "read_total_memory", lambda: gb * 10**9)

    return set_cores_and_memory


@pytest.mark.parametrize(
    ("cores", "gb", "effective"),
    [
        (2, 8, ("800MB", 2)),
        (4, 8, ("800MB", 4)),
        (128, 512, ("800MB", 8)),  # more threads gain nothing
        (16, 2, ("500MB", 8)),  # at most a quarter of the memory
        (2, 1, ("256MB", 2)),  # at least the memory that every report needs
    ],
)
def test_limits_follow_from_cores_and_memory(cores, gb, effective, set_machine):
    set_machine(cores, gb)
    assert Limits().effective == effective


def test_facts_of_a_copy_need_fewer_threads_than_a_scan(set_machine):
    set_machine(16, 64)
    assert Limits().for_copy.effective == ("800MB", 4)
    assert Limits("4GB", 12).for_copy.effective == ("4GB", 12)
    assert Limits().widen().for_copy.effective == ("3200MB", 2)
    set_machine(2, 64)
    assert Limits().for_copy.effective == ("800MB", 2)


def test_limits_of_the_user_are_used(set_machine):
    set_machine(16, 64)
    assert Limits("4GB", 3).effective == ("4GB", 3)
    assert Limits(threads=2).effective == ("800MB", 2)
    assert Limits("4GB").widen() is None


def test_a_query_that_does_not_fit_gets_more_memory_once(set_machine):
    set_machine(16, 64)
    wider = Limits().widen()
    assert wider.effective == ("3200MB", 2)
    assert wider.widen() is None
    set_machine(16, 6)
    assert wider.effective == ("3000MB", 2)  # half of the memory


def test_small_files_need_one_thread(sample, tmp_path, set_machine):
    set_machine(8, 64)
    small = sample("churn")
    assert choose_limits([small, small], None, None).effective[1] == 1
    assert choose_limits([small], None, 3).effective[1] == 3
    big = tmp_path / "big.sqlite"
    with big.open("wb") as file:
        file.truncate(20_000_000)
    assert choose_limits([small, big], None, None).effective[1] == 8
    # The sizes of a folder of Parquet files are not added up.
    assert choose_limits([tmp_path], None, None).effective[1] == 8


def test_a_query_that_runs_out_of_memory_is_retried_with_more(sample, monkeypatch):
    question = "SELECT len(list(i)) FROM range(5000000) AS r(i)"  # this query cannot spill
    for limit in ("_BASE_BYTES", "_MIN_BYTES"):
        monkeypatch.setattr(limits, limit, 32_000_000)
    with nsys_insight.open(sample("churn")) as trace:
        assert trace.sql(question).item() == 5_000_000
    monkeypatch.setattr(Limits, "widen", lambda _: None)
    with nsys_insight.open(sample("churn")) as trace, pytest.raises(QueryError, match=r"more memory than the limit"):
        trace.sql(question)


def test_the_answer_does_not_depend_on_the_number_of_threads(sample):
    with (
        nsys_insight.open(sample("churn"), threads=1) as one_thread,
        nsys_insight.open(sample("churn"), threads=4) as four_threads,
    ):
        assert one_thread.answer("idle").rows() == four_threads.answer("idle").rows()
        assert four_threads.sql("SELECT current_setting('threads')").item() == 4
