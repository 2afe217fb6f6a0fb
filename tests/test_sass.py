"""Machine code: kernels whose instructions and loops are known by construction, and code written by hand."""

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
from nsys_insight.kernel_code.instructions import control, instruction
from nsys_insight.kernel_code.loops import loops_of
from nsys_insight.kernel_code.parts import parts_of
from nsys_insight.kernel_code.reading import Limits, neighbors, sentences
from nsys_insight.kernel_code.sass import LOOPS

DATA = Path(__file__).parent / "data" / "sass"
TEXTS = ["sass_a.sm_90a.cuobjdump.txt", "sass_a.sm_90a.nvdisasm.txt", "sass_a.sm_75.cuobjdump.txt"]


def rows(file, **options):
    return sass.answer(DATA / file if isinstance(file, str) else file, limits=Limits(), **options).dicts()


def loops(file, name):
    return [row for row in rows(file, kernel=name) if row["part"] != "kernel"]


def whole(file, name):
    (row,) = [row for row in rows(file, kernel=name) if row["part"] == "kernel"]
    return row


def code(*lines, architecture="sm_90"):
    """A kernel of instructions as cuobjdump prints them; a line `name:` is a label."""
    text, at = f"\tcode for {architecture}\n\t\tFunction : k\n", 0
    for line in lines:
        if line.endswith(":"):
            text += f".{line}\n"
        else:
            text += f"        /*{at:04x}*/  {line} ;\n"
            at += 16
    (found,) = disassembly.kernels(text.splitlines(keepends=True))
    return found


def said(*lines, architecture="sm_90"):
    """What stands out in the first innermost loop."""
    inner = next(
        part for part in parts_of(code(*lines, architecture=architecture)) if part.loop and part.loop.is_innermost
    )
    return sentences(inner, Limits())


# What the source says


@pytest.mark.parametrize("file", TEXTS)
def test_every_kernel_is_read_whole(file):
    found = rows(file)
    kernels = [row for row in found if row["part"] == "kernel"]
    assert len(kernels) == 8
    assert not any(row["unknown"] for row in found)
    assert sass.answer(DATA / file, limits=Limits()).notes == ()


