"""`peaks` and `roofline`: against data sheets, and against calculations by hand."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from classified import PERIOD, add_sampled_kernel
from opening import open_trace
from synthetic import Trace

import nsys_insight
from nsys_insight.errors import UsageError

CATALOG = Path(__file__).parents[1] / "queries" / "catalog" / "compute_capabilities.toml"
TFLOPS = {"fp64": 33.5, "fp64_tensor": 66.9, "fp32": 66.9, "tf32": 535.3, "fp16": 1070.5, "fp8": 2141.1, "int8": 2141.1}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.sqlite"


@pytest.fixture
def trace():
    return Trace()


def ask(path, **params):
    with open_trace(path) as trace:
        return trace.run("roofline", **params).to_dicts()


class TestPeaks:
    def test_an_h200_at_its_maximum_clock(self, trace, path):
        with open_trace(trace.gpu(0).write(path)) as session:
            rows = {row["precision"]: row for row in session.peaks().to_dicts()}
        assert {name: round(row["tflop_per_s"], 1) for name, row in rows.items()} == TFLOPS
        assert rows["fp16"]["balance_ratio"] == pytest.approx(1070.53e12 / 4.814304e12, rel=1e-4)

    def test_the_data_sheets_of_other_gpus(self, trace, path):
        gpus = [
            ((80, 1.53e9, (7, 0)), {"fp64": 7.8, "fp32": 15.7, "fp16": 125}),
            ((40, 1.59e9, (7, 5)), {"fp32": 8.1, "fp16": 65, "int8": 130}),
            (
                (108, 1.41e9, (8, 0)),
                {"fp64": 9.7, "fp64_tensor": 19.5, "fp32": 19.5, "tf32": 156, "fp16": 312, "int8": 624},
            ),
            ((84, 1.74e9, (8, 6)), {"fp32": 37.4, "tf32": 74.8, "fp16": 149.7, "int8": 299.3}),
            ((142, 2.52e9, (8, 9)), {"fp32": 91.6, "tf32": 183, "fp16": 362, "fp8": 733}),
            ((132, 1.83e9, (9, 0)), {"tf32": 494.7, "fp16": 989.4, "fp8": 1979, "int8": 1979}),
            ((148, 1.85e9, (10, 0)), {"tf32": 1125, "fp16": 2250, "fp8": 4500, "fp4": 9000}),
            ((188, 2.62e9, (12, 0)), {"fp32": 126, "tf32": 252, "fp16": 504, "fp8": 1008, "fp4": 2015}),
        ]
        for number, ((sms, clock, (major, minor)), _) in enumerate(gpus):
            trace.gpu(number, smCount=sms, clockRate=int(clock), computeMajor=major, computeMinor=minor)
        with open_trace(trace.write(path)) as session:
            rows = {(row["gpu_id"], row["precision"]): row["tflop_per_s"] for row in session.peaks().to_dicts()}
        for number, (_, sheet) in enumerate(gpus):
            assert {name: rows[number, name] for name in sheet} == pytest.approx(sheet, rel=0.025)

    def test_every_compute_capability_has_limits_and_the_product_of_its_rates(self):
        chips = tomllib.loads(CATALOG.read_text(encoding="utf-8"))["compute_capabilities"]
        names = [chip["compute_capability"] for chip in chips]
        assert names == sorted(set(names), key=lambda name: tuple(map(int, name.split("."))))
        for chip in chips:
            assert chip["limits"]["warps_per_sm"] in (32, 48, 64)
            assert (
                chip["limits"]["shared_per_sm_bytes"] - chip["limits"]["shared_per_block_optin_bytes"]
                == chip["shared_driver_bytes"]
            )
            assert "SMs" in chip["product"]
            assert "GHz" in chip["product"]

    def test_an_unknown_compute_capability_has_no_peaks(self, trace, path):
        with nsys_insight.open(trace.gpu(0, computeMajor=99).write(path)) as session:
            assert session.peaks().rows() == []


class TestRoofline:
    def test_a_matrix_product_by_its_size(self, trace, path):
        trace.thread().launch("hgemm_nn", runs=1_000_000)
        (row,) = ask(trace.write(path), gemm="4096,2048,1024")
        flop, size = 2 * 4096 * 2048 * 1024, 2 * (4096 * 1024 + 1024 * 2048 + 4096 * 2048)
        assert (row["precision"], row["flop_count"], row["bytes"], row["bytes_from"]) == ("fp16", flop, size, "size")
        assert row["traffic_ratio"] is None  # nothing was measured
        assert row["tflop_per_s"] == pytest.approx(flop / 1e-3 / 1e12)
        assert row["compute_pct"] == pytest.approx(100 * flop / 1e-3 / (132 * 1.98e9 * 4096))
        assert row["bandwidth_pct"] == pytest.approx(100 * size / 1e-3 / 4_814_304_000_000)
        assert (row["roof"], row["roof_pct"]) == ("compute", row["compute_pct"])

    @pytest.mark.slow
    def test_attention_and_its_causal_half(self, trace, path):
        trace.thread().launch("flash_fwd_kernel_f16", runs=1_000_000)
        (row,) = ask(trace.write(path), attention="2,8,1024,64")
        assert row["flop_count"] == 4 * 2 * 8 * 1024**2 * 64
        assert row["bytes"] == 2 * 4 * 2 * 8 * 1024 * 64
        (half,) = ask(path, attention="2,8,1024,64", causal=True)
        assert half["flop_count"] == row["flop_count"] / 2

    def test_an_element_wise_kernel_is_under_the_roof_of_memory(self, trace, path):
        trace.thread().launch("add_kernel", runs=1_000_000)
        (row,) = ask(trace.write(path), elements=400_000_000)
        assert (row["precision"], row["bytes"], row["roof"]) == ("fp32", 3_200_000_000, "memory")
        assert row["roof_pct"] == row["bandwidth_pct"] == pytest.approx(100 * 3.2 / 4.814304)

    @pytest.mark.slow
    def test_sampled_bytes_have_precedence_over_bytes_of_the_size(self, trace, path):
        add_sampled_kernel(
            trace, trace.thread(), "add_kernel", grid=(1000, 1, 1), sms_active_pct=99, issue_pct=10, dram_pct=50
        )
        (row,) = ask(trace.write(path))
        assert (row["bytes_from"], row["flop_count"], row["roof"]) == ("gpu_metrics", None, None)
        assert row["bytes"] == pytest.approx(0.5 * 4_814_304_000_000 * 6 * PERIOD / 1e9)
        assert row["bandwidth_pct"] == pytest.approx(50)
        (row,) = ask(path, elements=1_000)
        assert (row["bytes_from"], row["flop_count"]) == ("gpu_metrics", 1_000)
        assert row["traffic_ratio"] == pytest.approx(row["bytes"] / 8_000)

    @pytest.mark.slow
    def test_a_size_is_ignored_for_a_kernel_that_would_exceed_the_peaks(self, trace, path):
        host = trace.thread()
        host.launch("hgemm_large", runs=2_000_000).launch("hgemm_small", runs=2_000)
        assert [row["name"] for row in ask(trace.write(path), gemm="8192,8192,8192")] == ["hgemm_large"]
        with open_trace(path) as session:
            answer = session.answer("roofline", gemm="8192,8192,8192", kernel="SMALL")
            assert [row["name"] for row in answer.frame().to_dicts()] == ["hgemm_small"]
        assert any("above the peak" in note for note in answer.notes)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "precision"),
        [
            ("nvjet_sm90_hsh_320x128_64x3_1x2_h_bz_coopB_NNT", "fp16"),
            ("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN", "fp16"),
            ("sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x256x32", "tf32"),
            ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_ffma", "fp32"),
            ("sm90_xmma_gemm_f64f64_f64f64_f64_nn_n_tensor16x8x8", "fp64_tensor"),
            ("ampere_sgemm_128x64_nn", "fp32"),
            ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_nn_f16", "fp16"),
            ("gemm_mystery", None),
        ],
    )
    def test_the_precision_is_derived_from_the_name_or_unknown(self, trace, path, name, precision):
        trace.thread().launch(name, runs=1_000_000)
        (row,) = ask(trace.write(path), gemm="64,64,64")
        assert row["precision"] == precision
        assert (row["compute_pct"] is None) == (precision is None)
        assert ask(path, gemm="64,64,64", precision="fp32")[0]["precision"] == "fp32"

    def test_the_precision_of_a_cutlass_kernel_is_that_of_its_operands(self, trace, path):
        # Names and operands of cutlass_library 4.2.
        precisions = {
            "cutlass_tensorop_bf16_s16816gemm_bf16_s8_128x16_32x3_tn_align16": "fp16",
            "cutlass_tensorop_s16816gemm_s8_f16_128x16_64x5_tn_align16": "fp16",
            "cutlass_tensorop_s8_i16832gemm_s8_s4_128x128_128x4_tn_align32": "int8",
            "cutlass_tensorop_i168256andgemm_b1_128x128_512x5_tn_align128": None,
            "cutlass3x_sm90_tensorop_gemm_e4m3_bf16_f32_bf16_bf16_sclzr_256x256x64_2x1x1_0_tnn_align16": "fp16",
            "cutlass3x_sm90_tensorop_gemm_s4_e4m3_f32_e4m3_e4m3_scl_256x128x128_2x1x1_0_tnn_align32": "fp8",
            "cutlass3x_sm100_tensorop_gemm_f8_f8_f32_bf16_bf16_128x256x128_0x0x1_0_nnn_align16_1sm": "fp8",
            "cutlass3x_sm100_tensorop_gemm_f4_f6_f32_f16_f16_256x256x128_4x4x1_0_tnt_align128_2sm": "fp8",
            "cutlass3x_sm100_bstensorop_gemm_ue8m0xe2m1_ue8m0xe2m1_f32_bf16_bf16_256x128x256_4x4x1_0_tnn": "fp4",
        }
        for name in precisions:
            trace.thread().launch(f"void cutlass::device_kernel<{name}>(T1::Params)", runs=1_000)
        with open_trace(trace.write(path)) as session:
            rows = session.sql("SELECT name, _precision_by_name(name, family) FROM kernel_names").rows()
        assert {name.split("<")[1].split(">")[0]: precision for name, precision in rows} == precisions

    @pytest.mark.parametrize("size", ["8192,8192", "a,b,c", "", "1,2,3,4"])
    def test_an_invalid_size_is_refused(self, trace, path, size):
        with pytest.raises(UsageError):
            ask(trace.write(path), gemm=size)

    def test_without_bytes_and_operations_there_is_no_answer(self, trace, path):
        trace.thread().launch("hgemm", runs=1_000_000)
        assert ask(trace.write(path)) == []

    def test_a_gpu_that_is_not_described_has_no_peak(self, trace, path):
        trace.thread().launch("hgemm", runs=1_000_000)
        (row,) = ask(trace.write(path, without_tables=("TARGET_INFO_GPU",)), gemm="64,64,64")
        assert (row["flop_count"], row["compute_pct"], row["roof"]) == (2 * 64**3, None, None)

    def test_the_sampled_bytes_of_a_real_copy_equal_its_size(self, shared):
        # zoo.py multiplies 2^28 floats: 2 GiB read and written.
        (row,) = (row for row in ask(shared / "traces" / "zoo_a.25.sqlite") if row["grid"] == "262144x1x1")
        assert row["bytes"] == pytest.approx(2**31, rel=0.02)


class TestSizesFromNvtx:
    """PyTorch's emit_nvtx(record_shapes=True) writes the sizes of an operation's tensors into its range."""

    def test_matrix_products(self, trace, path):
        products = [
            ("mm, seq = 12, sizes = [[8, 4096], [4096, 512]]", 2 * 8 * 4096 * 512, 8 * 4096 + 4096 * 512 + 8 * 512),
            ("mm, op_id = 3, sizes = [[1, 2], [2, 3]], input_op_ids = [(1, 0), (2, 0)]", 12, 2 + 6 + 3),
            ("addmm, seq = 1, sizes = [[512], [8, 64], [64, 512], [], []]", 2 * 8 * 64 * 512, 512 + 64 * 512 + 8 * 512),
            ("bmm, sizes = [[32, 8, 64], [32, 64, 16]]", 2 * 32 * 8 * 64 * 16, 32 * (8 * 64 + 64 * 16 + 8 * 16)),
            ("baddbmm, sizes = [[2, 3, 5], [2, 3, 4], [2, 4, 5], [], []]", 2 * 2 * 3 * 4 * 5, 2 * (12 + 20 + 15)),
            ("linear, sizes = [[2, 7, 64], [128, 64], [128]]", 2 * 2 * 7 * 64 * 128, 2 * 7 * 64 + 128 * 64 + 14 * 128),
            ("linear, sizes = [[64], [128, 64], []]", 2 * 64 * 128, 64 + 128 * 64 + 128),
            ("matmul, sizes = [[2, 1, 3, 4], [5, 4, 6]]", 2 * 2 * 5 * 3 * 4 * 6, 24 + 120 + 2 * 5 * 3 * 6),
            ("matmul, seq = 4, sizes = [[3, 4], [4]]", 2 * 3 * 4, 12 + 4 + 3),
        ]
        host = trace.thread()
        for number, (text, *_) in enumerate(products):
            for prefix in ("aten::", ""):
                with host.nvtx(prefix + text):
                    host.launch(f"hgemm{number}{prefix.strip(':')}_nn", runs=1_000_000)
        rows = {row["name"]: row for row in ask(trace.write(path))}
        assert len(rows) == 2 * len(products)
        for number, (_, flop, elements) in enumerate(products):
            for prefix in ("aten", ""):
                row = rows[f"hgemm{number}{prefix}_nn"]
                assert (row["flop_count"], row["flop_from"]) == (flop, "nvtx")
                assert (row["bytes"], row["bytes_from"]) == (2 * elements, "nvtx")
                assert row["tflop_per_s"] == pytest.approx(flop / 1e-3 / 1e12)

    @pytest.mark.slow
    @pytest.mark.parametrize("op", ["scaled_dot_product_attention", "_scaled_dot_product_flash_attention"])
    def test_attention_whose_keys_are_longer_than_its_queries(self, trace, path, op):
        host = trace.thread()
        with host.nvtx(f"aten::{op}, seq = 5, sizes = [[2, 8, 128, 64], [2, 4, 256, 64], [2, 4, 256, 64], [], [], []]"):
            host.launch("flash_fwd_kernel_f16", runs=1_000_000)
        (row,) = ask(trace.write(path))
        assert row["flop_count"] == 4 * 2 * 8 * 128 * 256 * 64
        assert row["bytes"] == 2 * (2 * 2 * 8 * 128 * 64 + 2 * 2 * 4 * 256 * 64)
        (half,) = ask(path, causal=True)
        assert half["flop_count"] == row["flop_count"] / 2

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "text",
        [
            "aten::mm",
            "aten::mm, seq = 3",
            "aten::mm, sizes = [[8, 64], [65, 8]]",  # does not fit together
            "aten::mm, sizes = [[[8, 64], [64, 8]], []]",  # a list of tensors
            "aten::mm, sizes = [[8, 64",
            "aten::mm, sizes = [[0, 64], [64, 8]]",
            "aten::mm, sizes = [[8, ']; DROP], [64, 8]]",
            "aten::mm, sizes = [[8, 99999999999999999999], [64, 8]]",
            "aten::add, sizes = [[8, 64], [64, 8], []]",
            "aten::_scaled_dot_product_flash_attention_backward, sizes = [[2, 8, 9, 4], [2, 8, 9, 4], [2, 8, 9, 4]]",
            "aten::scaled_dot_product_attention, sizes = [[8, 64], [8, 64], [8, 64]]",
            "mine::mm, sizes = [[8, 64], [64, 8]]",
        ],
    )
    def test_ranges_without_valid_sizes_are_ignored(self, trace, path, text):
        host = trace.thread()
        with host.nvtx(text):
            host.launch("hgemm_nn", runs=1_000_000).launch("flash_fwd_kernel_f16", runs=1_000_000)
        assert ask(trace.write(path)) == []

    @pytest.mark.slow
    def test_the_innermost_operation_counts_and_only_its_one_kernel_of_the_family(self, trace, path):
        host = trace.thread()
        with host.nvtx("aten::matmul, sizes = [[1, 8, 64], [64, 32]]"):
            with host.nvtx("aten::mm, sizes = [[8, 64], [64, 32]]"):
                host.launch("hgemm_split", runs=1_000_000).launch("splitKreduce_kernel", runs=9_000)
            host.launch("hgemm_after", runs=1_000_000)  # its size is unknown
        with host.nvtx("aten::linear, sizes = [[8, 64], [32, 64], [32]]"):
            host.launch("hgemm_one_of_two", runs=1_000_000).launch("hgemm_other_of_two", runs=1_000_000)
        with host.nvtx("aten::mm, sizes = [[8, 64], [64, 32]]"):
            host.launch("add_kernel", runs=1_000_000)
        trace.thread(tid=9).launch("hgemm_of_another_thread", start=host.now - 2_000_000, runs=1_000_000)
        assert {row["name"]: row["flop_count"] for row in ask(trace.write(path))} == {"hgemm_split": 2 * 8 * 64 * 32}

    @pytest.mark.slow
    def test_calls_of_one_shape_and_several_sizes_have_their_mean(self, trace, path):
        host = trace.thread()
        for depth in (64, 192):
            with host.nvtx(f"aten::mm, sizes = [[8, {depth}], [{depth}, 32]]"):
                host.launch("hgemm_nn", runs=1_000_000)
        (row,) = ask(trace.write(path))
        assert row["flop_count"] == 2 * 8 * 128 * 32

    @pytest.mark.slow
    def test_a_given_size_has_precedence_if_it_is_possible(self, trace, path):
        host = trace.thread()
        for name, runs_ns in (("hgemm_large", 2_000_000), ("hgemm_small", 2_000)):
            with host.nvtx("aten::mm, sizes = [[8, 64], [64, 32]]"):
                host.launch(name, runs=runs_ns)
        rows = {row["name"]: row for row in ask(trace.write(path), gemm="8192,8192,8192")}
        assert {name: row["flop_from"] for name, row in rows.items()} == {"hgemm_large": "size", "hgemm_small": "nvtx"}
        assert {name: row["bytes_from"] for name, row in rows.items()} == {"hgemm_large": "size", "hgemm_small": "nvtx"}
        assert rows["hgemm_small"]["flop_count"] == 2 * 8 * 64 * 32
