"""Ranks, MPI, OpenACC and file accesses that nsys has not written: impossible numbers cost no memory and no answer."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from command_line import run
from mpi_traces import collective, join_mpi
from rank_traces import payload
from sweeps import sweep
from synthetic import Trace
from test_system_reports import write_files

import nsys_insight
from nsys_insight.facts.nccl import Payload, Schemas
from nsys_insight.facts.rank_numbers import RankNumbering

INT64_MAX = (1 << 63) - 1


@pytest.fixture
def path(tmp_path):
    """Two processes that meet in ten collectives, with an OpenACC construct each."""
    trace = Trace()
    for rank in range(2):
        host = trace.thread(pid=100 + rank, gpus=(rank,))
        join_mpi(host, rank, 2)
        for step in range(10):
            host.launch("relax_40_gpu", start=10_000 * (step + 1), runs=5_000)
            collective(host, "MPI_Allreduce", (10_000 * (step + 1) + 7_000, 10_000 * (step + 1) + 8_000), 64)
        trace.row("CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", start=0, end=9, nameId="Enqueue Launch", numGangs=80,
                  numWorkers=4, vectorLength=32, kernelName="relax_40_gpu", globalTid=host.global_tid, lineNo=40,
                  srcFile="solve.c")  # fmt: skip
    return trace.write(tmp_path / "trace.sqlite")


def change(path, *statements):
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


def test_the_number_of_ranks_in_a_file_takes_no_memory():
    assert RankNumbering([0, 2], "NCCL", world_size=5).missing == [1, 3, 4]
    assert RankNumbering([0, 1], "NCCL", world_size=(1 << 31) - 1).missing == []
    assert RankNumbering([0, 1 << 40], "the files' names").missing == []


def test_a_field_outside_of_its_payload_is_unknown():
    for offset in (-(1 << 40), -32, 20, INT64_MAX):
        assert Schemas([(1, 5, 24, "Message size [bytes]", offset)]).read(payload(7, 4096)) == Payload()
    assert Schemas([(1, 5, 24, "Message size [bytes]", 8)]).read(payload(7, 4096)) == Payload(bytes=4096)


@pytest.mark.parametrize(
    "values",
    [
        f"rank = {INT64_MAX}, localRank = {INT64_MAX}, size = {INT64_MAX}",
        "size = -1, commHandle = 'abc'",
        *sweep(["rank = NULL, localRank = NULL, size = NULL"]),
    ],
)
def test_a_communicator_of_any_size_has_an_answer(path, values):
    change(path, f"UPDATE MPI_COMMUNICATORS SET {values}")
    with nsys_insight.open(path) as trace:
        assert trace.ranks()["rank"].to_list() == [0, 1]


def test_impossible_sizes_of_messages_are_unknown(path):
    change(
        path,
        f"UPDATE MPI_COLLECTIVES_EVENTS SET size = {INT64_MAX}, recvSize = -1, rootRank = {INT64_MAX}",
        f"UPDATE CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH SET numGangs = {INT64_MAX}",
    )
    messages = []
    with nsys_insight.open(path, note=messages.append) as trace:
        assert trace.mpi()["sent_bytes"].to_list() == [None, None]
        assert trace.openacc()["max_gangs"].to_list() == [None]
    assert "the size of 20 of 20 MPI collectives" in messages[0]
    assert "the numGangs of 2 of 2 rows of CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH" in messages[0]


def test_impossible_accesses_to_files_are_unknown(tmp_path):
    path = write_files(tmp_path / "trace.sqlite")
    change(
        path,
        f"UPDATE OSRT_FILE_ACCESS_EVENTS SET startedAt = {-INT64_MAX} WHERE rowid = 1",
        f"UPDATE OSRT_FILE_ACCESS_EVENTS SET bytesProcessed = {INT64_MAX} WHERE rowid = 3",
        "CREATE TABLE twice AS SELECT * FROM OSRT_FILE_ACCESS_DESCRIPTORS UNION ALL "
        "SELECT fileAccessId, processId, openedAt, closedAt, filePath || 'x' FROM OSRT_FILE_ACCESS_DESCRIPTORS",
        "DROP TABLE OSRT_FILE_ACCESS_DESCRIPTORS",
        "ALTER TABLE twice RENAME TO OSRT_FILE_ACCESS_DESCRIPTORS",
    )
    messages = []
    with nsys_insight.open(path, note=messages.append) as trace:
        rows = trace.sql("SELECT count(*), count(start_ns), sum(size_bytes)::BIGINT FROM file_accesses").rows()
    assert rows == [(5, 4, 4_096 + 64 + 65)]
    assert "2 of 4 rows of OSRT_FILE_ACCESS_DESCRIPTORS are left out: their ids are taken" in messages[0]
    assert "the startedAt of 1 of 5 rows of OSRT_FILE_ACCESS_EVENTS" in messages[0]
    assert "the size of 1 of 5 rows of OSRT_FILE_ACCESS_EVENTS" in messages[0]


def test_possible_times_whose_sum_is_too_large_are_the_fault_of_the_file(path):
    change(
        path,
        """INSERT INTO MPI_COLLECTIVES_EVENTS (start, "end", globalTid, textId)
        WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        SELECT 10, 10 + (1 << 51), globalTid, textId FROM n, (SELECT * FROM MPI_COLLECTIVES_EVENTS LIMIT 1)""",
    )
    outcome = run("mpi", path)
    assert outcome.returncode == 3
    assert outcome.stderr.splitlines()[-2:] == [
        f"error: the times or sizes in {path} are too large: together they do not fit into 64 bits",
        "hint: choose a part with --from and --to, or export it again: nsys export --type sqlite",
    ]


@pytest.mark.parametrize("words", [["zoo"], ["help", "zoo"], ["skill", "zoo"]])
def test_the_command_that_is_missing_is_named(words):
    assert "error: there is no command 'zoo'\n" in run(*words).stderr


@pytest.mark.parametrize("command", ["x" * 5000, "cuda_gpu_kern_sum\0", "\ud800"])
def test_a_name_that_no_file_can_have_is_no_command(command):
    outcome = run(command, "trace.sqlite")
    assert (outcome.returncode, "Traceback" in outcome.stderr) == (2, False), outcome.stderr
