"""`launch-configs`: kernels by the shape of their launch, against loops, the output of nsys and of ncu."""

from __future__ import annotations

import csv
from collections import defaultdict

import oracle
import printed as nsys
import pytest
from hypothesis import HealthCheck, given, settings
from opening import open_trace
from strategies import traces
from synthetic import Trace


def ask(path, **scope):
    with open_trace(path, **scope) as trace:
        answer = trace.answer("launch-configs")
        return answer.frame().to_dicts(), answer.notes


def format_shape(shape):
    return "x".join(map(str, shape))


@pytest.fixture
def trace():
    return Trace()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.sqlite"


@nsys.each_trace_with("cuda_gpu_kern_gb_sum")
def test_adds_up_to_what_nsys_stats_prints_by_grid_and_block(trace, nsys_output):
    configs_by_key, expected = defaultdict(list), {}
    for row in ask(trace)[0]:
        configs_by_key[row["name"], row["grid"], row["block"]].append(row)
    for row in nsys.read_rows(nsys_output):
        expected[row["Name"], format_shape(row["GridXYZ"].split()), format_shape(row["BlockXYZ"].split())] = row
    assert configs_by_key.keys() == expected.keys()
    for key, row in expected.items():
        configs = configs_by_key[key]
        assert sum(config["total_ns"] for config in configs) == int(row["Total Time (ns)"])
        assert sum(config["calls"] for config in configs) == int(row["Instances"])
        assert min(config["min_ns"] for config in configs) == int(row["Min (ns)"])
        assert max(config["max_ns"] for config in configs) == int(row["Max (ns)"])
        assert nsys.equals_printed(sum(config["kernel_time_pct"] for config in configs), row["Time (%)"])
        if len(configs) == 1:
            assert nsys.equals_printed(configs[0]["avg_ns"], row["Avg (ns)"])
            assert nsys.equals_printed(configs[0]["med_ns"], row["Med (ns)"])


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_any_trace_equals_plain_loops(trace, tmp_path):
    tables = oracle.read(trace.write(tmp_path / "any.sqlite"))
    expected = oracle.kernel_totals_by_shape(tables)
    answer = {(row["name"], row["grid"], row["block"]): row for row in ask(tmp_path / "any.sqlite")[0]}
    assert answer.keys() == {(name, format_shape(grid), format_shape(block)) for name, grid, block in expected}
    for (name, grid, block), statistics in expected.items():
        row = answer[name, format_shape(grid), format_shape(block)]
        assert (row["calls"], row["total_ns"]) == (statistics["count"], statistics["total"])
        assert row["med_ns"] == pytest.approx(statistics["median"])


def test_each_resource_makes_a_row_of_its_own(trace, path):
    host = trace.thread()
    for shape in ({}, {"grid": (2, 3, 4)}, {"block": (8, 4, 2)}, {"registers": 40}, {"static_shared": 16}):
        host.launch("k", **shape)
    host.launch("k", dynamic_shared=16).launch("k")
    answer, _ = ask(trace.write(path))
    assert sorted(row["calls"] for row in answer) == [1, 1, 1, 1, 1, 2]
    by_grid = {row["grid"]: row for row in answer}
    assert (by_grid["2x3x4"]["blocks_count"], by_grid["2x3x4"]["threads_per_block"]) == (24, 128)
    by_block = {row["block"]: row for row in answer}
    assert (by_block["8x4x2"]["blocks_count"], by_block["8x4x2"]["threads_per_block"]) == (1, 64)


# Computed by ncu 2025.3 on an H200: threads, registers, static and dynamic shared memory, blocks; the smallest of its
# limits of blocks on an SM (launch__occupancy_limit_*), waves (launch__waves_per_multiprocessor).
NCU = [
    (256, 16, 0, 0, 256, 8, 0.24),
    (256, 56, 0, 0, 1, 4, 0.00),
    (64, 32, 0, 0, 64, 32, 0.02),
    (128, 18, 0, 0, 65_536, 16, 31.03),
    (128, 36, 0, 0, 32_768, 12, 20.69),
    (384, 168, 0, 180_692, 88, 1, 0.67),
    (512, 25, 0, 0, 528, 4, 1.00),
    (512, 32, 16, 2_048, 2_048, 4, 3.88),
    (1_024, 37, 0, 128, 16_384, 1, 124.12),
]


def test_waves_are_those_of_ncu(trace, path):
    host = trace.thread()
    for number, (threads, registers, static, dynamic, blocks, _, _) in enumerate(NCU):
        shape = {"registers": registers, "static_shared": static, "dynamic_shared": dynamic}
        host.launch(f"k{number}", grid=(blocks, 1, 1), block=(threads, 1, 1), **shape)
    rows, notes = ask(trace.write(path))
    answer = {row["name"]: (row["blocks_per_sm"], round(row["waves_per_sm"], 2)) for row in rows}
    assert answer == {f"k{number}": (resident, waves) for number, (*_, resident, waves) in enumerate(NCU)}
    assert notes == ()


