"""`mpi`: calls by rank, partner and bytes, and how long they wait for other ranks."""

from __future__ import annotations

import pytest
from mpi_traces import WORLD, collective, join_mpi, message, wait
from opening import open_trace
from synthetic import Trace


def three_ranks():
    """Rank 2 arrives last at an Allreduce; rank 0 sends to 1, which waits for it, and buffers a message for 2."""
    trace = Trace()
    hosts = [trace.thread(pid=100 + rank) for rank in range(3)]
    for rank, host in enumerate(hosts):
        join_mpi(host, rank, 3)
        collective(host, "MPI_Allreduce", (1_000 + 500 * rank, 3_000), 800)
    first, second, third = hosts
    message(first, "MPI_Send", (6_000, 6_500), peer=1, size=64, tag=1)
    message(second, "MPI_Recv", (4_000, 6_600), peer=0, size=64, tag=1)
    message(first, "MPI_Send", (7_000, 7_100), peer=2, size=32, tag=2)  # buffered: it returns before its receive begins
    message(third, "MPI_Recv", (9_000, 9_050), peer=0, size=32, tag=2)
    # A Waitall of two requests is one call. Its sender arrives 400 ns after it has begun.
    message(second, "MPI_Irecv", (10_000, 10_010), peer=2, size=256, tag=3, request=7)
    message(second, "MPI_Isend", (10_020, 10_030), peer=2, size=256, tag=4, request=8)
    wait(second, "MPI_Waitall", (10_100, 10_900), 7, 8)
    message(third, "MPI_Irecv", (10_450, 10_460), peer=1, size=256, tag=4, request=3)
    message(third, "MPI_Isend", (10_500, 10_520), peer=1, size=256, tag=3, request=4)
    wait(third, "MPI_Waitall", (10_600, 10_800), 3, 4)
    # In a Bcast, the others wait for the root alone.
    for rank, (host, begin) in enumerate(zip(hosts, (20_000, 20_700, 20_900), strict=True)):
        collective(host, "MPI_Bcast", (begin, 21_000), 40, root=1)
        trace.row("MPI_OTHER_EVENTS", start=30_000, end=30_000 + rank, globalTid=host.global_tid, textId="MPI_Finalize")
    return trace


def ask(path, **params):
    with open_trace(path) as session:
        answer = session.answer("mpi", **params)
        return {(row["name"], row["group"]): row for row in answer.frame().to_dicts()}, answer.notes


def test_waiting_is_split_from_transfer(tmp_path):
    rows, _ = ask(three_ranks().write(tmp_path / "trace.sqlite"))
    waiting = {key: row["waiting_ns"] for key, row in rows.items() if row["waiting_ns"] is not None}
    assert waiting == {
        ("MPI_Allreduce", "rank 0"): 1_000, ("MPI_Allreduce", "rank 1"): 500, ("MPI_Allreduce", "rank 2"): 0,
        ("MPI_Send", "rank 0"): 0, ("MPI_Recv", "rank 1"): 2_000, ("MPI_Recv", "rank 2"): 0,
        ("MPI_Waitall", "rank 1"): 400, ("MPI_Waitall", "rank 2"): 0,
        ("MPI_Bcast", "rank 0"): 700, ("MPI_Bcast", "rank 1"): 0, ("MPI_Bcast", "rank 2"): 0,
    }  # fmt: skip
    for row in rows.values():
        if row["matched_calls"] == row["calls"]:
            assert row["waiting_ns"] + row["transfer_ns"] == row["total_ns"]
    assert rows["MPI_Waitall", "rank 1"]["calls"] == 1
    assert rows["MPI_Finalize", "rank 2"]["total_ns"] == 2


def test_messages_by_partner(tmp_path):
    rows, _ = ask(three_ranks().write(tmp_path / "trace.sqlite"), group_by="peer")
    sent_bytes = {group: row["sent_bytes"] for (name, group), row in rows.items() if name == "MPI_Send"}
    assert sent_bytes == {"rank 0 to 1": 64, "rank 0 to 2": 32}
    assert rows["MPI_Recv", "rank 1 from 0"]["received_bytes"] == 64
    assert rows["MPI_Recv", "rank 1 from 0"]["sent_bytes"] is None


