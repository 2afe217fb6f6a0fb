"""`diff --by layer`: two implementations of one model are aligned as they were written, and the rows add up."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import command_line
import pytest
from opening import open_trace
from synthetic import Trace

from nsys_insight.compare.layers import Operation, Program, align, compare_layers, read_program
from nsys_insight.errors import UsageError

LAYERS, STEPS = 6, 8
SAMPLES = Path(__file__).parents[1] / "sample_traces"
CLINIC = Path(__file__).parents[1] / "benchmarks" / "clinic" / "traces"
EAGER_NORM = [
    ("pow(float *)", 2_000),
    ("mean_reduce(float *)", 3_000),
    ("rsqrt(float *)", 2_000),
    ("mul(float *)", 2_000),
]
# A layer of each implementation: the kernels of each module, in order.
EAGER = {
    "norm": EAGER_NORM,
    "q": [("sgemm_128x64_nn", 20_000)],
    "k": [("sgemm_128x64_nn", 10_000)],
    "v": [("sgemm_128x64_nn", 10_000)],
    "attention": [
        ("gemm_batched_qk_nt", 15_000), ("scale(float *)", 3_000), ("softmax_warp_forward", 6_000),
        ("gemm_batched_pv_nn", 15_000),
    ],
    "o": [("sgemm_128x64_nn", 21_000)],
    "residual": [("add(float *)", 2_000), *EAGER_NORM],
    "up": [("sgemm_256x128_nn", 60_000)],
    "silu": [("silu(float *)", 4_000), ("mul(float *)", 3_000)],
    "down": [("sgemm_256x64_nn", 61_000)],
    "add": [("add(float *)", 2_000)],
}  # fmt: skip
FUSED = {
    "norm": [("triton_red_fused_rms_norm_0", 3_000)],
    "qkv": [("nvjet_tst_128x256_gemm", 22_000)],
    "attention": [("flash_fwd_kernel", 12_000)],
    "o": [("nvjet_tst_64x256_gemm", 12_000)],
    "residual": [("triton_red_fused_add_rms_norm_1", 4_000)],
    "up": [("nvjet_tst_192x256_gemm", 33_000)],
    "silu": [("triton_poi_fused_silu_mul_2", 4_000)],
    "down": [("nvjet_tst_192x128_gemm", 34_000)],
    "add": [("triton_poi_fused_add_3", 2_000)],
}


def write_model(path, layer, head):
    host = Trace().thread(now=1_000_000)
    for _ in range(STEPS):
        with host.nvtx("forward"):
            host.launch("embedding_lookup(int *)", runs=5_000)
            for _ in range(LAYERS):
                for kernels in layer.values():
                    for name, runs in kernels:
                        host.launch(name, runs=runs, api=1_000)
            host.launch(head, runs=90_000)
            host.launch("argmax_reduce(float *)", runs=5_000)
            host.sync("device")
            host.idle(30_000)
    return host.trace.write(path)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layers")
    return [
        write_model(folder / "eager.sqlite", EAGER, "sgemm_vocabulary_nn"),
        write_model(folder / "fused.sqlite", FUSED, "nvjet_vocabulary_gemm"),
    ]


@pytest.fixture(scope="module")
def rows(paths):
    with open_trace(paths[0]) as before, open_trace(paths[1]) as after:
        return compare_layers(read_program(before), read_program(after)).dicts()


def sum_modules(layer, *names):
    return LAYERS * sum(runs for name in names for _, runs in layer[name])


def test_rows_add_up_to_the_totals_of_both_programs(rows):
    for side, layer in (("before", EAGER), ("after", FUSED)):
        total = sum_modules(layer, *layer) + 100_000
        assert sum(row[f"{side}_ns"] for row in rows) == pytest.approx(total)
        launches = LAYERS * sum(map(len, layer.values())) + 3
        assert sum(row[f"{side}_launches"] for row in rows) == launches
    assert {row["layers"] for row in rows if row["part"] == "layer"} == {LAYERS}
    assert not any(row["part"] == "another layer" for row in rows)


def test_modules_are_aligned_as_the_source_says(rows):
    layer = [row for row in rows if row["part"] == "layer"]
    by_times = {(row["before_ns"], row["after_ns"]): row for row in layer}
    for name in ("o", "up", "down"):
        row = by_times[sum_modules(EAGER, name), sum_modules(FUSED, name)]
        assert (row["module"], row["change"], row["aligned_by"]) == ("gemm", "other kernels", "family")
    for name in ("residual", "silu"):
        row = by_times[sum_modules(EAGER, name), sum_modules(FUSED, name)]
        assert (row["change"], row["aligned_by"]) == ("fused", "place")
        assert row["before_launches"] == LAYERS * len(EAGER[name])
    # One product replaces those of query, key and value.
    row = by_times[sum_modules(EAGER, "q", "k", "v"), sum_modules(FUSED, "qkv")]
    assert (row["module"], row["change"], row["before_launches"]) == ("gemm", "fused", 3 * LAYERS)
    # Attention is one kernel in one of the programs, and its products are no such kernel.
    attention = next(row for row in layer if "flash_fwd_kernel" in (row["after_kernels"] or ""))
    assert "softmax_warp_forward" in attention["before_kernels"]
    assert attention["change"] == "fused"


def test_the_head_and_the_embedding_are_outside_the_layers(rows):
    after = [row for row in rows if row["part"] == "after the layers"]
    assert [(row["module"], row["before_ns"], row["after_ns"]) for row in after] == [
        ("gemm", 90_000, 90_000), ("reduction", 5_000, 5_000)
    ]  # fmt: skip
    first = next(row for row in rows if row["part"] == "before the layers")
    assert first["before_launches"] == 1 + len(EAGER_NORM)
    assert first["after_launches"] == 2


def make_program(*operations):
    return Program("x", tuple(Operation(*operation) for operation in operations), 1, 1)


def test_programs_without_a_common_anchor_are_refused():
    with pytest.raises(UsageError, match="no matrix products"):
        align(make_program(("add", "elementwise", 1.0)), make_program(("add", "elementwise", 1.0)))
    with pytest.raises(UsageError, match="cannot be aligned"):
        compare_layers(make_program(("a", "gemm", 9.0)), make_program(("b", "attention", 9.0)))


def test_work_that_only_one_side_has_is_listed():
    product, other = ("x_gemm", "gemm", 9.0), ("drop", "elementwise", 2.0)
    answer = compare_layers(make_program(product, other, product), make_program(product, product))
    (row,) = [row for row in answer.dicts() if row["change"] == "only before"]
    assert (row["before_ns"], row["after_ns"], row["aligned_by"]) == (2.0, 0.0, None)
    assert any("2 ns per step have no counterpart" in note for note in answer.notes)


LAYER = (
    ("qkv_gemm", "gemm", 30.0),
    ("flash_fwd", "attention", 20.0),
    ("out_gemm", "gemm", 10.0),
    ("add", "elementwise", 1.0),
)


def test_steps_that_begin_at_another_kernel_are_turned():
    rows = compare_layers(make_program(*LAYER), make_program(*LAYER[2:], *LAYER[:2])).dicts()
    # What runs after the last product of one step is before the first one of the other.
    assert {row["change"] for row in rows if row["module"] != "elementwise"} == {"same"}
    assert [row["module"] for row in rows if row["before_ns"] and row["after_ns"]][-3:] == ["gemm", "attention", "gemm"]


def test_a_trace_whose_steps_are_layers_is_compared_with_one_whose_steps_have_layers():
    layers = tuple(Operation(*operation, layer=(0, layer)) for layer in range(4) for operation in LAYER)
    full_program = Program("full", (Operation("embed", "embedding", 5.0), *layers), 1, 1, (4,))
    answer = compare_layers(make_program(*LAYER[1:], *LAYER[:1]), full_program)
    rows = answer.dicts()
    assert sum(row["before_ns"] for row in rows) == sum(row["after_ns"] for row in rows) - 5 == 4 * 61
    assert {row["change"] for row in rows if row["part"] == "layer" and row["module"] != "elementwise"} == {"same"}
    assert any("4 of them are one step here" in note for note in answer.notes)


def test_a_step_of_another_length_is_not_repeated():
    # As many products as the complete step of the other program, which has layers.
    layers = tuple(Operation(*operation, layer=(0, layer)) for layer in range(4) for operation in LAYER)
    answer = compare_layers(make_program(*4 * LAYER), Program("full", layers, 1, 1, (4,)))
    assert not any("one step here" in note for note in answer.notes)


@pytest.mark.slow
@pytest.mark.parametrize(("pair", "products"), [(("eager", "compiled"), 7), (("eager", "fused"), 4)])
def test_forms_of_one_model_are_aligned_in_full(tmp_path, pair, products):
    programs = []
    for form in pair:
        path = tmp_path / f"{form}.sqlite"
        path.write_bytes(lzma.decompress((CLINIC / f"form_{form}.sqlite.xz").read_bytes()))
        with open_trace(path) as trace:
            programs.append(read_program(trace))
    answer = compare_layers(*programs)
    assert answer.notes[0].count("100%") == 2
    rows = [row for row in answer.dicts() if row["module"] in ("gemm", "attention")]
    assert len(rows) == products + 1
    assert all(row["before_ns"] and row["after_ns"] for row in rows)


@pytest.mark.slow
def test_a_model_and_its_graph_have_the_same_layers():
    result = command_line.run(
        "diff", "--by", "layer", str(SAMPLES / "decode_eager.sqlite"), str(SAMPLES / "decode_graph_node.sqlite"), "-f",
        "json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    layer = [row for row in json.loads(result.stdout)["rows"] if row["part"] == "layer"]
    assert {(row["change"], row["aligned_by"], row["layers"]) for row in layer} == {("same", "name", 4)}
    assert sum(row["module"] == "gemm" for row in layer) == 7
    result = command_line.run("diff", "--by", "kernel", "a.sqlite", "b.sqlite")
    assert result.returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pair", "fused"),
    [
        ("causal_lm", ("cudnn_generated",)),  # attention written out, and scaled_dot_product_attention
        ("tagger_train", ("FusedOptimizer",)),  # AdamW parameter by parameter, and fused
    ],
)
def test_real_programs_before_and_after_their_cure(tmp_path, pair, fused):
    programs = []
    for variant in ("ailing", "cured"):
        path = tmp_path / f"{variant}.sqlite"
        path.write_bytes(lzma.decompress((CLINIC / f"{pair}_{variant}.sqlite.xz").read_bytes()))
        with open_trace(path) as trace:
            programs.append(read_program(trace))
            (step,) = trace.rows("SELECT avg(kernel_ns) AS kernel_ns FROM steps WHERE phase = 'steady'")
        kernel_ns = sum(op.duration_ns for op in programs[-1].operations if op.family not in {"copy", "memset"})
        assert kernel_ns == pytest.approx(step.kernel_ns)
    rows = compare_layers(*programs).dicts()
    for side, program in zip(("before", "after"), programs, strict=True):
        assert sum(row[f"{side}_ns"] for row in rows) == pytest.approx(program.total_ns)
    largest = min(rows, key=lambda row: row["delta_ns"])
    assert largest["change"] == "fused"
    text = f"{largest['before_kernels']} {largest['after_kernels']}"
    assert any(word in text for word in fused), text
    # Nothing else changed in these programs.
    assert {row["change"] for row in rows} <= {"same", "fused", "varies"}
