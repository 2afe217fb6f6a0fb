"""`occupancy --block --registers --shared`: against NVIDIA's own calculator, and against placing one block more."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from command_line import run

from nsys_insight.errors import Exit, UsageError
from nsys_insight.kernel_code.occupancy import Wanted, answer, capability, fitting, peaks


def of_nvidia():
    """What cuda_occupancy.h of CUDA 13.0 computes (g++, host code) for devices of the catalog's limits.

    For each compute capability, 40 kernels drawn at random; the driver gives the whole of shared memory, and blocks may
    opt in to all of it. by_shared of 2147483647 is no limit.
    """
    path = Path(__file__).parent / "data" / "occupancy_calculator.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def computed():
    """Ours beside theirs."""
    theirs = of_nvidia()
    wanted = [Wanted(int(row["block"]), int(row["registers"]), int(row["shared"])) for row in theirs]
    ours = {(row["number"], row["compute_capability"]): row for row in fitting(wanted)}
    return [(ours[number, row["compute_capability"]], row) for number, row in enumerate(theirs)]


@pytest.mark.slow
def test_blocks_are_those_of_nvidias_calculator(computed):
    assert [ours["blocks_per_sm"] for ours, _ in computed] == [int(theirs["blocks_per_sm"]) for _, theirs in computed]


def test_the_best_block_is_that_of_nvidias_calculator(computed):
    assert [ours["best_block"] for ours, _ in computed] == [int(theirs["best_block"]) for _, theirs in computed]


def test_what_limits_is_what_nvidias_calculator_finds_least(computed):
    names = {"by_warps": "warps", "by_registers": "registers", "by_shared": "shared memory", "by_slots": "blocks"}
    for ours, theirs in computed:
        limits = {word: int(theirs[column]) for column, word in names.items()}
        assert set(ours["limited_by"].split(", ")) == {
            word for word, blocks in limits.items() if blocks == min(limits.values())
        }


def test_up_to_the_cliff_as_many_blocks_fit_and_beyond_it_fewer(computed):
    cases = [
        (Wanted(ours["block"], ours["registers_per_thread"], ours["shared_bytes"]), ours) for ours, _ in computed[::7]
    ]
    cases = [(wanted, row) for wanted, row in cases if row["blocks_per_sm"]]
    for more in (0, 1):
        moved = fitting(
            [one._replace(shared_bytes=one.shared_bytes + row["shared_cliff_bytes"] + more) for one, row in cases]
        )
        found = {(row["number"], row["compute_capability"]): row["blocks_per_sm"] for row in moved}
        for number, (_, row) in enumerate(cases):
            assert (found[number, row["compute_capability"]] == row["blocks_per_sm"]) is (more == 0)


def test_two_buffers_take_twice_the_shared_memory():
    """The playbook's case: 30 KB to 60 KB. An SM of sm_86 has 100 KB: three blocks before, and one after."""
    (row,) = [row for row in fitting([Wanted(128, 32, 30 << 10)]) if row["compute_capability"] == "8.6"]
    assert (row["blocks_per_sm"], row["double_buffered_blocks"]) == (3, 1)
    doubled = {row["compute_capability"]: row for row in fitting([Wanted(128, 32, 60 << 10)])}
    assert doubled["8.6"]["blocks_per_sm"] == 1
    assert doubled["8.6"]["occupancy_pct"] == row["double_buffered_pct"]


def test_the_next_step_makes_room_for_one_block_more():
    (row,) = [row for row in fitting([Wanted(256, 65, 0)]) if row["compute_capability"] == "9.0"]
    assert row["next_step"] == "4 blocks: 1 registers less"
    (after,) = [row for row in fitting([Wanted(256, 64, 0)]) if row["compute_capability"] == "9.0"]
    assert (row["blocks_per_sm"], after["blocks_per_sm"]) == (3, 4)


def test_a_block_that_does_not_fit_anywhere_is_said_not_to():
    made = answer(Wanted(1024, 128, 0), "9.0")
    assert made.dicts()[0]["blocks_per_sm"] == 0
    assert any("not even one block fits" in note for note in made.notes)
    too_large = answer(Wanted(2048, 16, 0), "9.0").dicts()[0]
    assert (too_large["blocks_per_sm"], too_large["limited_by"]) == (0, "block size")


def test_registers_that_were_not_given_do_not_count_and_that_is_said():
    made = answer(Wanted(256, None, 0), "9.0")
    assert made.dicts()[0]["limited_by"] == "warps"
    assert any("registers were not given" in note for note in made.notes)


def test_few_warps_are_remarked_on_only_where_there_are_few():
    assert any("fewer than 8 active warps" in note for note in answer(Wanted(128, 32, 150 << 10), "9.0").notes)
    assert answer(Wanted(256, 32, 0), "9.0").notes == ()


@pytest.mark.parametrize("text", ["9.0", "90", "sm_90", "sm_90a", "compute_90"])
def test_an_architecture_may_be_written_as_every_tool_does(text):
    assert capability(text) == "9.0"


def test_an_architecture_that_is_not_in_the_catalog_is_refused_with_those_that_are():
    with pytest.raises(UsageError) as error:
        capability("sm_61")
    assert "7.0" in error.value.hint


def test_the_catalog_can_be_listed():
    found = peaks("all").dicts()
    assert {row["compute_capability"] for row in found} >= {"7.0", "8.6", "9.0", "10.0", "12.0"}
    (half,) = [row for row in peaks("9.0").dicts() if row["precision"] == "fp16"]
    assert half["flop_per_cycle"] == 4096


@pytest.mark.parametrize(
    "arguments",
    [("occupancy", "x.sqlite", "--block", "128"), ("occupancy", "--arch", "9.0"),
     ("peaks", "x.sqlite", "--arch", "9.0"),
     ("occupancy", "--registers", "300"), ("occupancy", "--shared", "8000000TB"), ("peaks", "--arch", "6.1")],
)  # fmt: skip
def test_what_does_not_go_together_is_an_error_of_use(arguments):
    done = run(*arguments)
    assert done.returncode == Exit.USAGE
    assert "hint:" in done.stderr
