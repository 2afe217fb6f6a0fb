"""Resource usage printed by compilers: two programs that print the same, and a trace of the same program."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run
from opening import open_trace
from synthetic import Trace

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
        assert (usage.registers, usage.stack_bytes) == (other_usage.registers, other_usage.stack_bytes)
        # From sm_90 on, cuobjdump counts what the system reserves in each block, too.
        capability = {"75": "7.5", "90a": "9.0"}[architecture]
        assert usage.compute_static_shared(capability) == other_usage.compute_static_shared(capability)


# The forms in which nvlink and cuobjdump of CUDA 13 print usage. The kernel calls a function of another file.
LINKED = [
    "nvlink info    : 0 bytes gmem (target: sm_80)",
    "nvlink info    : Function properties for 'k': (target: sm_80)",
    "nvlink info    : used 174 registers, used 1 barriers, 0 stack, 4000 bytes smem, 0 bytes lmem (target: sm_80)",
    "nvlink info    : Function properties for 'k': (target: sm_90)",
    "nvlink info    : used 180 registers, used 1 barriers, 72 stack, 5024 bytes smem, 0 bytes lmem (target: sm_90)",
]
RESOURCES = [
    "arch = sm_90",
    "Resource usage:",
    " Function k:",
    "  REG:24 STACK:UNKNOWN SHARED:5024 LOCAL:0 CONSTANT[0]:540 TEXTURE:0 SURFACE:0 SAMPLER:0",
    " Function helper:",
    "  REG:0 STACK:0 SHARED:0 LOCAL:0 TEXTURE:0 SURFACE:0 SAMPLER:0",
]


def test_registers_after_linking_replace_those_of_one_file():
    spills = "8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads"
    rows, _ = ask([*entry(registers=24, arch="sm_80"), *entry(registers=24, frame=spills), *LINKED], block=128)
    values = [
        (row["architecture"], row["registers_per_thread"], row["stack_bytes"], row["spill_store_bytes"]) for row in rows
    ]
    assert values == [("sm_80", 174, 0, 0), ("sm_90", 180, 72, 4)]
    assert [row["static_shared_bytes"] for row in rows] == [4000, 4000]
    assert [row["limited_by"] for row in rows] == ["registers", "registers"]


# As nvJitLink of CUDA 13 prints it, here for PTX that it compiles first.
LINKED_AT_RUN_TIME = [
    "ptxas info    : Compiling entry function 'k' for 'sm_90'",
    "ptxas info    : Function properties for k",
    "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads",
    "ptxas info    : Used 24 registers, used 1 barriers, 4000 bytes smem",
    "info    : 0 bytes gmem",
    "info    : Function properties for 'k':",
    "info    : used 100 registers, used 1 barriers, 168 stack, 5024 bytes smem, 536 bytes cmem[0], 0 bytes lmem",
]


@pytest.mark.parametrize(("first", "spilled_bytes"), [(0, 4), (4, None)])
def test_the_log_of_a_link_at_run_time_is_one_of_nvlink(first, spilled_bytes):
    (row,), _ = ask(LINKED_AT_RUN_TIME[first:], block=128, architecture="sm_90")
    values = [row[key] for key in ("registers_per_thread", "stack_bytes", "static_shared_bytes", "spill_store_bytes")]
    assert values == [100, 168, 4000, spilled_bytes]


def test_a_warning_without_a_kernel_is_a_note():
    text = "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry."
    rows, notes = ask([*[f"ptxas info    : {text}"] * 2, *entry(), *entry("other")], block=128)
    assert [row["reading"] for row in rows if text in (row["reading"] or "")] == []
    assert notes == (f"ptxas does not name the kernel of this: {text}",)


def test_output_of_the_linker_without_a_target_is_that_of_the_compiled_architecture():
    linked = [line.replace(" (target: sm_90)", "") for line in LINKED[3:]]
    (usage,) = read_usages([*entry(registers=24), *linked])
    assert (usage.architecture, usage.registers) == ("sm_90", 180)


def test_an_unknown_stack_is_not_0_and_its_kernel_has_a_row():
    warning = "ptxas warning : Stack size for entry function 'k' cannot be statically determined"
    for lines in ([warning, *entry(registers=24)], RESOURCES):
        (row,), _ = ask(lines, block=128)
        assert (row["name"], row["registers_per_thread"], row["stack_bytes"]) == ("k", 24, None)
        assert row["reading"] == "the size of its stack depends on the run: recursion, or a call through a pointer"


def test_shared_memory_that_is_reserved_in_each_block_counts_once():
    (row,), _ = ask([line.replace("SHARED:5024", "SHARED:29184") for line in RESOURCES], block=128)
    assert row["static_shared_bytes"] == 29184 - 1024
    # 228 KiB hold 8 blocks of 28.5 KiB each. With the reserved memory counted twice, they would hold 7 of 29.5 KiB.
    assert row["blocks_per_sm"] == 8


def test_the_file_before_the_name_of_a_static_kernel_is_left_out():
    names = (
        "__nv_static_25__9b819bd6_4_k_cu_5916767c__Z8internalPf",
        "__nv_static_25__9b819bd6_4_k_cu_5916767c__ZN36_GLOBAL__N__9b819bd6_4_k_cu_5916767c6hiddenEPf",
    )
    rows, _ = ask([line for name in names for line in entry(name)])
    assert {row["name"] for row in rows} == {"internal(float*)", "(anonymous namespace)::hidden(float*)"}
    assert {row["mangled_name"] for row in rows} == set(names)


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
    option = "__launch_bounds__(256, 4), or -maxrregcount if it has no launch bounds"
    assert f"with 64 registers ({option}) an SM would hold 4 blocks" in row["reading"]
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


def test_more_registers_than_ptxas_printed_may_be_those_of_a_called_function():
    lines = [line.replace("Used 31 registers", "Used 24 registers") for line in read_lines("churn.sm_90.ptxas.txt")]
    with open_trace(CHURN) as session:
        rows, _ = ask(lines, trace=session)
    (reading,) = (row["reading"] for row in rows if row["reading"])
    assert reading.startswith("the trace ran it with 31 registers: a different build, or it calls functions of other")


@pytest.mark.parametrize(
    ("traced", "compiled"),
    [
        (
            "_ZN36_GLOBAL__N__1d15e978_4_k_cu_5916767c6hiddenEPf",
            "_ZN36_GLOBAL__N__9b819bd6_4_k_cu_5916767c6hiddenEPf",
        ),
        # Of a file without other functions, two compilations by nvcc, with -rdc=true, and by NVRTC.
        (
            "_ZN41_GLOBAL__N__1297e966_4_h_cu_e0bbe2e4_99976hiddenEPf",
            "_ZN42_GLOBAL__N__1297e966_4_h_cu_e0bbe2e4_101586hiddenEPf",
        ),
        (
            "__nv_static_30__1297e966_4_h_cu_e0bbe2e4_9997__ZN41_GLOBAL__N__1297e966_4_h_cu_e0bbe2e4_99976hiddenEPf",
            "__nv_static_31__1297e966_4_h_cu_e0bbe2e4_10076__ZN42_GLOBAL__N__1297e966_4_h_cu_e0bbe2e4_100766hiddenEPf",
        ),
        (
            "_ZN41_GLOBAL__N__00000000_4_a_cu_6ce607d4_91006hiddenEPf",
            "_ZN41_GLOBAL__N__00000000_4_a_cu_22dc5fc6_91636hiddenEPf",
        ),
    ],
)
def test_a_kernel_of_an_unnamed_namespace_is_found_in_another_build(traced, compiled, tmp_path):
    trace = Trace().gpu()
    trace.thread().launch("hidden(float *)", short_name=traced)
    lines = entry(compiled)
    path_hash = compiled.partition("_GLOBAL__N__")[2][:8]
    other_lines = entry(compiled.replace(path_hash, "2222222d"))
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        rows, _ = ask(lines, trace=session)
        # Of two files of one name, the trace does not tell which one it is.
        ambiguous_rows, _ = ask([*lines, *other_lines], trace=session)
    assert [row["calls"] for row in rows] == [1]
    assert [row["calls"] for row in ambiguous_rows] == [None, None]


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
