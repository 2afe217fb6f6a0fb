"""A grid, block, register count or size that CUDA does not allow is unknown, and no command fails on it."""

from __future__ import annotations

import pytest
from command_line import run
from synthetic import Trace

import nsys_insight

GRIDS = [(0, 1, 1), (-5, 1, 1), (2**31 - 1, 2**31 - 1, 2**31 - 1), (2**31, 1, 1), (1, 65_536, 1)]
BLOCKS = [(0, 1, 1), (1, 1, -1), (2_000, 1, 1), (1_024, 2, 1), (2**31 - 1, 2**31 - 1, 2**31 - 1)]


def write(path, **shapes):
    """Write launches of kernels with these shapes, and of one with 8 blocks of 128 threads."""
    trace = Trace()
    host = trace.thread()
    for _ in range(20):
        host.launch("good", runs=1_000, grid=(8, 1, 1))
        for name, shape in shapes.items():
            host.launch(name, runs=1_000, **shape)
    return trace.write(path)


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Open a trace with all of these shapes."""
    shapes = {f"grid {number}": {"grid": grid} for number, grid in enumerate(GRIDS)}
    shapes |= {f"block {number}": {"block": block} for number, block in enumerate(BLOCKS)}
    shapes |= {"registers -1": {"registers": -1}, "registers 256": {"registers": 256}}
    shapes |= {"dynamic": {"dynamic_shared": 1 << 30}}
    shapes |= {"most": {"grid": (2**31 - 1, 65_535, 65_535), "block": (16, 1, 64), "registers": 255}}
    with nsys_insight.open(write(tmp_path_factory.mktemp("shapes") / "t.sqlite", **shapes)) as opened_trace:
        yield opened_trace


def test_an_impossible_grid_is_unknown(trace):
    rows = trace.sql("SELECT DISTINCT name FROM kernels WHERE grid_x IS NULL AND grid_y IS NULL AND grid_z IS NULL")
    assert set(rows["name"]) == {f"grid {number}" for number in range(len(GRIDS))}
    assert trace.sql("SELECT count(*) FROM kernels WHERE grid_x + grid_y + grid_z IS NULL").item() == 20 * len(GRIDS)
    shapes = trace.sql(
        """SELECT DISTINCT s.blocks_count, s.threads_per_block FROM launch_shapes AS s
           JOIN kernel_names AS n USING (name_id) WHERE n.name LIKE 'grid %' OR n.name = 'good' ORDER BY ALL"""
    ).rows()
    assert shapes == [(8, 128), (None, 128)]


def test_an_impossible_block_is_unknown(trace):
    rows = trace.sql("SELECT DISTINCT name FROM kernels WHERE block_x IS NULL AND block_y IS NULL AND block_z IS NULL")
    assert set(rows["name"]) == {f"block {number}" for number in range(len(BLOCKS))}
    assert trace.sql("SELECT count(*) FROM kernels WHERE block_x + block_y + block_z IS NULL").item() == 20 * len(
        BLOCKS
    )


def test_an_impossible_resource_is_unknown(trace):
    for column, names in (
        ("registers_per_thread", {"registers -1", "registers 256"}),
        ("dynamic_shared_bytes", {"dynamic"}),
    ):
        assert set(trace.sql(f"SELECT name FROM kernels WHERE {column} IS NULL")["name"]) == names


def test_the_most_that_cuda_allows_is_known(trace):
    rows = trace.sql("SELECT DISTINCT grid_x, block_z, registers_per_thread FROM kernels WHERE name = 'most'").rows()
    assert rows == [(2**31 - 1, 64, 255)]


@pytest.mark.parametrize("command", ["occupancy", "launch-configs", "convert", "diagnose"])
def test_no_command_fails_on_a_product_beyond_64_bits(tmp_path, command):
    path = write(tmp_path / "t.sqlite", bad={"grid": GRIDS[2], "block": BLOCKS[-1]})
    output = ("-o", tmp_path / "t.duckdb") if command == "convert" else ()
    result = run(command, path, *output)
    assert (result.returncode, "64 bits" in result.stderr) == (0, False)
