"""Machine code: kernels whose instructions and loops are known by construction, and handwritten code."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from pathlib import Path

import command_line
import pytest

from nsys_insight.errors import Exit, ToolError, TraceError
from nsys_insight.kernel_code import disassembly, files, sass
from nsys_insight.kernel_code.instructions import decode_control, parse_instruction
from nsys_insight.kernel_code.loops import find_loops
from nsys_insight.kernel_code.reading import count_neighbor_loads, describe_region
from nsys_insight.kernel_code.regions import split_regions
from nsys_insight.programs import find_tool
from nsys_insight.session.answer import read_columns

DATA = Path(__file__).parent / "data" / "sass"
TEXTS = ["sass_a.sm_90a.cuobjdump.txt", "sass_a.sm_90a.nvdisasm.txt", "sass_a.sm_75.cuobjdump.txt"]


def read_rows(file, **options):
    return sass.answer(DATA / file if isinstance(file, str) else file, **options).dicts()


def loop_rows(file, name):
    return [row for row in read_rows(file, kernel=name) if row["part"] != "kernel"]


def kernel_row(file, name):
    (row,) = [row for row in read_rows(file, kernel=name) if row["part"] == "kernel"]
    return row


def parse_code(*lines, architecture="sm_90"):
    """Parse a kernel of instructions as cuobjdump prints them. A line `name:` is a label."""
    text, address = f"\tcode for {architecture}\n\t\tFunction : k\n", 0
    for line in lines:
        if line.endswith(":"):
            text += f".{line}\n"
        else:
            text += f"        /*{address:04x}*/  {line} ;\n"
            address += 16
    (kernel,) = disassembly.read_kernels(text.splitlines(keepends=True))
    return kernel


def describe_loop(*lines, architecture="sm_90"):
    """Describe the first innermost loop: return the remarks about it."""
    inner_loop = next(
        region
        for region in split_regions(parse_code(*lines, architecture=architecture))
        if region.loop and region.loop.is_innermost
    )
    return describe_region(inner_loop)


# Compiled kernels


@pytest.mark.parametrize("file", TEXTS)
def test_every_kernel_is_read_completely(file):
    rows = read_rows(file)
    kernels = [row for row in rows if row["part"] == "kernel"]
    assert len(kernels) == 8
    assert not any(row["unknown"] for row in rows)
    assert sass.answer(DATA / file).notes == ()


@pytest.mark.parametrize("file", TEXTS)
@pytest.mark.parametrize(
    ("name", "count"),
    # gemm_naive is unrolled by four, so the remainder has its own loop.
    [
        ("gemm_naive", 2),
        ("gemm_tiled<8>", 1),
        ("gemm_tiled<32>", 1),
        ("copy_scalar", 1),
        ("copy_vec4", 1),
        ("spilling", 1),
        ("wmma_gemm", 1),
        ("reduce_shfl", 1),
    ],
)
def test_loops_are_those_of_the_source(file, name, count):
    assert len(loop_rows(file, name)) == count


@pytest.mark.parametrize("file", TEXTS)
def test_gemm_naive_loads_two_words_per_multiply_add(file):
    unrolled = loop_rows(file, "gemm_naive")[0]
    assert (unrolled["multiply_adds"], unrolled["global_loads"], unrolled["load_bits"]) == (4, 8, "32: 8")
    assert unrolled["compute_per_load_ratio"] == 0.5
    # The loop loads four neighboring elements of a[row * n + k]. The elements of b are a row apart.
    assert "4 of 8 loads are of neighboring addresses" in unrolled["reading"]


@pytest.mark.parametrize("file", TEXTS)
@pytest.mark.parametrize("tile", [8, 32])
def test_a_tile_loop_has_a_multiply_add_per_column_two_loads_and_two_barriers(file, tile):
    (loop,) = loop_rows(file, f"gemm_tiled<{tile}>")
    assert (loop["multiply_adds"], loop["global_loads"], loop["barriers"]) == (tile, 2, 2)
    assert loop["compute_per_load_ratio"] == tile / 2


def test_asynchronous_copies_are_advised_for_tiles_where_the_architecture_has_them():
    small, large = (loop_rows(TEXTS[0], f"gemm_tiled<{tile}>")[0]["reading"] for tile in (8, 32))
    assert "2 of 2 loads go through registers into shared memory: asynchronous copies (cp.async) pay below 5" in small
    assert "between 5 and 20" in large
    for name in ("gemm_tiled<8>", "gemm_tiled<32>"):
        assert "cp.async" not in (loop_rows("sass_a.sm_75.cuobjdump.txt", name)[0]["reading"] or "")


@pytest.mark.parametrize("file", TEXTS)
def test_a_copy_is_as_wide_as_its_type(file):
    (scalar,), (vector,) = loop_rows(file, "copy_scalar"), loop_rows(file, "copy_vec4")
    assert (scalar["load_bits"], scalar["store_bits"]) == ("32: 1", "32: 1")
    assert (vector["load_bits"], vector["store_bits"]) == ("128: 1", "128: 1")
    assert "32 bits wide at most" in scalar["reading"]
    assert vector["reading"] is None


@pytest.mark.parametrize("architecture", ["75", "90a"])
def test_bytes_of_local_memory_equal_the_spills_of_ptxas(architecture):
    text = (DATA / f"sass_a.sm_{architecture}.ptxas.txt").read_text()
    spills = re.search(
        r"Compiling entry function '_Z8spilling.*?(\d+) bytes spill stores, (\d+) bytes spill loads", text, re.DOTALL
    )
    row = kernel_row(f"sass_a.sm_{architecture}.cuobjdump.txt", "spilling")
    assert (row["local_store_bytes"], row["local_load_bytes"]) == (int(spills[1]), int(spills[2]))
    assert not any(row["local_load_bytes"] for row in read_rows(TEXTS[0]) if "spilling" not in row["name"])


@pytest.mark.parametrize("file", TEXTS)
def test_tensor_cores_shuffles_and_special_functions_are_found(file):
    mnemonics = {
        (row["name"].partition("(")[0].removeprefix("void "), row["class"]): row["mnemonics"]
        for row in read_rows(file, grouping="class")
        if row["part"] == "kernel"
    }
    assert "HMMA" in mnemonics["wmma_gemm", "tensor"]
    assert [name for name, kind in mnemonics if kind == "tensor"] == ["wmma_gemm"]
    assert mnemonics["reduce_shfl", "shuffle"] == "SHFL x5"
    assert mnemonics["reduce_shfl", "special"] == "MUFU x1"


def test_classes_sum_to_all_instructions():
    by_class = [row for row in read_rows(TEXTS[0], grouping="class") if row["class"] != "nothing"]
    for row in read_rows(TEXTS[0]):
        own_classes = [
            class_row for class_row in by_class if (class_row["name"], class_row["part"]) == (row["name"], row["part"])
        ]
        assert sum(class_row["instructions"] for class_row in own_classes) == row["instructions"]
        assert sum(class_row["predicated"] for class_row in own_classes) == row["predicated"]


def test_both_disassemblers_show_the_same_code():
    differing = ("source", "issue_cycles", "stall_codes", "reading", "architecture")
    by_cuobjdump, by_nvdisasm = (
        [{key: value for key, value in row.items() if key not in differing} for row in read_rows(file)]
        for file in TEXTS[:2]
    )
    assert by_cuobjdump == by_nvdisasm


def test_lines_of_the_source_are_those_of_the_loop():
    source = (DATA / "sass_a.cu").read_text().splitlines()
    (loop,) = loop_rows("sass_a.sm_90a.nvdisasm.txt", "gemm_tiled<8>")
    file, first, last = re.fullmatch(r"(.*):(\d+)-(\d+)", loop["source"]).groups()
    assert file == "sass_a.cu"
    body = "\n".join(source[int(first) - 1 : int(last)])
    assert "as[threadIdx.y][threadIdx.x] = a" in body
    assert "sum += as" in body
    assert "c[row * n + column]" not in body


# Instructions


@pytest.mark.parametrize(
    ("text", "mnemonic", "width"),
    [
        ("LDG.E R2, desc[UR4][R2.64]", "LDG", 32),
        ("@!P0 LDG.E.128.CONSTANT R4, [R2]", "LDG", 128),
        ("LDG.E.U8 R2, [R2.64]", "LDG", 8),
        ("LDG.E.64.STRONG.GPU R2, [R2]", "LDG", 64),
        ("LDGSTS.E.BYPASS.LTC128B.128 [R5], [R2.64]", "LDGSTS", 128),
        ("LDG.E.LTC128B R5, [R2.64]", "LDG", 32),
        ("LDG.E.ENL2.256 R8, R4, desc[UR4][R2.64]", "LDG", 256),
    ],
)
def test_widths_are_read_from_modifiers(text, mnemonic, width):
    instruction = parse_instruction(0, text)
    assert (instruction.mnemonic, instruction.width_bits) == (mnemonic, width)


def test_a_predicate_that_is_always_true_does_not_count():
    assert [
        parse_instruction(0, text).is_predicated
        for text in ("FADD R0, R0, R1", "@PT FADD R0, R0, R1", "@!P2 FADD R0, R0, R1", "@UP0 UMOV UR4, UR5")
    ] == [False, False, True, True]


@pytest.mark.parametrize(
    "text", ["HFMA2.MMA R6, -RZ, RZ, 0, 0", "HFMA2 R1, -RZ, RZ, 1.875, 0", "IMAD.MOV.U32 R3, RZ, RZ, R4"]
)
def test_an_instruction_that_only_fills_a_register_is_a_move(text):
    (part,) = split_regions(parse_code(text, "EXIT"))
    assert (part.classes[0], part.multiply_add_count) == ("move", 0)


def test_control_bits_have_the_stall_count_and_the_scoreboards():
    # Jia et al., Dissecting the NVIDIA Volta GPU Architecture (2018): 4 bits of stall, 6 of scoreboards to wait for.
    assert decode_control(0x000FCA0000400000) == (5, ())
    assert decode_control(0x004FCA0000400000) == (5, (2,))
    assert decode_control(0x000FE20000000800) == (1, ())


def test_stall_counts_are_those_of_the_encoding():
    (loop,) = loop_rows("sass_a.sm_90a.cuobjdump.txt", "copy_vec4")
    text = (DATA / "sass_a.sm_90a.cuobjdump.txt").read_text().partition("copy_vec4")[2]
    first, last = (int(word, 16) for word in loop["address"].split("-"))
    words = dict(re.findall(r"/\*([0-9a-f]{4})\*/.*?\n /\* 0x([0-9a-f]{16}) \*/", text.partition("Function")[0]))
    assert loop["issue_cycles"] == sum(
        int(words[f"{address:04x}"], 16) >> 41 & 15 for address in range(first, last + 1, 16)
    )
    assert loop_rows("sass_a.sm_90a.nvdisasm.txt", "copy_vec4")[0]["issue_cycles"] is None


def test_an_unknown_mnemonic_is_counted_as_such():
    (part,) = split_regions(parse_code("FFMA R0, R0, R1, R2", "WARPDRIVE.X2 R3, R4", "EXIT"))
    assert part.instruction_count == 3
    assert dict(part.unknown_mnemonics) == {"WARPDRIVE": 1}
    assert describe_region(part) == ["not in the instruction catalog: WARPDRIVE x1"]


# Loops


def test_loops_nest():
    loops = find_loops(
        parse_code(
            "MOV R0, R1",
            "outer:",
            "MOV R2, R3",
            "inner:",
            "FFMA R0, R0, R1, R2",
            "@P0 BRA `(.inner)",
            "@P1 BRA `(.outer)",
            "EXIT",
        )
    )
    assert [(loop.number, loop.depth, loop.positions) for loop in loops] == [("1", 1, [1, 2, 3, 4]), ("1.1", 2, [2, 3])]


def test_a_block_behind_the_end_that_jumps_back_is_not_a_loop():
    # The slow path of a division is moved behind EXIT, and jumps back to the code after the division.
    loops = find_loops(
        parse_code("@P0 BRA `(.slow)", "back:", "FADD R0, R0, R1", "EXIT", "slow:", "MUFU.RCP R0, R1", "BRA `(.back)")
    )
    assert loops == []


def test_a_loop_may_have_a_block_behind_the_end():
    loops = find_loops(
        parse_code(
            "top:",
            "@P0 BRA `(.rare)",
            "back:",
            "FADD R0, R0, R1",
            "@P1 BRA `(.top)",
            "EXIT",
            "rare:",
            "FMUL R0, R0, R1",
            "BRA `(.back)",
        )
    )
    assert [loop.positions for loop in loops] == [[0, 1, 2, 4, 5]]


def test_two_jumps_back_to_one_address_are_one_loop():
    loops = find_loops(parse_code("top:", "@P0 BRA `(.top)", "FADD R0, R0, R1", "@P1 BRA `(.top)", "EXIT"))
    assert [loop.positions for loop in loops] == [[0, 1, 2]]


def test_the_jump_to_itself_at_the_end_is_not_a_loop():
    assert find_loops(parse_code("EXIT", "end:", "BRA `(.end)", "NOP")) == []


def test_a_reconvergence_barrier_leads_to_its_target():
    # Without this edge, the BSYNC behind the end would lead nowhere, and the loop would not be closed.
    loops = find_loops(
        parse_code(
            "top:",
            "BSSY B0, `(.met)",
            "@P0 BRA `(.rare)",
            "met:",
            "@P1 BRA `(.top)",
            "EXIT",
            "rare:",
            "FADD R0, R0, R1",
            "BSYNC B0",
        )
    )
    assert [loop.positions for loop in loops] == [[0, 1, 2, 4, 5]]


def test_a_called_function_has_its_own_loops():
    loops = find_loops(
        parse_code(
            "CALL.REL.NOINC `(.sub)",
            "EXIT",
            "sub:",
            "again:",
            "FADD R0, R0, R1",
            "@P0 BRA `(.again)",
            "RET.REL.NODEC R2 0x0",
        )
    )
    assert [loop.positions for loop in loops] == [[2, 3]]


def test_branch_tables_lead_to_the_targets_of_nvdisasm():
    loops = find_loops(
        parse_code(
            "top:",
            'BRX R2 -0x110 (*"BRANCH_TARGETS .one,.two"*)',
            "one:",
            "FADD R0, R0, R1",
            "BRA `(.top)",
            "two:",
            "EXIT",
        )
    )
    assert [loop.positions for loop in loops] == [[0, 1, 2]]


def test_a_conditional_jump_of_the_warp_can_fall_through():
    loops = find_loops(
        parse_code(
            "top:",
            "BRA.DIV UR4, `(.apart)",
            "@P0 BRA `(.top)",
            "EXIT",
            "apart:",
            "SHFL.DOWN PT, R3, R6, 0x10, 0x1f",
            "EXIT",
        )
    )
    assert [loop.positions for loop in loops] == [[0, 1]]


@pytest.mark.slow
def test_a_text_with_very_deep_nesting_is_read():
    depth = 3000
    lines = [line for level in range(depth) for line in (f"L{level}:", "FADD R0, R0, R1")]
    loops = find_loops(parse_code(*lines, *(f"@P0 BRA `(.L{level})" for level in reversed(range(depth))), "EXIT"))
    assert [loop.depth for loop in loops] == list(range(1, depth + 1))


# Remarks

STAGED = ["top:", "LDG.E R4, [R2.64]", "LDG.E R5, [R6.64]", "STS [R8], R4", "STS [R9], R5", "BAR.SYNC 0x0"]
END = ["@P0 BRA `(.top)", "EXIT"]


def repeat_ffma(count):
    return ["FFMA R10, R11, R12, R10"] * count


@pytest.mark.parametrize(("count", "words"), [(2, "pay below 5"), (20, "may pay"), (50, "cost more than they hide")])
def test_the_ratio_decides_whether_staged_loads_should_be_asynchronous(count, words):
    assert words in describe_loop(*STAGED, *repeat_ffma(count), *END)[0]


def test_no_asynchronous_copies_are_advised_for_loads_that_are_not_staged():
    for text in describe_loop("top:", "LDG.E R4, [R2.64]", "FFMA R0, R4, R4, R0", *END):
        assert "cp.async" not in text


def test_no_asynchronous_copies_are_advised_before_sm_80():
    for text in describe_loop(*STAGED, *repeat_ffma(2), *END, architecture="sm_75"):
        assert "cp.async" not in text


def test_no_asynchronous_copies_are_advised_where_they_exist():
    copies = ["top:", "LDGSTS.E.128 [R8], [R2.64]", "LDGDEPBAR", "DEPBAR.LE SB0, 0x1", "BAR.SYNC 0x0"]
    assert describe_loop(*copies, *repeat_ffma(8), *END) == []
    assert "plain loads can be faster" in describe_loop(*copies, *repeat_ffma(30), *END)[0]


def test_tiles_loaded_by_tma_have_no_ratio():
    kernel = parse_code(
        "top:", "UTMALDG.2D [UR8], [UR4]", "HGMMA.64x128x16.F32 R24, gdesc[UR8], R24", "LDG.E R4, [R2.64]", *END
    )
    part = split_regions(kernel)[1]
    assert part.compute_per_load is None
    assert describe_region(part) == []


def test_a_loop_that_polls_a_barrier_is_a_waiting_loop():
    part = split_regions(
        parse_code("top:", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2", "@!P0 BRA `(.top)", "EXIT")
    )[1]
    assert part.name == "waiting loop 1"


def test_neighboring_loads_are_counted_until_their_address_changes():
    def count(*lines):
        return count_neighbor_loads(split_regions(parse_code(*lines, "EXIT"))[0])

    pair = ["LDG.E R8, [R2.64]", "LDG.E R9, [R2.64+0x4]"]
    assert count(*pair) == 2
    assert count(pair[0], "IADD3 R2, R2, 0x4, RZ", pair[1]) == 0
    assert count(pair[0], "IADD3 R3, R3, 0x4, RZ", pair[1]) == 0  # the upper half of the address
    assert count("LDG.E R8, [R2.64]", "LDG.E R9, [R2.64+0x40]") == 0
    assert count("LDG.E.128 R8, [R2.64]", "LDG.E.128 R12, [R2.64+0x10]") == 0
    assert count("LDG.E R8, [R2.64+-0x4]", "LDG.E R9, [R2.64]", "LDG.E R10, [R2.64+0x8]") == 2


def test_a_loop_with_enough_arithmetic_has_no_remarks():
    assert describe_loop("top:", "LDG.E.128 R4, [R2.64]", *repeat_ffma(10), *END) == []


# The source page of ncu

HEADER = [
    "Address",
    "Source",
    "Warp Stall Sampling (All Samples)",
    "Warp Stall Sampling (Not-issued Samples)",
    "# Samples",
    "Instructions Executed",
    "Thread Instructions Executed",
    "Predicated-On Thread Instructions Executed",
    "stall_long_sb",
    "stall_selected",
    "stall_wait",
    "stall_wait_not_issued",
]
BASE = 0x7F3A4C00


def write_source_page(path, kernels):
    """Write a source page as ncu prints it: the address and the counts of each instruction."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    for name, lines in kernels.items():
        writer.writerow(["Kernel Name", name])
        writer.writerow(HEADER)
        for index, (source, executed, long_sb, wait) in enumerate(lines):
            samples = long_sb + wait + 1
            writer.writerow(
                [
                    f"{BASE + 16 * index:#x}",
                    f"      {source} ",
                    samples,
                    0,
                    samples,
                    f"{executed:,}",
                    executed * 32,
                    executed * 30,
                    long_sb,
                    1,
                    wait,
                    99,
                ]
            )
    path.write_text("==PROF== Disconnected\n" + text.getvalue())
    return path


