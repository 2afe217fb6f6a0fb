"""A grid, block, register count or size that CUDA does not allow is unknown, and no command fails on it."""

from __future__ import annotations

import pytest
from command_line import run
from synthetic import Trace

import nsys_insight

GRIDS = [(0, 1, 1), (-5, 1, 1), (2**31 - 1, 2**31 - 1, 2**31 - 1), (2**31, 1, 1), (1, 65_536, 1)]
BLOCKS = [(0, 1, 1), (1, 1, -1), (2_000, 1, 1), (1_024, 2, 1), (2**31 - 1, 2**31 - 1, 2**31 - 1)]


def write(path, **shape):
    trace = Trace()
    host = trace.thread()
    for _ in range(20):
        host.launch("good", runs=1_000, grid=(8, 1, 1))
        host.launch("bad", runs=1_000, **shape)
    return trace.write(path)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_an_impossible_grid_is_unknown(tmp_path, grid):
    with nsys_insight.open(write(tmp_path / "t.sqlite", grid=grid)) as trace:
        rows = trace.sql("SELECT DISTINCT name, grid_x, grid_y, grid_z, block_x FROM kernels ORDER BY ALL").rows()
        assert rows == [("bad", None, None, None, 128), ("good", 8, 1, 1, 128)]
        shapes = trace.sql(
            """SELECT n.name, s.blocks_count, s.threads_per_block FROM launch_shapes AS s
               JOIN kernel_names AS n USING (name_id) ORDER BY ALL"""
        ).rows()
        assert shapes == [("bad", None, 128), ("good", 8, 128)]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_an_impossible_block_is_unknown(tmp_path, block):
    with nsys_insight.open(write(tmp_path / "t.sqlite", block=block)) as trace:
        rows = trace.sql("SELECT DISTINCT name, grid_x, block_x, block_y, block_z FROM kernels ORDER BY ALL").rows()
    assert rows == [("bad", 1, None, None, None), ("good", 8, 128, 1, 1)]


@pytest.mark.parametrize(("column", "value"), [("registers", -1), ("registers", 256), ("dynamic_shared", 1 << 30)])
def test_an_impossible_resource_is_unknown(tmp_path, column, value):
    name = {"registers": "registers_per_thread", "dynamic_shared": "dynamic_shared_bytes"}[column]
    with nsys_insight.open(write(tmp_path / "t.sqlite", **{column: value})) as trace:
        rows = trace.sql(f"SELECT DISTINCT name FROM kernels WHERE {name} IS NULL").rows()
    assert rows == [("bad",)]


def test_the_most_that_cuda_allows_is_known(tmp_path):
    path = write(tmp_path / "t.sqlite", grid=(2**31 - 1, 65_535, 65_535), block=(16, 1, 64), registers=255)
    with nsys_insight.open(path) as trace:
        rows = trace.sql("SELECT DISTINCT grid_x, block_z, registers_per_thread FROM kernels WHERE name = 'bad'").rows()
    assert rows == [(2**31 - 1, 64, 255)]


@pytest.mark.parametrize("command", ["occupancy", "launch-configs", "convert", "diagnose"])
def test_no_command_fails_on_a_product_beyond_64_bits(tmp_path, command):
    path = write(tmp_path / "t.sqlite", grid=GRIDS[2], block=BLOCKS[-1])
    output = ("-o", tmp_path / "t.duckdb") if command == "convert" else ()
    result = run(command, path, *output)
    assert (result.returncode, "64 bits" in result.stderr) == (0, False)
