"""`occupancy --block --registers --shared`: against NVIDIA's own calculator, and against placing one more block."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from command_line import run

from nsys_insight.errors import Exit, UsageError
from nsys_insight.kernel_code.occupancy import Requirements, answer, compute_occupancy, list_peaks, parse_capability


def read_nvidia_results():
    """Read what cuda_occupancy.h of CUDA 13.0 computes (g++, host code) for devices with the limits of the catalog.

    There are 40 random kernels for each compute capability. The driver gives all shared memory, and blocks may opt in
    to all of it. A by_shared of 2147483647 means no limit.
    """
    path = Path(__file__).parent / "data" / "occupancy_calculator.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def result_pairs():
    """Pair our rows with NVIDIA's."""
    nvidia_rows = read_nvidia_results()
    requirements = [Requirements(int(row["block"]), int(row["registers"]), int(row["shared"])) for row in nvidia_rows]
    own_rows = {(row["number"], row["compute_capability"]): row for row in compute_occupancy(requirements)}
    return [(own_rows[number, row["compute_capability"]], row) for number, row in enumerate(nvidia_rows)]


@pytest.mark.slow
def test_blocks_are_those_of_nvidias_calculator(result_pairs):
    assert [own_row["blocks_per_sm"] for own_row, _ in result_pairs] == [
        int(nvidia_row["blocks_per_sm"]) for _, nvidia_row in result_pairs
    ]


def test_the_best_block_is_that_of_nvidias_calculator(result_pairs):
    assert [own_row["best_block"] for own_row, _ in result_pairs] == [
        int(nvidia_row["best_block"]) for _, nvidia_row in result_pairs
    ]


def test_the_limiting_resource_is_that_of_nvidias_calculator(result_pairs):
    names = {"by_warps": "warps", "by_registers": "registers", "by_shared": "shared memory", "by_slots": "blocks"}
    for own_row, nvidia_row in result_pairs:
        limits = {word: int(nvidia_row[column]) for column, word in names.items()}
        assert set(own_row["limited_by"].split(", ")) == {
            word for word, blocks in limits.items() if blocks == min(limits.values())
        }


def test_fewer_blocks_fit_beyond_the_shared_memory_cliff(result_pairs):
    cases = [
        (Requirements(own_row["block"], own_row["registers_per_thread"], own_row["shared_bytes"]), own_row)
        for own_row, _ in result_pairs[::7]
    ]
    cases = [(requirement, row) for requirement, row in cases if row["blocks_per_sm"]]
    for extra_bytes in (0, 1):
        shifted_rows = compute_occupancy(
            [
                requirement._replace(shared_bytes=requirement.shared_bytes + row["shared_cliff_bytes"] + extra_bytes)
                for requirement, row in cases
            ]
        )
        blocks_per_sm = {(row["number"], row["compute_capability"]): row["blocks_per_sm"] for row in shifted_rows}
        for number, (_, row) in enumerate(cases):
            assert (blocks_per_sm[number, row["compute_capability"]] == row["blocks_per_sm"]) is (extra_bytes == 0)


def test_two_buffers_take_twice_the_shared_memory():
    """The playbook's case: 30 KB to 60 KB. An SM of sm_86 has 100 KB: three blocks before, and one after."""
    (row,) = [row for row in compute_occupancy([Requirements(128, 32, 30 << 10)]) if row["compute_capability"] == "8.6"]
    assert (row["blocks_per_sm"], row["double_buffered_blocks"]) == (3, 1)
    doubled = {row["compute_capability"]: row for row in compute_occupancy([Requirements(128, 32, 60 << 10)])}
    assert doubled["8.6"]["blocks_per_sm"] == 1
    assert doubled["8.6"]["occupancy_pct"] == row["double_buffered_pct"]


def test_the_next_step_makes_room_for_one_block_more():
    (row,) = [row for row in compute_occupancy([Requirements(256, 65, 0)]) if row["compute_capability"] == "9.0"]
    assert row["next_step"] == "4 blocks: 1 registers less"
    (after,) = [row for row in compute_occupancy([Requirements(256, 64, 0)]) if row["compute_capability"] == "9.0"]
    assert (row["blocks_per_sm"], after["blocks_per_sm"]) == (3, 4)


def test_a_note_reports_a_block_that_fits_nowhere():
    occupancy_answer = answer(Requirements(1024, 128, 0), "9.0")
    assert occupancy_answer.dicts()[0]["blocks_per_sm"] == 0
    assert any("not even one block fits" in note for note in occupancy_answer.notes)
    too_large = answer(Requirements(2048, 16, 0), "9.0").dicts()[0]
    assert (too_large["blocks_per_sm"], too_large["limited_by"]) == (0, "block size")


def test_a_note_says_that_unknown_registers_are_not_counted():
    occupancy_answer = answer(Requirements(256, None, 0), "9.0")
    assert occupancy_answer.dicts()[0]["limited_by"] == "warps"
    assert any("registers were not given" in note for note in occupancy_answer.notes)


def test_only_few_active_warps_have_a_note():
    assert any("fewer than 8 active warps" in note for note in answer(Requirements(128, 32, 150 << 10), "9.0").notes)
    assert answer(Requirements(256, 32, 0), "9.0").notes == ()


@pytest.mark.parametrize("text", ["9.0", "90", "sm_90", "sm_90a", "compute_90"])
def test_an_architecture_can_be_written_in_the_formats_of_all_tools(text):
    assert parse_capability(text) == "9.0"


def test_an_unknown_architecture_is_an_error_that_lists_the_known_ones():
    with pytest.raises(UsageError) as error:
        parse_capability("sm_61")
    assert "7.0" in error.value.hint


def test_the_catalog_can_be_listed():
    rows = list_peaks("all").dicts()
    assert {row["compute_capability"] for row in rows} >= {"7.0", "8.6", "9.0", "10.0", "12.0"}
    (half,) = [row for row in list_peaks("9.0").dicts() if row["precision"] == "fp16"]
    assert half["flop_per_cycle"] == 4096


@pytest.mark.parametrize(
    "arguments",
    [("occupancy", "x.sqlite", "--block", "128"), ("occupancy", "--arch", "9.0"),
     ("peaks", "x.sqlite", "--arch", "9.0"),
     ("occupancy", "--registers", "300"), ("occupancy", "--shared", "8000000TB"), ("peaks", "--arch", "6.1")],
)  # fmt: skip
def test_arguments_that_conflict_are_a_usage_error(arguments):
    result = run(*arguments)
    assert result.returncode == Exit.USAGE
    assert "hint:" in result.stderr