@pytest.fixture
def measured_page(tmp_path):
    lines = [
        ("MOV R1, c[0x0][0x28]", 10, 0, 0),
        ("LDG.E R4, [R2.64]", 4000, 0, 5),
        ("FFMA R0, R4, R5, R0", 4000, 80, 3),
        (f"@P0 BRA {BASE + 16:#x}", 4000, 0, 2),
        ("FADD R0, R0, R0", 100, 0, 0),
        (f"@P1 BRA {BASE + 64:#x}", 100, 0, 0),
        ("EXIT", 10, 0, 1),
    ]
    return write_source_page(tmp_path / "k.source.csv", {"k(float *)": lines, "other()": [("EXIT", 1, 0, 0)]})


def test_counts_of_ncu_are_added_up_in_loops(measured_page):
    rows = {row["part"]: row for row in read_rows(measured_page, kernel="k(")}
    assert rows.keys() == {"kernel", "loop 1", "loop 2"}
    assert (rows["kernel"]["executed"], rows["loop 1"]["executed"], rows["loop 2"]["executed"]) == (
        12220,
        12000,
        200,
    )
    assert rows["loop 1"]["executed_pct"] == pytest.approx(100 * 12000 / 12220)
    assert rows["loop 1"]["reading"].startswith("most of the executed instructions are here")
    assert "most instructions" not in (rows["loop 2"]["reading"] or "")


