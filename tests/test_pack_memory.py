"""`memory`: the most memory held at once and who holds it, against a loop in Python."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import oracle
import pytest
from opening import open_trace
from synthetic import Trace

SAMPLES = Path(__file__).parents[1] / "sample_traces"


def ask(path, **params):
    with open_trace(path) as session:
        answer = session.answer("memory", **params)
        return {(row["name"], row["memory"]): row for row in answer.frame().to_dicts()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.sqlite"


def peaks(tables):
    """Return the most bytes that existed at once, and the bytes never freed, by kind of memory."""
    kinds = {row["id"]: row["label"].lower() for row in tables["ENUM_CUDA_MEM_KIND"]}
    blocks, open_blocks = [], {}
    for event in sorted(
        tables["CUDA_GPU_MEMORY_USAGE_EVENTS"], key=lambda row: (row["start"], row["memoryOperationType"])
    ):
        key = event["memKind"], event["address"]
        if event["memoryOperationType"] == 0:
            open_blocks[key] = [kinds[event["memKind"]], event["bytes"], event["start"], None]
            blocks.append(open_blocks[key])
        elif key in open_blocks:  # its allocation may be older than the capture
            open_blocks.pop(key)[3] = event["start"]
    peak_bytes, unfreed_bytes = defaultdict(int), defaultdict(int)
    for kind, size, start, end in blocks:
        if kind in ("device", "pinned"):
            held_bytes = sum(b for k, b, s, e in blocks if k == kind and s <= start and (e is None or e > start))
            peak_bytes[kind] = max(peak_bytes[kind], held_bytes)
            unfreed_bytes[kind] += size if end is None else 0
    return peak_bytes, unfreed_bytes


@pytest.mark.parametrize("name", ["churn", "decode_fresh"])
def test_equals_a_loop_over_the_events(name):
    peak_bytes, unfreed_bytes = peaks(oracle.read(SAMPLES / f"{name}.sqlite"))
    rows = ask(SAMPLES / f"{name}.sqlite").values()
    for kind in peak_bytes:
        assert sum(row["at_peak_bytes"] for row in rows if row["memory"] == kind) == peak_bytes[kind]
        assert sum(row["unfreed_bytes"] for row in rows if row["memory"] == kind) == unfreed_bytes[kind]


def test_the_rows_show_what_holds_the_peak_and_add_up_to_it(path):
    trace = Trace()
    host = trace.thread()
    with host.nvtx("load"):
        host.malloc(1_000).malloc(50).free()
    with host.nvtx("step 1"):
        host.malloc(700).free()
    with host.nvtx("step 2"):
        host.malloc(600).malloc(200)
    host.free().free()
    host.malloc(1_100, memory="pinned", api_name="cudaHostAlloc_v3020").free()
    rows = ask(trace.write(path), by="range")
    facts = {
        name: [row[column] for column in ("at_peak_bytes", "peak_bytes", "unfreed_bytes", "blocks")]
        for (name, _), row in rows.items()
    }
    assert facts == {
        "load": [1_000, 1_050, 1_000, 2],
        "step #": [800, 800, 0, 3],
        "(no range)": [1_100, 1_100, 0, 1],
    }


def test_a_leak_is_seen_in_the_steps_that_leave_something(path):
    trace = Trace()
    host = trace.thread()
    host.malloc(5_000)
    for _ in range(5):
        with host.nvtx("step"):
            host.malloc(100).malloc(10).free()
            host.launch("k")
    rows = ask(trace.write(path), by="step")
    steps = {name: row for (name, _), row in rows.items() if name != "(no step)"}
    assert list(steps) == [f"step {number}" for number in range(len(steps))]
    assert len(steps) >= 4
    assert {(row["unfreed_bytes"], row["unfreed"], row["blocks"]) for row in steps.values()} == {(100, 1, 2)}


def test_each_process_has_its_own_peak(path):
    trace = Trace()
    trace.thread(pid=100).malloc(1_024).free().malloc(512)
    trace.thread(pid=200).malloc(4_096)
    with open_trace(trace.write(path)) as session:
        rows = session.answer("memory").frame().to_dicts()
    assert [(row["process_id"], row["at_peak_bytes"]) for row in rows] == [(200, 4_096), (100, 1_024)]


def test_an_address_that_is_allocated_again_is_a_new_block(path):
    trace = Trace()
    trace.thread().malloc(1_024).malloc(2_048)
    first, second = trace.rows["CUDA_GPU_MEMORY_USAGE_EVENTS"]
    second["address"] = first["address"]
    (row,) = ask(trace.write(path)).values()
    assert (row["peak_bytes"], row["unfreed_bytes"]) == (2_048, 2_048)