@pytest.mark.parametrize("name", ["churn", "decode_eager", "zoo_a"])
def test_kernels_that_ncu_profiled_have_its_waves(shared, name):
    # The runs under ncu were different: not every shape is in both.
    with (shared / "traces" / "ncu" / f"{name}.ncu.raw.csv").open(newline="", encoding="utf-8") as file:
        units, *profiled = csv.DictReader(file)
    unit = {"byte/block": 1, "Kbyte/block": 1_000}[units["launch__shared_mem_per_block_dynamic"]]
    ncu_waves = {}
    for row in profiled:
        grid, block = (format_shape(row[column].strip("()").split(", ")) for column in ("Grid Size", "Block Size"))
        dynamic = round(float(row["launch__shared_mem_per_block_dynamic"]) * unit)
        key = (grid, block, int(row["launch__registers_per_thread"]), dynamic)
        ncu_waves[key] = float(row["launch__waves_per_multiprocessor"])
    keys = ("grid", "block", "registers_per_thread", "dynamic_shared_bytes")
    answer, _ = ask(shared / "traces" / f"{name}.25.sqlite")
    own_waves = {tuple(row[key] for key in keys): round(row["waves_per_sm"], 2) for row in answer}
    common = own_waves.keys() & ncu_waves.keys()
    assert {key: own_waves[key] for key in common} == {key: ncu_waves[key] for key in common}
    assert len(common) > len(ncu_waves) / 2


def test_shared_memory_limits_blocks_with_what_the_driver_takes(trace, path):
    # 228 KiB on an SM, 1 KiB of each block for the driver: 56 KiB fit four times, 57 KiB only three times.
    host = trace.thread()
    host.launch("k", static_shared=1_024, dynamic_shared=55 * 1_024).launch("k", dynamic_shared=56 * 1_024 + 1)
    answer, _ = ask(trace.write(path))
    assert {row["dynamic_shared_bytes"]: row["blocks_per_sm"] for row in answer} == {55 * 1_024: 4, 56 * 1_024 + 1: 3}


def test_a_block_that_cannot_fit_has_no_waves(trace, path):
    trace.thread().launch("k", dynamic_shared=300_000)
    (row,), _ = ask(trace.write(path))
    assert (row["blocks_per_sm"], row["waves_per_sm"]) == (0, None)


@pytest.mark.parametrize("missing", [{"maxBlocksPerSm": 0}, {"maxRegistersPerSm": None}])
def test_limits_missing_in_the_trace_and_in_the_catalog_are_unknown(trace, path, missing):
    trace.gpu(0, computeMajor=99, **missing).thread().launch("k", block=(100, 1, 1))
    (row,), notes = ask(trace.write(path))
    assert (row["blocks_per_sm"], row["waves_per_sm"]) == (None, None)
    assert row["flags"] == "block not a multiple of a warp; fewer blocks than SMs"
    assert notes == ("the trace does not give the limits of the GPU: blocks_per_sm and waves_per_sm are unknown",)


def test_a_gpu_that_the_trace_does_not_describe_is_unknown(trace, path):
    trace.thread().launch("k", grid=(1, 1, 1))
    (row,), _ = ask(trace.write(path, without_tables=("TARGET_INFO_GPU",)))
    assert (row["gpu"], row["waves_per_sm"], row["flags"]) == (None, None, None)


def test_flags_name_what_is_unusual(trace, path):
    host = trace.thread()
    host.launch("fine", grid=(132, 1, 1), block=(64, 1, 1)).launch("few", grid=(131, 1, 1), block=(64, 1, 1))
    host.launch("odd", grid=(132, 1, 1), block=(48, 1, 1)).launch("spills", grid=(132, 1, 1))
    trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1]["localMemoryPerThread"] = 16
    assert {row["name"]: row["flags"] for row in ask(trace.write(path))[0]} == {
        "fine": None,
        "few": "fewer blocks than SMs",
        "odd": "block not a multiple of a warp",
        "spills": "local memory",
    }


def test_gpus_of_one_model_count_as_one_and_of_two_models_as_two(trace, path):
    trace.gpu(0).gpu(1).gpu(2, name="NVIDIA A100", smCount=108)
    host = trace.thread(gpus=(1, 2, 0))
    for device in (0, 1, 2):
        host.launch("k", device=device, grid=(216, 1, 1), block=(1_024, 1, 1))
    answer = {row["gpu"]: row for row in ask(trace.write(path))[0]}
    assert {gpu: (row["calls"], row["waves_per_sm"]) for gpu, row in answer.items()} == {
        "NVIDIA H200": (2, 216 / (132 * 2)),
        "NVIDIA A100": (1, 216 / (108 * 2)),
    }


def test_in_exports_without_device_mapping_the_device_number_is_the_gpu_number(trace, path):
    trace.gpu(0).gpu(1, name="NVIDIA A100")
    trace.thread(gpus=(0, 1)).launch("k", device=1)
    (row,), _ = ask(trace.write(path, version="2023.4"))
    assert row["gpu"] == "NVIDIA A100"


def test_graphs_traced_as_a_unit_have_a_note(sample):
    _, (note,) = ask(sample("decode_graph_whole"))
    assert "32 times" in note


def test_a_range_narrows_to_the_kernels_launched_in_it(trace, path):
    host = trace.thread()
    with host.nvtx("step"):
        host.launch("k", grid=(7, 1, 1))
    host.launch("k", grid=(8, 1, 1))
    assert [row["grid"] for row in ask(trace.write(path), nvtx="step")[0]] == ["7x1x1"]


def test_an_empty_trace_has_an_empty_answer(trace, path):
    assert ask(trace.write(path)) == ([], ())