def test_counts_by_class_are_those_of_the_instructions(measured_page):
    rows = {
        row["class"]: row for row in read_rows(measured_page, grouping="class", kernel="k(") if row["part"] == "kernel"
    }
    assert (rows["fp32_fma"]["executed"], rows["fp32_fma"]["threads_executed"]) == (4000, 120_000)
    assert rows["global_load"]["executed"] == 4000


def test_the_line_that_stalls_most_comes_first_with_its_reason(measured_page):
    first = read_rows(measured_page, grouping="line")[0]
    assert (first["instruction"], first["part"], first["stall"]) == ("FFMA R0, R4, R5, R0", "loop 1", "long_sb")
    assert first["stall_pct"] == pytest.approx(100 * 80 / 84)
    assert first["samples"] == 84


def test_impossible_counts_are_null(tmp_path):
    page = write_source_page(tmp_path / "k.csv", {"k()": [("EXIT", 10**30, 1, 0)]})
    assert read_rows(page)[0]["executed"] is None


def test_a_note_reports_missing_samples():
    answer = sass.answer(DATA / TEXTS[0], grouping="line")
    assert answer.row_count == 0
    assert "no stall samples" in answer.notes[0]


# A source page of ncu 2025.3 (--print-source cuda,sass, tune.cu on an H200), reduced to four kernels

