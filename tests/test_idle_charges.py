"""`idle_charges`: the cost of waits and allocations equals that of a plain loop, on real and planted traces."""

from __future__ import annotations

import oracle
import planted
import pytest
from hypothesis import HealthCheck, given, settings
from opening import open_trace, planted_path
from real_traces import REAL
from strategies import traces
from sweeps import sweep


def read_costs(path):
    """Return nanoseconds by charge, thread and start of the call."""
    with open_trace(path) as trace:
        rows = trace.sql("""
            SELECT charge, process_id, thread_id, call_start_ns, sum(idle_ns)::BIGINT
            FROM idle_charges WHERE charge <> 'tracing' GROUP BY ALL""").rows()
    return {(charge, process, thread, start): ns for charge, process, thread, start, ns in rows}


def compute_plain_costs(path):
    return {
        (charge, thread >> 24 & 0xFFFFFF, thread & 0xFFFFFF, start): ns
        for (charge, thread, start), ns in oracle.idle_costs(oracle.read(path)).items()
    }


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_each_wait_and_allocation_costs_what_a_plain_loop_finds(path):
    assert read_costs(path) == compute_plain_costs(path)


# Loops that wait and allocate. The others cost nothing, or are like one of these.
CHARGED_LOOPS = ("sync bound", "copy bound", "allocating", "profiled", "two processes")


@pytest.mark.parametrize("name", [*CHARGED_LOOPS, *sweep(name for name in planted.ALL if name not in CHARGED_LOOPS)])
def test_costs_in_planted_loops_equal_a_plain_loop(name):
    assert read_costs(planted_path(name)) == compute_plain_costs(planted_path(name))


@pytest.mark.slow
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_costs_in_any_trace_equal_a_plain_loop(trace, tmp_path):
    path = trace.write(tmp_path / "trace.sqlite")
    assert read_costs(path) == compute_plain_costs(path)