def test_calls_that_a_rank_lacks_are_not_matched(tmp_path):
    trace = three_ranks()
    collective(trace.thread(pid=100), "MPI_Barrier", (40_000, 41_000))
    rows, notes = ask(trace.write(tmp_path / "trace.sqlite"))
    assert rows["MPI_Allreduce", "rank 0"]["waiting_ns"] is None
    assert any("could not be matched" in note for note in notes)


def test_a_communicator_has_other_handles_on_other_ranks(tmp_path):
    """A split communicator is one, though its handles differ; a handle that is used again is another one."""
    trace = Trace()
    for rank, handle in enumerate((5, 6)):
        host = trace.thread(pid=100 + rank)
        join_mpi(host, rank, 2)
        for number in range(2):
            trace.row(
                "MPI_COMMUNICATORS", rank=rank, timestamp=10_000 * number, commHandle=handle, parentHandle=WORLD,
                localRank=rank, size=2, groupRoot=0, groupRootUid=number,
            )  # fmt: skip
            begin = 10_000 * number + 1_000 + 300 * rank
            collective(host, "MPI_Barrier", (begin, begin + 2_000 - 300 * rank), handle=handle)
    rows, _ = ask(trace.write(tmp_path / "trace.sqlite"), group_by="communicator")
    assert {group: row["waiting_ns"] for (_, group), row in rows.items()} == {"0.0": 300, "0.1": 300}


def test_names_alone_are_recorded_as_ranges(tmp_path):
    trace = Trace()
    host = trace.thread()
    host.range("MPI_Allreduce", 1_000, 3_000, domain="MPI").range("solve", 0, 4_000)
    rows, notes = ask(trace.write(tmp_path / "trace.sqlite"))
    assert {key: row["total_ns"] for key, row in rows.items()} == {("MPI_Allreduce", "process 100"): 2_000}
    assert any("names of MPI calls alone" in note for note in notes)


def four_ranks(*, late=2, has_tables=True):
    """An MPI program in which one rank computes longer; all leave each Allreduce together."""
    trace = Trace()
    for rank in range(4):
        host = trace.thread(pid=100 + rank)
        join_mpi(host, rank, 4) if has_tables else None
        for step in range(12):
            host.now = 1_000_000 * step
            with host.nvtx("timestep"):
                host.launch("stencil", runs=700_000 if rank == late else 400_000, device=rank)
                host.sync("device", device=rank)
                times = host.now, 1_000_000 * step + 800_000
                if has_tables:
                    collective(host, "MPI_Allreduce", times, 64)
                else:
                    host.range("MPI_Allreduce", *times, domain="MPI")
                host.now = times[1]
    return trace


@pytest.mark.parametrize("has_tables", [True, False])
def test_the_late_rank_of_an_mpi_program_is_found(tmp_path, has_tables):
    with open_trace(four_ranks(has_tables=has_tables).write(tmp_path / "trace.sqlite")) as session:
        ranks = {row["rank"]: row for row in session.ranks().to_dicts()}
        (run,) = session.sql("SELECT verdict, ranks, numbered_by FROM rank_run").to_dicts()
    assert run == {"verdict": "late", "ranks": 4, "numbered_by": "MPI" if has_tables else "order"}
    assert {rank for rank, row in ranks.items() if row["late_steps"]} == {2}
    assert ranks[2]["late_ns"] == pytest.approx(300_000, rel=0.01)
    assert ranks[0]["waiting_ns"] == pytest.approx(300_000, rel=0.01)
    assert "its GPU is busy" in ranks[2]["because"]


def test_even_ranks_of_an_mpi_program_are_not_late(tmp_path):
    with open_trace(four_ranks(late=None).write(tmp_path / "trace.sqlite")) as session:
        assert session.sql("SELECT verdict FROM rank_run").item() == "even"
        assert not any(row["late_steps"] for row in session.ranks().to_dicts())