PAGE = "tune.source.csv"


def test_a_page_with_source_lines_has_each_kernel_once_and_complete():
    """ncu prints each instruction twice: by source line and by source file."""
    assert sass.answer(DATA / PAGE).notes == ()
    kernels = [row["name"].partition("(")[0] for row in read_rows(PAGE) if row["part"] == "kernel"]
    assert kernels == ["gemm_2_tiled", "gemm_wmma", "transpose_1_shared", "copy_vec4"]
    (loop,) = loop_rows(PAGE, "gemm_2_tiled")
    assert (loop["source"], loop["compute_per_load_ratio"], loop["barriers"]) == ("tune.cu:50-56", 16, 2)
    assert loop_rows(PAGE, "copy_vec4")[0]["load_bits"] == "128: 1"


def test_executed_instructions_equal_the_counters_of_ncu():
    """Compare with the counters of the raw page of ncu, and with the size.

    The product takes 2048 cubed multiply-adds. A warp of 32 lanes loads twice for 32 of them per lane.
    """
    with (DATA.parent / "ncu" / "tune.raw.csv").open(newline="", encoding="utf-8") as file:
        raw = {row["Kernel Name"].partition("(")[0]: row for row in csv.DictReader(file)}
    for name in ("gemm_2_tiled", "transpose_1_shared", "copy_vec4", "gemm_wmma"):
        assert kernel_row(PAGE, name)["executed"] == float(raw[name]["smsp__inst_executed.sum"])
    rows = {row["class"]: row for row in read_rows(PAGE, grouping="class", kernel="gemm_2") if row["part"] == "kernel"}
    assert rows["fp32_fma"]["threads_executed"] == 2048**3
    assert rows["global_load"]["executed"] == 2 * 2048**3 // 32 // 32
    tensor = {row["class"]: row for row in read_rows(PAGE, grouping="class", kernel="wmma") if row["part"] == "kernel"}
    assert tensor["tensor"]["executed"] == 2048**3 // (16 * 8 * 16)  # HMMA.16816


