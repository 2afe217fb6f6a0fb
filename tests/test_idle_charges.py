"""`idle_charges`: what a wait or an allocation costs, against a plain loop and on traces whose answer is known."""

from __future__ import annotations

import oracle
import planted
import pytest
from hypothesis import HealthCheck, given, settings
from opening import open_trace, planted_path
from real_traces import REAL
from strategies import traces


def costs(path):
    """Nanoseconds by charge, thread and start of the call."""
    with open_trace(path) as trace:
        rows = trace.sql("""
            SELECT charge, process_id, thread_id, call_start_ns, sum(idle_ns)::BIGINT
            FROM idle_charges WHERE charge <> 'tracing' GROUP BY ALL""").rows()
    return {(charge, process, thread, start): ns for charge, process, thread, start, ns in rows}


def plain_costs(path):
    return {
        (charge, thread >> 24 & 0xFFFFFF, thread & 0xFFFFFF, start): ns
        for (charge, thread, start), ns in oracle.idle_costs(oracle.read(path)).items()
    }


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_each_wait_and_allocation_costs_what_a_plain_loop_finds(path):
    assert costs(path) == plain_costs(path)


@pytest.mark.parametrize("name", planted.ALL)
def test_of_planted_loops_too(name):
    assert costs(planted_path(name)) == plain_costs(planted_path(name))


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_of_any_trace_too(trace, tmp_path):
    path = trace.write(tmp_path / "trace.sqlite")
    assert costs(path) == plain_costs(path)
