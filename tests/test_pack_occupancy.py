"""`occupancy`: against the results of ncu on an H200, and against placing blocks on an SM one by one."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opening import open_trace
from sweeps import sweep
from synthetic import Trace

import nsys_insight

RESOURCES = {"warps": "by_warps", "blocks": "by_slots", "registers": "by_registers", "shared memory": "by_shared"}

# SMs as the CUDA programming guide describes them: warps, blocks, shared memory, its unit, what the driver takes.
SMS = {
    (7, 5): (32, 16, 64 << 10, 256, 0),
    (8, 0): (64, 32, 164 << 10, 128, 1024),
    (8, 6): (48, 16, 100 << 10, 128, 1024),
    (9, 0): (64, 32, 228 << 10, 128, 1024),
    (12, 0): (48, 24, 100 << 10, 128, 1024),
}
LIMITS_OF_TRACE = ("maxWarpsPerSm", "maxBlocksPerSm", "maxRegistersPerSm", "maxShmemPerSm", "maxShmemPerBlockOptin")


def read_ncu_results():
    """Read the output of ncu for every distinct launch of three traced programs and of a set of other kernels."""
    path = Path(__file__).parent / "data" / "occupancy_h200_ncu.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: float(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def add_launch(trace, number, threads=128, registers=32, *, static=0, dynamic=0, config=0, blocks=1):
    trace.thread(pid=100).launch(
        f"k{number}", grid=(blocks, 1, 1), block=(threads, 1, 1), registers=registers, static_shared=static,
        dynamic_shared=dynamic,
    )  # fmt: skip
    trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1]["sharedMemoryExecuted"] = config


def use_catalog_limits(trace, capability):
    """Let the trace have only the compute capability, so that the limits come from the catalog."""
    major, minor = capability
    return trace.gpu(0, computeMajor=major, computeMinor=minor, **dict.fromkeys(LIMITS_OF_TRACE, 0))


def ask(trace, path):
    with open_trace(trace.write(path)) as session:
        return {int(row["name"][1:]): row for row in session.occupancy().to_dicts()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.sqlite"


@pytest.mark.parametrize("has_trace_limits", [True, False], ids=["limits of the trace", "limits of the catalog"])
def test_occupancy_and_its_limits_are_those_of_ncu(path, has_trace_limits):
    profiled = read_ncu_results()
    trace = Trace() if has_trace_limits else use_catalog_limits(Trace(), (9, 0))
    for number, row in enumerate(profiled):
        memory = {"static": "static_shared", "dynamic": "dynamic_shared", "config": "shared_config"}
        sizes = {name: int(row[column]) for name, column in memory.items()}
        add_launch(trace, number, int(row["threads"]), int(row["registers"]), **sizes)
    answer = ask(trace, path)
    assert len(answer) == len(profiled) >= 70
    for number, ncu_row in enumerate(profiled):
        own_row = answer[number]
        assert own_row["occupancy_pct"] == pytest.approx(ncu_row["occupancy_pct"], abs=0.01), ncu_row
        for column in RESOURCES.values():
            assert own_row[f"blocks_{column}"] == ncu_row[column], (column, ncu_row)
        min_blocks = min(ncu_row[column] for column in RESOURCES.values())
        assert set(own_row["limited_by"].split(", ")) == {
            word for word, column in RESOURCES.items() if ncu_row[column] == min_blocks
        }


@pytest.mark.parametrize("name", ["churn", "decode_eager", "zoo_a"])
def test_kernels_that_ncu_profiled_have_its_occupancy(shared, name):
    with (shared / "traces" / "ncu" / f"{name}.ncu.raw.csv").open(newline="", encoding="utf-8") as file:
        units, *profiled = csv.DictReader(file)
    unit = {"byte/block": 1, "Kbyte/block": 1_000}

    def shape(text):
        return "x".join(text.strip("()").split(", "))

    def shared_bytes(row):
        columns = ("launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic")
        return sum(round(float(row[column]) * unit[units[column]]) for column in columns)

    ncu_occupancy = {
        (
            shape(row["Grid Size"]),
            shape(row["Block Size"]),
            int(row["launch__registers_per_thread"]),
            shared_bytes(row),
        ): float(row["sm__maximum_warps_per_active_cycle_pct"])
        for row in profiled
    }
    with open_trace(shared / "traces" / f"{name}.25.sqlite") as session:
        own_occupancy = {
            (row["grid"], row["block"], row["registers_per_thread"], row["shared_bytes"]): row["occupancy_pct"]
            for row in session.occupancy().to_dicts()
        }
    common = own_occupancy.keys() & ncu_occupancy.keys()
    assert len(common) > len(ncu_occupancy) / 2
    assert {key: own_occupancy[key] for key in common} == pytest.approx(
        {key: ncu_occupancy[key] for key in common}, abs=0.01
    )


@pytest.mark.parametrize("name", ["churn", "zoo_a", *sweep(["decode_eager"])])
def test_the_occupancy_of_ncu_is_in_a_column(shared, name):
    ncu = shared / "traces" / "ncu" / f"{name}.ncu.raw.csv"
    with nsys_insight.open(shared / "traces" / f"{name}.25.sqlite", ncu=ncu) as session:
        answer = session.answer("occupancy")
        rows = [row for row in answer.frame().to_dicts() if row["ncu_occupancy_pct"] is not None]
    assert len(rows) > 3
    for row in rows:
        assert row["ncu_occupancy_pct"] == pytest.approx(row["occupancy_pct"], abs=0.01), row
    assert f"ncu agrees for {len(rows)} of the {len(rows)} kernels that it profiled" in answer.notes


def place_blocks(capability, threads, registers, shared):
    """Put blocks on an SM until one does not fit."""
    warps, slots, memory, unit, driver = SMS[capability]
    need = -(-threads // 32)
    per_warp = -(-registers * 32 // 256) * 256
    register_room = [16_384] * 4  # of each quarter
    blocks = 0
    while blocks < slots and warps >= need and memory >= -(-(shared + driver) // unit) * unit:
        room = register_room.copy()
        for _ in range(need):
            quarter = room.index(max(room))
            room[quarter] -= per_warp
        if min(room) < 0:
            break
        blocks, warps, memory, register_room = (
            blocks + 1,
            warps - need,
            memory - -(-(shared + driver) // unit) * unit,
            room,
        )
    return blocks


@pytest.mark.slow
@pytest.mark.parametrize("capability", SMS)
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shapes=st.lists(
        st.tuples(st.integers(1, 512), st.integers(16, 128), st.integers(0, 48 << 10)), min_size=1, max_size=12
    )
)
def test_as_many_blocks_as_can_be_placed_one_by_one(capability, shapes, tmp_path):
    trace = use_catalog_limits(Trace(), capability)
    for number, (threads, registers, shared) in enumerate(shapes):
        add_launch(trace, number, threads, registers, dynamic=shared)
    answer = ask(trace, tmp_path / "any.sqlite")
    for number, shape in enumerate(shapes):
        assert answer[number]["blocks_per_sm"] == place_blocks(capability, *shape), shape


@pytest.mark.slow
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shapes=st.lists(
        st.tuples(st.sampled_from([32, 64, 96, 128, 256, 384, 512]), st.integers(16, 168), st.integers(0, 100 << 10)),
        min_size=1,
        max_size=8,
    )
)
def test_one_more_block_fits_at_the_next_step_and_not_before_it(shapes, tmp_path):
    trace = Trace()
    for number, (threads, registers, shared) in enumerate(shapes):
        add_launch(trace, number, threads, registers, dynamic=shared)
    answer = ask(trace, tmp_path / "any.sqlite")
    for number, (threads, registers, shared) in enumerate(shapes):
        blocks, step = answer[number]["blocks_per_sm"], answer[number]["next_step"]
        if step is None:
            assert blocks in (2048 // (-(-threads // 32) * 32), 32)
            continue
        assert int(step.split()[0]) == blocks + 1
        fewer = int((re.search(r"(\d+) registers", step) or [0, 0])[1])
        less = int((re.search(r"([\d,]+) B", step) or [0, "0"])[1].replace(",", ""))
        assert fewer or less
        assert place_blocks((9, 0), threads, registers - fewer, shared - less) >= blocks + 1
        if fewer:
            assert place_blocks((9, 0), threads, registers - fewer + 1, shared - less) <= blocks
        if less:
            assert place_blocks((9, 0), threads, registers - fewer, shared - less + 1) <= blocks


def test_the_shared_memory_cliff_is_where_one_block_fewer_fits(path):
    # Compute capability 8.6: 100 KiB an SM. Tiles of 48 KiB run two at a time, of 56 KiB one at a time.
    trace = use_catalog_limits(Trace(), (8, 6))
    add_launch(trace, 0, dynamic=48 << 10)
    add_launch(trace, 1, dynamic=56 << 10)
    answer = ask(trace, path)
    assert (answer[0]["blocks_per_sm"], answer[0]["shared_cliff_bytes"]) == (2, 1 << 10)
    assert (answer[1]["blocks_per_sm"], answer[1]["shared_cliff_bytes"]) == (1, (99 - 56) << 10)
    other_trace = use_catalog_limits(Trace(), (8, 6))
    add_launch(other_trace, 0, dynamic=49 << 10)
    add_launch(other_trace, 1, dynamic=(49 << 10) + 1)
    assert [ask(other_trace, path)[number]["blocks_per_sm"] for number in (0, 1)] == [2, 1]


def test_a_small_carve_out_chosen_by_the_driver_limits_the_blocks(path):
    trace = Trace()
    add_launch(trace, 0, threads=64, dynamic=7 << 10, config=32 << 10)
    add_launch(trace, 1, threads=64, dynamic=7 << 10, config=228 << 10)
    answer = ask(trace, path)
    assert (answer[0]["blocks_per_sm"], answer[0]["limited_by"]) == (4, "shared memory")
    assert answer[0]["next_step"] == "5 blocks: a larger carve-out of shared memory"
    assert answer[1]["blocks_per_sm"] == 28


def test_a_partial_last_wave_has_a_flag(path):
    trace = Trace()
    for number, blocks in enumerate((131, 132 * 16, 132 * 16 + 1, 132 * 16 * 5 + 1)):
        add_launch(trace, number, blocks=blocks, config=228 << 10)
    answer = ask(trace, path)
    assert [answer[n]["flags"] for n in range(4)] == ["fewer blocks than SMs", None, "last wave mostly empty", None]
    assert answer[1]["wave_fill_pct"] == 100
    assert answer[2]["wave_fill_pct"] == pytest.approx(50, abs=0.1)


@pytest.mark.parametrize("gpu_changes", [{"computeMajor": 99, "maxWarpsPerSm": 0}, None], ids=["unknown GPU", "no GPU"])
def test_without_limits_occupancy_is_unknown(path, gpu_changes):
    trace = Trace()
    if gpu_changes:
        trace.gpu(0, **gpu_changes)
    add_launch(trace, 0)
    tables = () if gpu_changes else ("TARGET_INFO_GPU",)
    with nsys_insight.open(trace.write(path, without_tables=tables)) as session:
        answer = session.answer("occupancy")
        (row,) = answer.frame().to_dicts()
    assert (row["occupancy_pct"], row["limited_by"], row["next_step"], row["waves_per_sm"]) == (None, None, None, None)
    assert len(answer.notes) == 1