def test_stalling_instructions_have_their_source_line():
    first, second = read_rows(PAGE, grouping="line", kernel="gemm_2")[:2]
    assert (first["instruction"], first["stall"], first["source"]) == (
        "STS [R6], R29",
        "long_sb",
        "/srv/app/tune.cu:51",
    )
    assert (second["stall"], second["source"]) == ("barrier", "/srv/app/tune.cu:55")


def test_two_launches_of_a_kernel_stay_separate(tmp_path):
    page = write_source_page(tmp_path / "k.csv", {"k()": [("EXIT", 10, 1, 0)]})
    again = write_source_page(tmp_path / "again.csv", {"k()": [("EXIT", 20, 1, 0)]}).read_text()
    page.write_text(page.read_text() * 2 + again)
    assert [row["executed"] for row in read_rows(page)] == [10, 20]


# Hostile input


def test_truncated_text_is_read_and_reported(tmp_path):
    text = (DATA / TEXTS[0]).read_text()
    file = tmp_path / "cut.txt"
    file.write_text(text[: text.index("Function : _Z11copy_scalar") + 900])
    answer = sass.answer(file)
    assert any("incomplete" in note and "copy_scalar" in note for note in answer.notes)
    assert "copy_vec4" not in str(answer.notes)


def test_missing_lines_are_reported(tmp_path):
    lines = (DATA / TEXTS[1]).read_text().splitlines()
    file = tmp_path / "holes.txt"
    file.write_text("\n".join(line for line in lines if "FFMA" not in line))
    assert any("lines are missing" in note for note in sass.answer(file).notes)