@pytest.mark.parametrize("file", TEXTS)
@pytest.mark.parametrize(
    ("name", "count"),
    # gemm_naive is unrolled by four, so what is left over has a loop of its own.
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
    assert len(loops(file, name)) == count


@pytest.mark.parametrize("file", TEXTS)
def test_gemm_naive_loads_two_words_per_multiply_add(file):
    unrolled = loops(file, "gemm_naive")[0]
    assert (unrolled["multiply_adds"], unrolled["global_loads"], unrolled["load_bits"]) == (4, 8, "32: 8")
    assert unrolled["compute_per_load_ratio"] == 0.5
    # Of a[row * n + k], four in a row are loaded; those of b are a row apart.
    assert "4 of 8 loads are of neighboring addresses" in unrolled["reading"]


@pytest.mark.parametrize("file", TEXTS)
@pytest.mark.parametrize("tile", [8, 32])
def test_tiles_multiply_as_often_as_they_are_wide_for_two_loads_and_two_barriers(file, tile):
    (loop,) = loops(file, f"gemm_tiled<{tile}>")
    assert (loop["multiply_adds"], loop["global_loads"], loop["barriers"]) == (tile, 2, 2)
    assert loop["compute_per_load_ratio"] == tile / 2


def test_a_tile_that_goes_through_registers_is_to_be_copied_asynchronously_where_that_exists():
    small, large = (loops(TEXTS[0], f"gemm_tiled<{tile}>")[0]["reading"] for tile in (8, 32))
    assert "2 of 2 loads go through registers into shared memory: asynchronous copies (cp.async) pay below 5" in small
    assert "between 5 and 20" in large
    for name in ("gemm_tiled<8>", "gemm_tiled<32>"):
        assert "cp.async" not in (loops("sass_a.sm_75.cuobjdump.txt", name)[0]["reading"] or "")


@pytest.mark.parametrize("file", TEXTS)
def test_a_copy_is_as_wide_as_its_type(file):
    (scalar,), (vector,) = loops(file, "copy_scalar"), loops(file, "copy_vec4")
    assert (scalar["load_bits"], scalar["store_bits"]) == ("32: 1", "32: 1")
    assert (vector["load_bits"], vector["store_bits"]) == ("128: 1", "128: 1")
    assert "32 bits wide at most" in scalar["reading"]
    assert vector["reading"] is None


@pytest.mark.parametrize("architecture", ["75", "90a"])
def test_bytes_of_local_memory_are_those_that_ptxas_calls_spills(architecture):
    text = (DATA / f"sass_a.sm_{architecture}.ptxas.txt").read_text()
    found = re.search(
        r"Compiling entry function '_Z8spilling.*?(\d+) bytes spill stores, (\d+) bytes spill loads", text, re.DOTALL
    )
    row = whole(f"sass_a.sm_{architecture}.cuobjdump.txt", "spilling")
    assert (row["local_store_bytes"], row["local_load_bytes"]) == (int(found[1]), int(found[2]))
    assert not any(row["local_load_bytes"] for row in rows(TEXTS[0]) if "spilling" not in row["name"])


@pytest.mark.parametrize("file", TEXTS)
def test_tensor_cores_shuffles_and_special_functions_are_found(file):
    counted = {
        (row["name"].partition("(")[0].removeprefix("void "), row["class"]): row["mnemonics"]
        for row in rows(file, by="class")
        if row["part"] == "kernel"
    }
    assert "HMMA" in counted["wmma_gemm", "tensor"]
    assert [name for name, kind in counted if kind == "tensor"] == ["wmma_gemm"]
    assert counted["reduce_shfl", "shuffle"] == "SHFL x5"
    assert counted["reduce_shfl", "special"] == "MUFU x1"


def test_classes_sum_to_all_instructions():
    by_class = [row for row in rows(TEXTS[0], by="class") if row["class"] != "nothing"]
    for row in rows(TEXTS[0]):
        mine = [one for one in by_class if (one["name"], one["part"]) == (row["name"], row["part"])]
        assert sum(one["instructions"] for one in mine) == row["instructions"]
        assert sum(one["predicated"] for one in mine) == row["predicated"]


def test_both_disassemblers_show_the_same_code():
    plain = ("source", "issue_cycles", "stall_codes", "reading", "architecture")
    one, other = (
        [{key: value for key, value in row.items() if key not in plain} for row in rows(file)] for file in TEXTS[:2]
    )
    assert one == other


def test_lines_of_the_source_are_those_of_the_loop():
    source = (DATA / "sass_a.cu").read_text().splitlines()
    (loop,) = loops("sass_a.sm_90a.nvdisasm.txt", "gemm_tiled<8>")
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
    one = instruction(0, text)
    assert (one.mnemonic, one.width) == (mnemonic, width)


def test_a_predicate_that_always_holds_is_none():
    assert [
        instruction(0, text).is_predicated
        for text in ("FADD R0, R0, R1", "@PT FADD R0, R0, R1", "@!P2 FADD R0, R0, R1", "@UP0 UMOV UR4, UR5")
    ] == [False, False, True, True]


@pytest.mark.parametrize(
    "text", ["HFMA2.MMA R6, -RZ, RZ, 0, 0", "HFMA2 R1, -RZ, RZ, 1.875, 0", "IMAD.MOV.U32 R3, RZ, RZ, R4"]
)
def test_what_only_fills_a_register_is_no_arithmetic(text):
    (part,) = parts_of(code(text, "EXIT"))
    assert (part.classes[0], part.multiply_adds) == ("move", 0)


def test_control_bits_have_the_stall_count_and_the_scoreboards():
    # Jia et al., Dissecting the NVIDIA Volta GPU Architecture (2018): 4 bits of stall, 6 of scoreboards to wait for.
    assert control(0x000FCA0000400000) == (5, ())
    assert control(0x004FCA0000400000) == (5, (2,))
    assert control(0x000FE20000000800) == (1, ())


def test_stall_counts_are_those_of_the_encoding():
    (loop,) = loops("sass_a.sm_90a.cuobjdump.txt", "copy_vec4")
    text = (DATA / "sass_a.sm_90a.cuobjdump.txt").read_text().partition("copy_vec4")[2]
    first, last = (int(word, 16) for word in loop["address"].split("-"))
    words = dict(re.findall(r"/\*([0-9a-f]{4})\*/.*?\n /\* 0x([0-9a-f]{16}) \*/", text.partition("Function")[0]))
    assert loop["issue_cycles"] == sum(int(words[f"{at:04x}"], 16) >> 41 & 15 for at in range(first, last + 1, 16))
    assert loops("sass_a.sm_90a.nvdisasm.txt", "copy_vec4")[0]["issue_cycles"] is None


def test_an_unknown_mnemonic_is_counted_as_such():
    (part,) = parts_of(code("FFMA R0, R0, R1, R2", "WARPDRIVE.X2 R3, R4", "EXIT"))
    assert part.instructions == 3
    assert dict(part.unknown) == {"WARPDRIVE": 1}
    assert sentences(part, Limits()) == ["not in the instruction catalog: WARPDRIVE x1"]


# Loops


def test_loops_nest():
    found = loops_of(
        code(
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
    assert [(loop.number, loop.depth, loop.positions) for loop in found] == [("1", 1, [1, 2, 3, 4]), ("1.1", 2, [2, 3])]


def test_a_block_behind_the_end_that_jumps_back_is_no_loop():
    # The slow way of a division is moved behind EXIT, and comes back to what follows.
    found = loops_of(
        code("@P0 BRA `(.slow)", "back:", "FADD R0, R0, R1", "EXIT", "slow:", "MUFU.RCP R0, R1", "BRA `(.back)")
    )
    assert found == []


def test_a_loop_whose_middle_lies_behind_the_end_is_one():
    found = loops_of(
        code(
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
    assert [loop.positions for loop in found] == [[0, 1, 2, 4, 5]]


def test_two_ways_back_to_one_place_are_one_loop():
    found = loops_of(code("top:", "@P0 BRA `(.top)", "FADD R0, R0, R1", "@P1 BRA `(.top)", "EXIT"))
    assert [loop.positions for loop in found] == [[0, 1, 2]]


def test_the_jump_to_itself_that_fills_the_end_is_no_loop():
    assert loops_of(code("EXIT", "end:", "BRA `(.end)", "NOP")) == []


def test_threads_that_meet_go_on_where_their_barrier_says():
    # Without that, the BSYNC behind the end would lead nowhere, and the loop would not be closed.
    found = loops_of(
        code(
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
    assert [loop.positions for loop in found] == [[0, 1, 2, 4, 5]]


def test_a_called_function_has_its_own_loops():
    found = loops_of(
        code(
            "CALL.REL.NOINC `(.sub)",
            "EXIT",
            "sub:",
            "again:",
            "FADD R0, R0, R1",
            "@P0 BRA `(.again)",
            "RET.REL.NODEC R2 0x0",
        )
    )
    assert [loop.positions for loop in found] == [[2, 3]]


def test_branch_tables_lead_where_nvdisasm_says():
    found = loops_of(
        code(
            "top:",
            'BRX R2 -0x110 (*"BRANCH_TARGETS .one,.two"*)',
            "one:",
            "FADD R0, R0, R1",
            "BRA `(.top)",
            "two:",
            "EXIT",
        )
    )
    assert [loop.positions for loop in found] == [[0, 1, 2]]


def test_a_conditional_jump_on_the_warp_goes_on_too():
    found = loops_of(
        code(
            "top:",
            "BRA.DIV UR4, `(.apart)",
            "@P0 BRA `(.top)",
            "EXIT",
            "apart:",
            "SHFL.DOWN PT, R3, R6, 0x10, 0x1f",
            "EXIT",
        )
    )
    assert [loop.positions for loop in found] == [[0, 1]]


@pytest.mark.slow
def test_a_text_that_nests_without_end_is_read():
    depth = 3000
    lines = [line for at in range(depth) for line in (f"L{at}:", "FADD R0, R0, R1")]
    found = loops_of(code(*lines, *(f"@P0 BRA `(.L{at})" for at in reversed(range(depth))), "EXIT"))
    assert [loop.depth for loop in found] == list(range(1, depth + 1))


# What stands out

STAGED = ["top:", "LDG.E R4, [R2.64]", "LDG.E R5, [R6.64]", "STS [R8], R4", "STS [R9], R5", "BAR.SYNC 0x0"]
END = ["@P0 BRA `(.top)", "EXIT"]


def ffma(count):
    return ["FFMA R10, R11, R12, R10"] * count


@pytest.mark.parametrize(("count", "words"), [(2, "pay below 5"), (20, "may pay"), (50, "cost more than they hide")])
def test_the_ratio_decides_on_asynchronous_copies_of_what_is_staged(count, words):
    assert words in said(*STAGED, *ffma(count), *END)[0]


def test_loads_that_are_not_staged_are_not_to_be_copied_asynchronously():
    for text in said("top:", "LDG.E R4, [R2.64]", "FFMA R0, R4, R4, R0", *END):
        assert "cp.async" not in text


def test_before_sm_80_there_is_nothing_to_copy_asynchronously_with():
    for text in said(*STAGED, *ffma(2), *END, architecture="sm_75"):
        assert "cp.async" not in text


def test_what_is_copied_asynchronously_already_is_left_alone():
    copies = ["top:", "LDGSTS.E.128 [R8], [R2.64]", "LDGDEPBAR", "DEPBAR.LE SB0, 0x1", "BAR.SYNC 0x0"]
    assert said(*copies, *ffma(8), *END) == []
    assert "plain loads can be faster" in said(*copies, *ffma(30), *END)[0]


def test_of_tiles_that_tma_loads_no_ratio_is_given():
    kernel = code(
        "top:", "UTMALDG.2D [UR8], [UR4]", "HGMMA.64x128x16.F32 R24, gdesc[UR8], R24", "LDG.E R4, [R2.64]", *END
    )
    part = parts_of(kernel)[1]
    assert part.compute_per_load is None
    assert sentences(part, Limits()) == []


def test_a_loop_that_asks_whether_something_has_come_is_a_waiting_one():
    part = parts_of(code("top:", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2", "@!P0 BRA `(.top)", "EXIT"))[1]
    assert part.name == "waiting loop 1"


def test_neighboring_loads_are_counted_until_their_address_changes():
    def found(*lines):
        return neighbors(parts_of(code(*lines, "EXIT"))[0])

    pair = ["LDG.E R8, [R2.64]", "LDG.E R9, [R2.64+0x4]"]
    assert found(*pair) == 2
    assert found(pair[0], "IADD3 R2, R2, 0x4, RZ", pair[1]) == 0
    assert found(pair[0], "IADD3 R3, R3, 0x4, RZ", pair[1]) == 0  # the upper half of the address
    assert found("LDG.E R8, [R2.64]", "LDG.E R9, [R2.64+0x40]") == 0
    assert found("LDG.E.128 R8, [R2.64]", "LDG.E.128 R12, [R2.64+0x10]") == 0
    assert found("LDG.E R8, [R2.64+-0x4]", "LDG.E R9, [R2.64]", "LDG.E R10, [R2.64+0x8]") == 2


def test_arithmetic_enough_is_not_remarked_on():
    assert said("top:", "LDG.E.128 R4, [R2.64]", *ffma(10), *END) == []


# ncu's source page

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


def source_page(path, kernels):
    """Write a source page as ncu prints it: where the code lay in memory, and counts per instruction."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    for name, lines in kernels.items():
        writer.writerow(["Kernel Name", name])
        writer.writerow(HEADER)
        for at, (source, executed, long_sb, wait) in enumerate(lines):
            samples = long_sb + wait + 1
            writer.writerow(
                [
                    f"{BASE + 16 * at:#x}",
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
def measured(tmp_path):
    lines = [
        ("MOV R1, c[0x0][0x28]", 10, 0, 0),
        ("LDG.E R4, [R2.64]", 4000, 0, 5),
        ("FFMA R0, R4, R5, R0", 4000, 80, 3),
        (f"@P0 BRA {BASE + 16:#x}", 4000, 0, 2),
        ("FADD R0, R0, R0", 100, 0, 0),
        (f"@P1 BRA {BASE + 64:#x}", 100, 0, 0),
        ("EXIT", 10, 0, 1),
    ]
    return source_page(tmp_path / "k.source.csv", {"k(float *)": lines, "other()": [("EXIT", 1, 0, 0)]})


def test_counts_of_ncu_are_added_up_in_loops(measured):
    found = {row["part"]: row for row in rows(measured, kernel="k(")}
    assert found.keys() == {"kernel", "loop 1", "loop 2"}
    assert (found["kernel"]["executed"], found["loop 1"]["executed"], found["loop 2"]["executed"]) == (
        12220,
        12000,
        200,
    )
    assert found["loop 1"]["executed_pct"] == pytest.approx(100 * 12000 / 12220)
    assert found["loop 1"]["reading"].startswith("most of the executed instructions are here")
    assert "most instructions" not in (found["loop 2"]["reading"] or "")


def test_counts_by_class_are_those_of_the_instructions(measured):
    found = {row["class"]: row for row in rows(measured, by="class", kernel="k(") if row["part"] == "kernel"}
    assert (found["fp32_fma"]["executed"], found["fp32_fma"]["threads_executed"]) == (4000, 120_000)
    assert found["global_load"]["executed"] == 4000


def test_the_line_that_stalls_most_comes_first_with_its_reason(measured):
    first = rows(measured, by="line")[0]
    assert (first["instruction"], first["part"], first["stall"]) == ("FFMA R0, R4, R5, R0", "loop 1", "long_sb")
    assert first["stall_pct"] == pytest.approx(100 * 80 / 84)
    assert first["samples"] == 84


def test_counts_that_cannot_be_are_none(tmp_path):
    page = source_page(tmp_path / "k.csv", {"k()": [("EXIT", 10**30, 1, 0)]})
    assert rows(page)[0]["executed"] is None


def test_without_samples_that_is_said():
    answer = sass.answer(DATA / TEXTS[0], by="line", limits=Limits())
    assert answer.row_count == 0
    assert "no stall samples" in answer.notes[0]


# A source page as ncu 2025.3 prints it (--print-source cuda,sass, of tune.cu on an H200), cut to four kernels

PAGE = "tune.source.csv"


def test_a_page_with_lines_of_the_source_has_each_kernel_once_and_whole():
    """ncu prints each instruction twice, by lines and files of the source."""
    assert sass.answer(DATA / PAGE, limits=Limits()).notes == ()
    kernels = [row["name"].partition("(")[0] for row in rows(PAGE) if row["part"] == "kernel"]
    assert kernels == ["gemm_2_tiled", "gemm_wmma", "transpose_1_shared", "copy_vec4"]
    (loop,) = loops(PAGE, "gemm_2_tiled")
    assert (loop["source"], loop["compute_per_load_ratio"], loop["barriers"]) == ("tune.cu:50-56", 16, 2)
    assert loops(PAGE, "copy_vec4")[0]["load_bits"] == "128: 1"


def test_what_was_executed_is_what_ncu_counted():
    """The counters of ncu's raw page, and the size: 2048 cubed multiply-adds, 32 of them in 32 lanes for two loads."""
    with (DATA.parent / "ncu" / "tune.raw.csv").open(newline="", encoding="utf-8") as file:
        raw = {row["Kernel Name"].partition("(")[0]: row for row in csv.DictReader(file)}
    for name in ("gemm_2_tiled", "transpose_1_shared", "copy_vec4", "gemm_wmma"):
        assert whole(PAGE, name)["executed"] == float(raw[name]["smsp__inst_executed.sum"])
    found = {row["class"]: row for row in rows(PAGE, by="class", kernel="gemm_2") if row["part"] == "kernel"}
    assert found["fp32_fma"]["threads_executed"] == 2048**3
    assert found["global_load"]["executed"] == 2 * 2048**3 // 32 // 32
    tensor = {row["class"]: row for row in rows(PAGE, by="class", kernel="wmma") if row["part"] == "kernel"}
    assert tensor["tensor"]["executed"] == 2048**3 // (16 * 8 * 16)  # HMMA.16816


def test_lines_that_stall_are_lines_of_the_source():
    first, second = rows(PAGE, by="line", kernel="gemm_2")[:2]
    assert (first["instruction"], first["stall"], first["source"]) == (
        "STS [R6], R29",
        "long_sb",
        "/srv/app/tune.cu:51",
    )
    assert (second["stall"], second["source"]) == ("barrier", "/srv/app/tune.cu:55")


def test_two_launches_of_a_kernel_stay_two(tmp_path):
    page = source_page(tmp_path / "k.csv", {"k()": [("EXIT", 10, 1, 0)]})
    again = source_page(tmp_path / "again.csv", {"k()": [("EXIT", 20, 1, 0)]}).read_text()
    page.write_text(page.read_text() * 2 + again)
    assert [row["executed"] for row in rows(page)] == [10, 20]


# Hostile input


def test_text_that_is_cut_is_read_and_said_to_be(tmp_path):
    text = (DATA / TEXTS[0]).read_text()
    file = tmp_path / "cut.txt"
    file.write_text(text[: text.index("Function : _Z11copy_scalar") + 900])
    answer = sass.answer(file, limits=Limits())
    assert any("incomplete" in note and "copy_scalar" in note for note in answer.notes)
    assert "copy_vec4" not in str(answer.notes)


def test_lines_that_are_lost_are_noticed(tmp_path):
    lines = (DATA / TEXTS[1]).read_text().splitlines()
    file = tmp_path / "holes.txt"
    file.write_text("\n".join(line for line in lines if "FFMA" not in line))
    assert any("lines are missing" in note for note in sass.answer(file, limits=Limits()).notes)


def test_names_that_are_stripped_are_no_obstacle():
    text = (DATA / TEXTS[0]).read_text()
    kernels = list(disassembly.kernels(re.sub(r"Function : .*", "Function : ", text).splitlines(keepends=True)))
    assert [kernel.name for kernel in kernels] == [""] * 8


def test_an_architecture_that_nobody_knows_is_read_and_named(tmp_path):
    file = tmp_path / "new.txt"
    file.write_text((DATA / TEXTS[0]).read_text().replace("sm_90a", "sm_190"))
    answer = sass.answer(file, limits=Limits())
    assert answer.row_count == len(rows(TEXTS[0]))
    assert "sm_190 is newer than the catalog" in answer.notes[0]


def test_an_old_architecture_is_left_out_and_named(tmp_path):
    file = tmp_path / "old.txt"
    old = "\tcode for sm_61\n\t\tFunction : k\n        /*0008*/  MOV R1, c[0x0][0x20] ;\n        /*0010*/  EXIT ;\n"
    file.write_text(old + (DATA / TEXTS[0]).read_text())
    answer = sass.answer(file, limits=Limits())
    assert answer.row_count == len(rows(TEXTS[0]))
    assert "left out: code for sm_61" in answer.notes[0]


@pytest.mark.parametrize("arch", ["sm_90", "90", "9.0", "sm_90a"])
def test_code_of_one_architecture_can_be_asked_for(tmp_path, arch):
    file = tmp_path / "both.txt"
    file.write_text((DATA / TEXTS[0]).read_text() + (DATA / TEXTS[2]).read_text())
    found = rows(file, architecture=arch)
    assert {row["architecture"] for row in found} == {"sm_90a"}


def test_long_text_takes_little_memory_and_time(tmp_path):
    """Functions are read one by one: twenty times the text, and no more than one of them is held."""
    lines = (DATA / TEXTS[0]).read_text().splitlines(keepends=True)
    begun = time.process_time()
    count = sum(1 for _ in disassembly.kernels(line for _ in range(20) for line in lines))
    assert count == 160
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("content", ["", "hello\n", "\0" * 100, "/*0000*/ EXIT ;\n", "Function : k\n"])
def test_what_is_no_machine_code_is_refused_in_a_sentence(tmp_path, content):
    file = tmp_path / "x.txt"
    file.write_text(content)
    with pytest.raises(TraceError, match="there is no machine code") as error:
        sass.answer(file, limits=Limits())
    assert "cuobjdump -sass" in error.value.hint


def test_ptx_and_reports_of_ncu_are_told_from_machine_code(tmp_path):
    ptx, report = tmp_path / "k.ptx", tmp_path / "k.ncu-rep"
    ptx.write_text("//\n.version 8.4\n.target sm_90\n.address_size 64\n")
    report.write_bytes(b"NVR\0")
    with pytest.raises(TraceError, match="PTX"):
        sass.answer(ptx, limits=Limits())
    with pytest.raises(TraceError) as error:
        sass.answer(report, limits=Limits())
    assert "--page source > k.source.csv" in error.value.hint


def test_without_disassemblers_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv(files.CUDA_VARIABLE, str(tmp_path))
    file = tmp_path / "a.cubin"
    file.write_bytes(b"\x7fELF" + b"\0" * 60)
    with pytest.raises(ToolError) as error:
        sass.answer(file, limits=Limits())
    assert "nvidia-cuda-cuobjdump" in error.value.hint
    assert error.value.exit_code == Exit.TOOL


def fake_tool(folder, name, body):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_a_cubin_is_read_by_the_users_own_disassembler(tmp_path, monkeypatch):
    monkeypatch.setenv(files.CUDA_VARIABLE, str(tmp_path))
    fake_tool(tmp_path, "nvdisasm", f"cat '{DATA / TEXTS[1]}'")
    file = tmp_path / "a.cubin"
    file.write_bytes(b"\x7fELF" + b"\0" * 14 + (190).to_bytes(2, "little") + b"\0" * 44)
    with files.open_kernels(file) as kernels:
        assert sum(1 for _ in kernels) == 8


def test_a_disassembler_that_fails_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv(files.CUDA_VARIABLE, str(tmp_path))
    fake_tool(tmp_path, "cuobjdump", "echo 'cuobjdump fatal   : unsupported ELF' >&2; exit 1")
    file = tmp_path / "a.so"
    file.write_bytes(b"\x7fELF" + b"\0" * 60)
    with pytest.raises(ToolError, match="unsupported ELF"):
        sass.answer(file, limits=Limits())


# The command


@pytest.fixture
def run():
    def ask(*arguments):
        done = command_line.run(*arguments)
        return done.returncode, done.stdout, done.stderr

    return ask


def test_the_command_prints_a_table_and_what_stands_out(run):
    code, out, _ = run("sass", DATA / TEXTS[1], "-k", "copy")
    assert not code
    assert "- copy_scalar, loop 1 (sass_a.cu:" in out
    assert "samples" not in out  # no column of which nothing is known


def test_the_command_gives_all_columns_to_machines(run):
    _, out, _ = run("sass", DATA / TEXTS[0], "--format", "json", "-k", "spilling")
    assert {column["name"] for column in json.loads(out)["columns"]} == {column.name for column in LOOPS}


def test_a_kernel_that_is_not_there_is_named_with_those_that_are(run):
    code, out, _ = run("sass", DATA / TEXTS[0], "-k", "nowhere")
    assert not code
    assert "no kernel is named 'nowhere'; there are: reduce_shfl" in out


@pytest.mark.parametrize("arguments", [("--by", "color"), ("--format", "xml"), ("--arch", "sm_80")])
def test_what_there_is_not_is_an_error_of_use(run, arguments):
    code, _, err = run("sass", DATA / TEXTS[0], *arguments)
    assert code == Exit.USAGE
    assert "hint:" in err
