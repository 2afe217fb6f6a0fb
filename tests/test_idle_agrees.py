"""Idle time is one number for one scope: in `idle`, `gaps`, `nvtx` and `diagnose`; and MPI calls have their own."""

from __future__ import annotations

import mpi_traces
import pytest
from opening import evaluate_rules, open_trace, read_headline_of
from real_traces import REAL, path_of
from sweeps import sweep
from synthetic import Trace

MS = 1_000_000
# The time of late launches after a wait belongs to the wait, up to a limit that a scope can change.
CAUSES = ("allocation", "start-up and end", "unknown")


def real_traces(*names):
    """Return the real traces; those with other names are left to sweeps."""
    tested = [path for path in REAL if path_of(path).stem in names]
    return [*tested, *sweep(path_of(path) for path in REAL if path not in tested)]


def add_up(rows, *causes):
    return sum(row["time_ns"] for row in rows if row["cause"] in causes)


def read_idle_times(path, **scope):
    """Return the rows of `idle`, its busy and idle time, and the idle time of the gaps and of start-up and end."""
    with open_trace(path, **scope) as session:
        rows = session.idle().to_dicts()
        gap_ns = sum(row["total_ns"] for row in session.run("gap-sizes").to_dicts())
    busy_ns = add_up(rows, "busy")
    return rows, busy_ns, sum(row["time_ns"] for row in rows) - busy_ns, gap_ns + add_up(rows, "start-up and end")


@pytest.mark.parametrize(
    "path", real_traces("decode_eager", "decode_graph_node", "mordred.nsys2021_2"), ids=lambda path: path.stem
)
def test_idle_gaps_and_nvtx_state_one_number(path):
    with open_trace(path) as session:
        ranges = [row for row in session.nvtx().to_dicts() if row["gpu_idle_during_ns"] is not None]
    _, _, idle_ns, gap_ns = read_idle_times(path)
    assert idle_ns == gap_ns
    # The range with most of the time, and on one trace those in it too.
    for row in ranges[: 3 if path.stem == "decode_eager" else 1]:
        _, busy_ns, idle_ns, gap_ns = read_idle_times(path, nvtx=row["name"])
        assert (busy_ns, idle_ns) == (row["gpu_busy_during_ns"], row["gpu_idle_during_ns"]), row["name"]
        assert idle_ns == gap_ns, row["name"]


@pytest.mark.parametrize(
    "path", real_traces("churn", "decode_graph_whole", "mordred.nsys2021_2"), ids=lambda path: path.stem
)
def test_idle_and_diagnose_state_one_number(path):
    with open_trace(path) as session:
        headline = read_headline_of(session)
        has_steps = session.sql("SELECT 1 FROM steps WHERE phase = 'steady' LIMIT 1").rows()
    rows, busy_ns, idle_ns, _ = read_idle_times(path, steady=True if has_steps else None)
    shares = {(share.part, share.is_busy): share.wall_pct for share in headline.shares}
    pct = 100 / (busy_ns + idle_ns)
    assert sum(share for (_, is_busy), share in shares.items() if not is_busy) == pytest.approx(pct * idle_ns, abs=1e-6)
    for cause in CAUSES:
        assert shares.get((cause, False), 0) == pytest.approx(pct * add_up(rows, cause), abs=1e-6), cause


def exchange_after_wait(kind):
    """Twelve steps: a kernel of 10 ms, a wait for it, then 8 ms in MPI or in other work of the host."""
    trace = Trace()
    host = trace.thread()
    mpi_traces.join_mpi(host, 0, 2)
    for _ in range(12):
        host.launch("kernel", runs=10 * MS).sync("stream")
        start_ns = host.now
        host.idle(8 * MS)
        if kind == "collective":
            mpi_traces.collective(host, "MPI_Allreduce", (start_ns, host.now))
        if kind == "range":
            times = {"start": start_ns, "end": host.now}
            trace.row("NVTX_EVENTS", eventType=59, textId="MPI_Allreduce", globalTid=host.global_tid, **times)
    return trace


@pytest.mark.parametrize("kind", ["collective", "range", "work"])
def test_idle_time_in_mpi_calls_after_a_wait_belongs_to_them(kind, tmp_path):
    with open_trace(exchange_after_wait(kind).write(tmp_path / "trace.sqlite")) as session:
        idle_ns = {(row["cause"], row["host"]): row["time_ns"] for row in session.idle().to_dicts()}
        gap = session.gaps().to_dicts()[0]
        waits_ns = sum(row["gpu_idle_ns"] for row in session.syncs().to_dicts())
        bottlenecks = {row["bottleneck"]: row["recoverable_ns"] for row in session.host().to_dicts()}
        verdict = read_headline_of(session).verdict
        evidence = "".join(finding.evidence for finding in evaluate_rules(session, ["cpu-work"]).values())
    is_mpi = kind != "work"
    assert (idle_ns.get(("launch", "MPI calls")) == 11 * 8 * MS) == is_mpi
    assert gap["host"] == ("MPI: MPI_Allreduce" if is_mpi else "CPU work")
    assert (waits_ns < 11 * MS) == is_mpi
    assert (bottlenecks.get("MPI calls", 0) == pytest.approx(8 * MS, rel=0.01)) == is_mpi
    assert ("in MPI calls, most in MPI_Allreduce" in evidence) == is_mpi
    assert ("host-bound" in verdict, "sync-bound" in verdict) == (is_mpi, not is_mpi)