def test_kernels_with_stripped_names_are_read():
    text = (DATA / TEXTS[0]).read_text()
    kernels = list(disassembly.read_kernels(re.sub(r"Function : .*", "Function : ", text).splitlines(keepends=True)))
    assert [kernel.name for kernel in kernels] == [""] * 8


def test_an_unknown_architecture_is_read_and_reported(tmp_path):
    file = tmp_path / "new.txt"
    file.write_text((DATA / TEXTS[0]).read_text().replace("sm_90a", "sm_190"))
    answer = sass.answer(file)
    assert answer.row_count == len(read_rows(TEXTS[0]))
    assert "sm_190 is newer than the catalog" in answer.notes[0]


def test_an_old_architecture_is_left_out_and_reported(tmp_path):
    file = tmp_path / "old.txt"
    old = "\tcode for sm_61\n\t\tFunction : k\n        /*0008*/  MOV R1, c[0x0][0x20] ;\n        /*0010*/  EXIT ;\n"
    file.write_text(old + (DATA / TEXTS[0]).read_text())
    answer = sass.answer(file)
    assert answer.row_count == len(read_rows(TEXTS[0]))
    assert "left out: code for sm_61" in answer.notes[0]


@pytest.mark.parametrize("arch", ["sm_90", "90", "9.0", "sm_90a"])
def test_code_can_be_selected_by_architecture(tmp_path, arch):
    file = tmp_path / "both.txt"
    file.write_text((DATA / TEXTS[0]).read_text() + (DATA / TEXTS[2]).read_text())
    rows = read_rows(file, architecture=arch)
    assert {row["architecture"] for row in rows} == {"sm_90a"}


