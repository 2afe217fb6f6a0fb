"""Resource usage printed by compilers: two programs that print the same, and a trace of the same program."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run
from opening import open_trace

from nsys_insight.cli.main import _run
from nsys_insight.errors import Exit, TraceError, UsageError
from nsys_insight.kernel_code.ptxas import Assumptions, answer, read_usages

DATA = Path(__file__).parent / "data" / "sass"
CHURN = Path(__file__).parents[1] / "sample_traces" / "churn.sqlite"


def read_lines(name):
    return (DATA / name).read_text().splitlines()


def ask(lines, *, trace=None, kernel=None, **assumptions):
    usage_answer = answer(lines, "it", Assumptions(**assumptions), trace=trace, kernel=kernel)
    return usage_answer.dicts(), usage_answer.notes


def entry(
    name="k",
    registers=32,
    *,
    arch="sm_90",
    frame="0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads",
    more_usage="",
):
    return [
        f"ptxas info    : Compiling entry function '{name}' for '{arch}'",
        f"ptxas info    : Function properties for {name}",
        f"    {frame}",
        f"ptxas info    : Used {registers} registers{more_usage}",
    ]


@pytest.mark.parametrize("architecture", ["75", "90a"])
def test_ptxas_and_cuobjdump_report_the_same_usage(architecture):
    first = {usage.name: usage for usage in read_usages(read_lines(f"sass_a.sm_{architecture}.ptxas.txt"))}
    second = {usage.name: usage for usage in read_usages(read_lines(f"sass_a.sm_{architecture}.resources.txt"))}
    assert first.keys() == second.keys()
    assert len(first) == 8
    for name, usage in first.items():
        other_usage = second[name]
        driver = 1024 if architecture == "90a" and other_usage.shared_bytes else 0
        assert (usage.registers, usage.stack_bytes) == (other_usage.registers, other_usage.stack_bytes)
        assert usage.shared_bytes in (other_usage.shared_bytes, other_usage.shared_bytes - driver)


def test_each_number_is_read_from_its_field():
    frame = "536 bytes stack frame, 820 bytes spill stores, 844 bytes spill loads"
    more_usage = (
        ", used 1 barriers, 536 bytes cumulative stack size, 1024+16 bytes smem, 400 bytes cmem[0], 8 bytes cmem[2]"
    )
    (usage,) = read_usages(entry(registers=40, frame=frame, more_usage=more_usage))
    assert (usage.registers, usage.stack_bytes, usage.spill_store_bytes, usage.spill_load_bytes) == (40, 536, 820, 844)
    assert (usage.barriers, usage.shared_bytes, usage.constant_bytes) == (1, 1040, 408)


def test_names_are_those_of_the_source():
    names = [row["name"] for row in ask(read_lines("sass_a.sm_90a.ptxas.txt"))[0]]
    assert "void gemm_tiled<32>(float const*, float const*, float*, int)" in names


def test_other_output_of_a_build_is_skipped():
    lines = ["[1/2] nvcc -c a.cu", *entry("a", 40)[:2], "make: warning", *entry("a", 40)[2:], "done"]
    (usage,) = read_usages(lines)
    assert (usage.registers, usage.spill_store_bytes) == (40, 0)


def test_a_device_function_has_no_row_and_its_spills_count_for_no_kernel():
    helper = [
        "ptxas info    : Function properties for helper",
        "    96 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads",
    ]
    (usage,) = read_usages([*helper, *entry("k", 40)[:3], *helper, entry("k", 40)[3]])
    assert (usage.name, usage.spill_store_bytes, usage.stack_bytes) == ("k", 0, 0)


def test_a_kernel_of_several_architectures_has_a_row_for_each():
    rows, _ = ask([*entry(arch="sm_80"), *entry(arch="sm_90", registers=40)])
    assert {row["architecture"]: row["registers_per_thread"] for row in rows} == {"sm_80": 32, "sm_90": 40}


def test_a_remark_of_ptxas_belongs_to_its_kernel():
    remark = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources in function '_Z1kv'"  # noqa: E501
    rows, _ = ask([remark, *entry("_Z1kv"), *entry("_Z1jv")])
    readings = {row["mangled_name"]: row["reading"] for row in rows}
    assert "wgmma.mma_async instructions are serialized" in readings["_Z1kv"]
    assert readings["_Z1jv"] is None


# What fits


def test_the_reading_says_how_many_blocks_fit_with_fewer_registers():
    rows, _ = ask(entry(registers=65), block=256)
    (row,) = rows
    assert (row["blocks_per_sm"], row["limited_by"]) == (3, "registers")
    assert "with 64 registers (-maxrregcount, or __launch_bounds__(256, 4)) an SM would hold 4 blocks" in row["reading"]
    assert "50% of its warps for 38%" in row["reading"]
    (after,) = ask(entry(registers=64), block=256)[0]
    assert (after["blocks_per_sm"], after["occupancy_pct"]) == (4, 50)


def test_a_spilling_kernel_has_no_advice_to_use_fewer_registers():
    frame = "8 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads"
    (row,) = ask(entry(registers=65, frame=frame), block=256)[0]
    assert "spill stores of 8 bytes and loads of 4" in row["reading"]
    assert "-maxrregcount" not in row["reading"]


def test_a_stack_without_spills_is_not_reported_as_spills():
    (row,) = ask(entry(frame="64 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"))[0]
    assert row["reading"] == "a stack frame of 64 bytes: an array indexed at run time, or a call"


def test_a_kernel_with_full_occupancy_has_no_remark():
    (row,) = ask(entry(registers=32), block=256)[0]
    assert (row["occupancy_pct"], row["reading"]) == (100, None)


def test_given_shared_memory_is_added_to_the_static_memory():
    (row,) = ask(entry(more_usage=", 1024 bytes smem"), block=128, dynamic_bytes=99 << 10)[0]
    assert (row["static_shared_bytes"], row["dynamic_shared_bytes"]) == (1024, 99 << 10)
    assert (row["blocks_per_sm"], row["limited_by"]) == (2, "shared memory")


def test_without_an_architecture_occupancy_is_unknown_and_a_note_names_the_flag():
    lines = read_lines("sass_a.sm_90a.resources.txt")
    rows, notes = ask(lines, block=256)
    assert {row["occupancy_pct"] for row in rows} == {None}
    assert any("--arch" in note for note in notes)
    rows, notes = ask(lines, block=256, architecture="sm_90")
    assert {row["occupancy_pct"] for row in rows} == {100}
    assert notes == ()


def test_without_a_block_size_the_best_one_is_used_with_a_note():
    rows, notes = ask(entry(registers=40))
    assert rows[0]["block"] == rows[0]["best_block"] == 768
    assert any("the block size is unknown" in note for note in notes)


# With a trace of the program


@pytest.fixture(scope="module")
def traced_answer():
    with open_trace(CHURN) as session:
        usage_answer = answer(read_lines("churn.sm_90.ptxas.txt"), "it", Assumptions(), trace=session)
        return usage_answer.dicts(), usage_answer.notes, session.occupancy().to_dicts()


def test_kernels_are_those_of_the_trace(traced_answer):
    rows, notes, occupancy_rows = traced_answer
    assert {row["name"].partition("(")[0] for row in rows} == {row["name"].partition("(")[0] for row in occupancy_rows}
    assert notes == ("the trace launched 4 of 4 kernels",)


def test_calls_and_occupancy_are_those_of_the_trace(traced_answer):
    rows, _, occupancy_rows = traced_answer
    usage_by_name, occupancy_by_name = (
        {row["name"].partition("(")[0]: row for row in row_list} for row_list in (rows, occupancy_rows)
    )
    for name, row in usage_by_name.items():
        assert (row["calls"], row["total_ns"]) == (
            occupancy_by_name[name]["calls"],
            occupancy_by_name[name]["total_ns"],
        )
        # The occupancy of the compiler's numbers is that of the launch.
        assert row["occupancy_pct"] == occupancy_by_name[name]["occupancy_pct"]


def test_registers_agree_if_the_trace_is_of_this_build(traced_answer):
    rows, _, _ = traced_answer
    assert not [row for row in rows if row["reading"]]
    assert {row["trace_registers"] for row in rows} == {16, 31}


def test_a_trace_of_another_build_is_noticed():
    lines = [line.replace("Used 31 registers", "Used 64 registers") for line in read_lines("churn.sm_90.ptxas.txt")]
    with open_trace(CHURN) as session:
        rows, _ = ask(lines, trace=session)
    assert [row["reading"] for row in rows if row["reading"]] == [
        ("the trace ran it with 31 registers: a different build")
    ]


def test_code_of_another_architecture_than_the_traces_gpu_was_not_launched():
    lines = [line.replace("sm_90", "sm_80") for line in read_lines("churn.sm_90.ptxas.txt")]
    with open_trace(CHURN) as session:
        rows, notes = ask(lines, trace=session)
    assert {row["calls"] for row in rows} == {None}
    assert "the trace launched 0 of 4 kernels" in notes


# The command


@pytest.mark.parametrize(
    "line", ["Used 99999999999999999999 registers", "Used 32 registers, 9999999999999999999 bytes smem"]
)
def test_impossible_numbers_are_ignored(line):
    assert read_usages([*entry()[:3], f"ptxas info    : {line}"]) == []


@pytest.mark.parametrize(
    "content", ["", "error: nothing\n", "\0\0", "ptxas info    : 0 bytes gmem\n", "ptxas info : Used x registers\n"]
)
def test_text_without_resource_usage_is_refused(content):
    with pytest.raises(TraceError, match="has no resource usage of kernels") as error:
        ask(content.splitlines())
    assert "-Xptxas -v" in error.value.hint


def test_an_unknown_kernel_is_an_error_that_lists_the_known_ones():
    with pytest.raises(UsageError) as error:
        ask(entry("_Z4copyPf"), kernel="nowhere")
    assert "copy" in error.value.hint


def test_a_pipe_is_read():
    result = run("ptxas", "--block", "256", stdin=(DATA / "sass_a.sm_90a.ptxas.txt").read_text())
    assert result.returncode == 0
    assert "- spilling, sm_90a: spill stores of 488 bytes and loads of 512" in result.stdout


def test_input_from_a_terminal_is_a_usage_error(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.argv", ["nsys-insight", "ptxas"])
    assert _run() == Exit.USAGE
    assert "2>&1 | nsys-insight ptxas" in capsys.readouterr().err