def test_long_text_takes_little_memory_and_time(tmp_path):
    """Functions are read one by one: only one of them is in memory, here with twenty times the text."""
    lines = (DATA / TEXTS[0]).read_text().splitlines(keepends=True)
    start = time.process_time()
    count = sum(1 for _ in disassembly.read_kernels(line for _ in range(20) for line in lines))
    assert count == 160
    assert time.process_time() - start < 5


@pytest.mark.parametrize("content", ["", "hello\n", "\0" * 100, "/*0000*/ EXIT ;\n", "Function : k\n"])
def test_a_file_without_machine_code_is_refused_with_a_hint(tmp_path, content):
    file = tmp_path / "x.txt"
    file.write_text(content)
    with pytest.raises(TraceError, match="there is no machine code") as error:
        sass.answer(file)
    assert "cuobjdump -sass" in error.value.hint


def test_ptx_and_ncu_reports_are_refused_with_a_reason(tmp_path):
    ptx, report = tmp_path / "k.ptx", tmp_path / "k.ncu-rep"
    ptx.write_text("//\n.version 8.4\n.target sm_90\n.address_size 64\n")
    report.write_bytes(b"NVR\0")
    with pytest.raises(TraceError, match="PTX"):
        sass.answer(ptx)
    with pytest.raises(TraceError) as error:
        sass.answer(report)
    assert "--page source > k.source.csv" in error.value.hint


def test_without_a_disassembler_the_hint_names_one(tmp_path, monkeypatch):
    monkeypatch.setenv(files.CUDA_VARIABLE, str(tmp_path))
    file = tmp_path / "a.cubin"
    file.write_bytes(b"\x7fELF" + b"\0" * 60)
    with pytest.raises(ToolError) as error:
        sass.answer(file)
    assert "nvidia-cuda-cuobjdump" in error.value.hint
    assert error.value.exit_code == Exit.TOOL


def write_fake_tool(folder, name, body):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_of_several_toolkits_the_default_is_taken_then_the_newest(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    for name in ("cuda-12.9", "cuda-12.10", "cuda"):
        folder = tmp_path / name / "bin"
        folder.mkdir(parents=True)
        write_fake_tool(folder, "cuobjdump", "true")
        assert find_tool("cuobjdump", [f"{tmp_path}/none*", f"{tmp_path}/cuda*/bin"]) == folder / "cuobjdump"


def test_a_cubin_is_read_with_the_disassembler_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv(files.CUDA_VARIABLE, str(tmp_path))
    write_fake_tool(tmp_path, "nvdisasm", f"cat '{DATA / TEXTS[1]}'")
    file = tmp_path / "a.cubin"
    file.write_bytes(b"\x7fELF" + b"\0" * 14 + (190).to_bytes(2, "little") + b"\0" * 44)
    with files.open_kernels(file) as kernels:
        assert sum(1 for _ in kernels) == 8


def test_a_disassembler_that_fails_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv(files.CUDA_VARIABLE, str(tmp_path))
    write_fake_tool(tmp_path, "cuobjdump", "echo 'cuobjdump fatal   : unsupported ELF' >&2; exit 1")
    file = tmp_path / "a.so"
    file.write_bytes(b"\x7fELF" + b"\0" * 60)
    with pytest.raises(ToolError, match="unsupported ELF"):
        sass.answer(file)


@pytest.mark.parametrize("order", [("sm_70", "sm_90a"), ("sm_90a", "sm_70")])
def test_code_for_a_gpu_that_the_disassembler_does_not_know_is_left_out(tmp_path, monkeypatch, order):
    monkeypatch.setenv(files.CUDA_VARIABLE, str(tmp_path))
    listing = "; ".join(f"echo 'ELF file    {number}: a.{number}.{name}.cubin'" for number, name in enumerate(order, 1))
    write_fake_tool(
        tmp_path, "cuobjdump",
        f"""case "$*" in
          -lelf*) {listing};;
          *"-arch sm_90a"*) cat '{DATA / TEXTS[0]}';;
          *) echo 'nvdisasm fatal   : CUDA architecture "SM70" is deprecated. Please use an earlier one' >&2; exit 1;;
        esac""",
    )  # fmt: skip
    file = tmp_path / "a.so"
    file.write_bytes(b"\x7fELF" + b"\0" * 60)
    answer = sass.answer(file)
    assert len(answer.rows()) > 1
    assert "left out: code for sm_70, which this cuobjdump does not know; that of an older toolkit may" in answer.notes
    of_one = sass.answer(file, architecture="sm_90a")
    assert of_one.rows() == answer.rows()
    assert not [note for note in of_one.notes if "left out" in note]
    with pytest.raises(ToolError, match="deprecated") as error:
        sass.answer(file, architecture="sm_70")
    assert error.value.hint == "a CUDA toolkit of that GPU's time reads it"


# The command


@pytest.fixture
def run():
    def run_command(*arguments):
        process = command_line.run(*arguments)
        return process.returncode, process.stdout, process.stderr

    return run_command


def test_the_command_prints_a_table_and_the_remarks(run):
    exit_code, out, _ = run("sass", DATA / TEXTS[1], "-k", "copy")
    assert not exit_code
    assert "- copy_scalar, loop 1 (sass_a.cu:" in out
    assert "samples" not in out  # columns without values are hidden


def test_machine_formats_have_all_columns(run):
    _, out, _ = run("sass", DATA / TEXTS[0], "--format", "json", "-k", "spilling")
    assert {column["name"] for column in json.loads(out)["columns"]} == {
        column.name for column in read_columns("kernel_code/loops")
    }


def test_an_unknown_kernel_is_reported_with_the_existing_ones(run):
    exit_code, out, _ = run("sass", DATA / TEXTS[0], "-k", "nowhere")
    assert not exit_code
    assert "no kernel is named 'nowhere'; there are: reduce_shfl" in out


@pytest.mark.parametrize("arguments", [("--by", "color"), ("--format", "xml"), ("--arch", "sm_80")])
def test_unknown_options_are_usage_errors(run, arguments):
    exit_code, _, err = run("sass", DATA / TEXTS[0], *arguments)
    assert exit_code == Exit.USAGE
    assert "hint:" in err
