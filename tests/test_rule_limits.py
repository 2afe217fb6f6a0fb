"""The limits of rules: what a rule's query reads, as small tables, and the rows that it returns.

A table has only the columns that the query reads, and a rule takes milliseconds. That the rule fires on a trace is
tested in tests/test_rules_*.py and tests/test_diagnosis.py.
"""

from __future__ import annotations

import duckdb
import pytest
from ailments import BF16, FP64, FUSED_ADAM, LIST, LIST_NORM, LIST_SCALING, NATIVE, TF32
from rule_tables import STEP

from nsys_insight.model import construct_catalog
from nsys_insight.sql.quoting import literal

H100 = {"clock_hz": 1.98e9, "sm_count": 132, "memory_bytes_per_s": 4.8e12}
PEAKS = [{"gpu": "NVIDIA H100", "precision": name, "tflop_per_s": rate} for name, rate in
         (("fp32", 67.0), ("tf32", 495.0), ("fp16", 990.0))]  # fmt: skip


def shape(name="total(float *)", *, blocks=4096, threads=256, avg_ns=600_000, **changes):
    """Give a row of `_steady_shapes`: one call of a kernel that takes most of the step."""
    return {
        "name": name, "grid": f"{blocks}x1x1", "block": f"{threads}x1x1", "calls": 1, "total_ns": avg_ns,
        "avg_ns": avg_ns, "kernel_time_pct": 60.0, **changes,
    }  # fmt: skip


class TestSmallBlocks:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            # Empty lanes of warps are lost.
            ({"threads": 16}, {"lane_pct": 50.0, "recoverable_ns": 300_000, "is_start_bound": False}),
            ({"threads": 33}, {"lane_pct": 100 * 33 / 64, "recoverable_ns": 600_000 * 31 / 64}),
            ({"threads": 100}, {"lane_pct": 100 * 100 / 128, "recoverable_ns": 600_000 * 28 / 128}),
            # 1.67 blocks per nanosecond, as an H100 starts them: they take as long as their start.
            ({"threads": 16, "blocks": 1_000_000}, {"blocks_per_us": 1667, "recoverable_ns": 600_000 * 15 / 16}),
            ({"threads": 32, "blocks": 1_000_000}, {"is_start_bound": True, "recoverable_ns": 600_000 * 7 / 8}),
            ({"threads": 64, "blocks": 1_000_000}, {"is_start_bound": True, "recoverable_ns": 600_000 * 3 / 4}),
            # Full blocks with too little work: what is left takes a byte read and one written for each thread.
            (
                {"threads": 128, "blocks": 1_000_000},
                {
                    "cure_case": "work",
                    "many_blocks": 1_000_000,
                    "lane_pct": None,
                    "recoverable_ns": 600_000 - 1e9 * 256e6 / 4.8e12,
                    "saving_low_ns": 300_000 - 5e8 * 256e6 / 4.8e12,
                },
            ),
            ({"threads": 256, "blocks": 1_000_000}, {"saving_low_ns": 600_000 - 1e9 * 2048e6 / 4.8e12}),
            ({"threads": 288, "blocks": 1_000_000}, None),  # the memory is the limit
            ({"threads": 128, "blocks": 890_000}, None),  # 0.74 for each cycle
            ({"threads": 128, "blocks": 1_000_000, "name": "cupyx_scipy_ndimage_spline_filter1d_ord3"}, None),
            ({"threads": 16, "name": "cupyx_scipy_ndimage_spline_filter1d_ord3"}, None),
            # Full warps alone, one block, short kernels, kernels with little time, and those of libraries.
            ({"threads": 32}, None),
            ({"threads": 128}, None),
            ({"threads": 16, "blocks": 1}, None),
            ({"threads": 16, "avg_ns": 9_999}, None),
            ({"threads": 16, "kernel_time_pct": 4.9}, None),
            ({"threads": 20, "name": "void gemv2T_kernel_val<int, int, float>(T1)"}, None),
            # In full blocks, fewer than 128 threads for each of 132 SMs would leave SMs empty.
            ({"threads": 16, "blocks": 1055}, None),
            ({"threads": 16, "blocks": 1056}, {"recoverable_ns": 300_000}),
        ],
    )
    def test_a_shape(self, changes, expected, run_rule):
        names = [{"name": "total(float *)", "provenance": "hand-written"}]
        rows = run_rule("small-blocks", _steady_shapes=[shape(**changes)], kernel_names=names, gpus=[H100],
                        _step_totals=[STEP])  # fmt: skip
        assert [{name: pytest.approx(row[name]) for name in expected} for row in rows] == (
            [expected] if expected else []
        )

    @pytest.mark.parametrize(("provenance", "count"), [("Triton", 1), ("Numba", 1), ("CuPy", 0), ("OpenACC", 0)])
    def test_the_program_chooses_the_work_of_a_block_in_some_languages(self, provenance, count, run_rule):
        names = [{"name": shape()["name"], "provenance": provenance}]
        rows = run_rule("small-blocks", _steady_shapes=[shape(threads=128, blocks=1_000_000)], kernel_names=names,
                        gpus=[H100], _step_totals=[STEP])  # fmt: skip
        assert len(rows) == count

    def test_kernels_with_the_same_fault_count_together(self, run_rule):
        shapes = [shape(name, threads=16) for name in ("total(float *)", "scale(float *)")]
        names = [{"name": row["name"], "provenance": "hand-written"} for row in shapes]
        rows = run_rule("small-blocks", _steady_shapes=shapes, kernel_names=names, gpus=[H100], _step_totals=[STEP])
        assert [(row["kernel"], row["more_kernels"], row["recoverable_ns"]) for row in rows] == [("scale", 1, 600_000)]

    @pytest.mark.parametrize(("provenance", "count"), [("Halide", 1), ("Mojo", 1), ("IREE", 0), ("cuTile", 0)])
    def test_the_program_chooses_the_blocks_of_some_compilers(self, provenance, count, run_rule):
        names = [{"name": shape()["name"], "provenance": provenance}]
        rows = run_rule("small-blocks", _steady_shapes=[shape(threads=16)], kernel_names=names, gpus=[H100],
                        _step_totals=[STEP])  # fmt: skip
        assert len(rows) == count

    def test_a_gpu_that_the_trace_does_not_describe(self, run_rule):
        shapes, unknown = [shape(threads=16, blocks=1_000_000)], dict.fromkeys(H100)
        names = [{"name": "other", "provenance": "cuBLAS"}]
        rows = run_rule("small-blocks", _steady_shapes=shapes, kernel_names=names, gpus=[unknown], _step_totals=[STEP])
        assert [(row["is_start_bound"], row["recoverable_ns"]) for row in rows] == [(False, 300_000)]


@pytest.mark.parametrize(
    ("name", "provenance", "is_named"),
    [
        ("total(float *)", "hand-written", True),
        ("void at::native::ctc_loss_backward_collect_gpu_kernel<float, long>(T1)", "PyTorch native", True),
        ("void gesvdbj_batch_32x16<float, float>(long)", "cuSOLVER", False),
        ("spin_kernel(long)", "hand-written", False),
        ("void cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel<Params>(T1)", "cuDNN", False),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", "NCCL", False),
    ],
)
@pytest.mark.parametrize(("blocks", "is_few"), [(13, True), (14, False)])
def test_a_kernel_in_few_blocks(name, provenance, is_named, blocks, is_few, run_rule):  # noqa: PLR0917
    """The limit is a tenth of 132 SMs. Kernels that wait need not have more blocks; those of libraries cannot."""
    launch = {"name_id": 1, "grid_x": blocks, "grid_y": 1, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1,
              "blocks_count": blocks, "sm_count": 132, "total_ns": 600_000}  # fmt: skip
    rows = run_rule("one-block", _steady_shapes=[shape(name, blocks=blocks)], launch_shapes=[launch],
                    kernel_names=[{"name": name, "name_id": 1, "provenance": provenance}], _step_totals=[STEP],
                    _unified_memory_events=[{"name": "another", "in_kernel_ns": 1}])  # fmt: skip
    assert [row["blocks"] for row in rows] == ([blocks] if is_named and is_few else [])


@pytest.mark.parametrize(
    ("name", "count"), [("total(float *)", 1), ("void cudnn::xmma::init_device_workspace_kernel<Params>(T1)", 0)]
)
def test_kernels_that_leave_sms_free(name, count, run_rule):
    """A kernel of cuDNN that starts early waits: its duration is no work that more blocks would share."""
    launch = {"name_id": 1, "grid_x": 66, "grid_y": 1, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1,
              "blocks_count": 66, "sm_count": 132, "total_ns": 600_000}  # fmt: skip
    rows = run_rule("small-grid", _steady_shapes=[shape(name, blocks=66)], launch_shapes=[launch],
                    kernel_names=[{"name": name, "name_id": 1}], _graph_tracing=[{"whole_pct": 0, "wholes": 0}],
                    classify_report=[{"part": part, "time_ns": 900_000} for part in ("gpu", "wall")],
                    _step_totals=[STEP])  # fmt: skip
    assert len(rows) == count


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("ampere_sgemm_128x64_tn", 1),
        ("volta_scudnn_128x64_relu_interior_nn_v1", None),  # a convolution
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)", None),  # on tensor cores
        ("volta_fp16_sgemm_fp16_128x64_nn", None),
        ("batched_sgemm_m48_n9_k9(const float *, const float *, float *)", None),  # of no known library
        ("void my_sgemm<float>(T1 *, int)", None),
        ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x3_nn", None),
        ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16>(T1)", None),
        (BF16, None),
        (TF32, None),
    ],
)
def test_products_in_fp32_by_name(name, calls, run_rule):
    rows = run_rule("fp32-gemm", _steady_shapes=[shape(name)], gpu_peaks=PEAKS, _step_totals=[STEP])
    assert [row["calls"] for row in rows] == ([calls] if calls else [])


@pytest.mark.parametrize(("pct", "count"), [(9.9, 0), (10.0, 1)])
def test_products_in_fp32_with_little_time(pct, count, run_rule):
    shapes = [shape("ampere_sgemm_128x64_tn", kernel_time_pct=pct)]
    assert len(run_rule("fp32-gemm", _steady_shapes=shapes, gpu_peaks=PEAKS, _step_totals=[STEP])) == count


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1>(T1)", 0.5, 0.88),
        ("void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_128x256_64x3_nn_align2>(T1)", 0.35, 0.7),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_32x3_nn_align1>(T1)", 0.35, 0.7),
        ("volta_fp16_sgemm_fp16_128x64_nn", 0.5, 0.88),
        # Full loads.
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_64x3_nn_align8>(T1)", None, None),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>(T1)", None, None),
        (FP64, None, None),
        (TF32, None, None),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_32x3_nn_align16>(T1)", None, None),
    ],
)
def test_products_with_narrow_loads_by_name(name, low, high, run_rule):
    (row,) = run_rule("gemm-odd-sizes", _steady_shapes=[shape(name)], _step_totals=[STEP]) or [{}]
    saving = (row.get("saving_low_ns"), row.get("recoverable_ns"))
    assert saving == ((pytest.approx(low * 600_000), pytest.approx(high * 600_000)) if low else (None, None))


@pytest.mark.parametrize(
    ("takes_over", "high_ns", "limited_ns"),
    [
        # nsys makes the host slower.
        ("CPU work", 700_000, 400_000),
        ("API call: cudaLaunchKernel", 700_000, 400_000),
        ("kernel: side", 400_000, None),
        ("between operations", 400_000, None),
    ],
)
def test_what_a_faster_kernel_saves_before_the_host_takes_over(takes_over, high_ns, limited_ns, run_rule):
    kernel = {"kind": "kernel", "name": "wide(float *)", "nvtx_path": None, "path_ns": 700_000, "saved_ns": 400_000,
              "half_saved_ns": 350_000, "takes_over": takes_over}  # fmt: skip
    run = {"reason": None, "measured_ns": 1e6, "played_ns": 1e6}
    (row,) = run_rule(
        "critical-path", critical_path=[kernel], critical_path_run=[run], step_method=[{"tokens_per_step": 1}],
        classify_report=[{"part": "wall", "time_ns": 1e6}],
    )  # fmt: skip
    assert (row["recoverable_ns"], row["host_limited_ns"]) == (high_ns, limited_ns)


def native(name, *, avg_ns, calls=1):
    """Give a row of `_steady_shapes`: a kernel of PyTorch, with a tenth of the time in each call."""
    names = {
        "softmax": "void cunn_SoftMaxForward<4, float, LogSoftMaxForwardEpilogue>(int)",
        "loss": "void at::native::nll_loss_backward_reduce_cuda_kernel_2d<float, long>(int)",
        "gather": "void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)",
    }
    name = names.get(name, NATIVE.format(f"{name}_kernel_cuda(TensorIteratorBase &)"))
    return shape(name, avg_ns=avg_ns, total_ns=calls * avg_ns, calls=calls, kernel_time_pct=10 * calls)


@pytest.mark.parametrize(
    ("passes", "sum_ns", "gather_ns", "is_loss"),
    [(12, 2_000, 2_000, True), (4, 2_000, 2_000, False), (12, 51_000, 2_000, False), (12, 2_000, 51_000, False)],
)
def test_a_loss_that_is_written_out_is_all_passes_over_the_matrix(passes, sum_ns, gather_ns, is_loss, run_rule):
    shapes = [
        native("exp", avg_ns=500_000), native("log", avg_ns=sum_ns), native("gather", avg_ns=gather_ns),
        native("neg", avg_ns=500_000, calls=passes - 1),
    ]  # fmt: skip
    limits = {"high_limit_ns": 1e7, "low_limit_ns": 1e7}
    rows = run_rule("cross-entropy-unfused", _steady_shapes=shapes, _step_totals=[STEP], _step_limits=[limits])
    values = [(row["is_written_out"], row["loss_ns"], row["calls"]) for row in rows]
    assert values == ([(True, 6_000_000, 12)] if is_loss else [])
    assert [(row["saving_low_ns"], row["recoverable_ns"]) for row in rows] == ([(3e6, 5.5e6)] if is_loss else [])


@pytest.mark.parametrize("has_loss", [True, False])
def test_a_log_softmax_without_a_loss_is_needed_itself(has_loss, run_rule):
    shapes = [native("softmax", avg_ns=500_000, calls=2), *[native("loss", avg_ns=10_000)] * has_loss]
    rows = run_rule("cross-entropy-unfused", _steady_shapes=shapes, _step_totals=[STEP])
    assert [row["loss_ns"] for row in rows] == [1_000_000] * has_loss


def test_batch_normalization_gets_faster_in_another_layout_too(run_rule):
    convert = shape("void cudnn::ops::nchwToNhwcKernel<__half, __half, float>(T3)", avg_ns=100_000, total_ns=400_000,
                    calls=4)  # fmt: skip
    norm = shape("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 128, true>(T1)", avg_ns=1_200_000)
    limits = {"high_limit_ns": 2e6, "low_limit_ns": 2e6}
    (row,) = run_rule("layout-conversion", _steady_shapes=[convert, norm], _step_totals=[STEP], _step_limits=[limits])
    assert (row["conversion_ns"], row["calls"], row["norm_ns"]) == (400_000, 4, 1_200_000)
    assert (row["saving_low_ns"], row["recoverable_ns"]) == (500_000, pytest.approx(1_200_000))


def test_the_conversion_with_the_most_time_is_that_of_all_its_launch_shapes(run_rule):
    two_shapes = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float>(T3)"
    one_shape = "void cudnn::ops::nhwcToNchwKernel<__half, __half, float>(T3)"
    shapes = [*[shape(two_shapes, avg_ns=100_000, total_ns=200_000, calls=2)] * 2, shape(one_shape, avg_ns=300_000)]
    (row,) = run_rule("layout-conversion", _steady_shapes=shapes, _step_totals=[STEP])
    assert (row["kernel"], row["place"]) == ("nchwToNhwcKernel", "nchwToNhwcKernel")


def test_a_product_with_a_vector_is_bounded_by_its_bytes(run_rule):
    name = "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, double, double, double>(T1)"
    peaks = [*PEAKS, {"gpu": "NVIDIA H100", "precision": "fp64 (tensor)", "tflop_per_s": 67.0}]
    (row,) = run_rule("fp64-gemm", _steady_shapes=[shape(name)], gpu_peaks=peaks, _step_totals=[STEP])
    assert (row["saving_low_ns"], row["recoverable_ns"]) == (0.3 * 600_000, 0.5 * 600_000)
    assert row["place"] == "gemvx::kernel"
    assert (row["is_slow"], row["has_tf32"]) == (False, False)


@pytest.mark.parametrize(("sorts", "sort_ns"), [(1, 60_000), (3, None)])
def test_the_sorts_of_an_embedding_are_as_many_as_its_gradients(sorts, sort_ns, run_rule):
    names = {"void cub::DeviceRadixSortExclusiveSumKernel<policy_hub<long>>(int)": (sorts, 60_000),
             "void at::native::<unnamed>::compute_grad_weight<float, long>(int)": (1, 100_000),
             "void at::native::<unnamed>::sum_and_scatter<float, long>(int)": (1, 140_000)}  # fmt: skip
    shapes = [
        shape(name, avg_ns=avg_ns, calls=calls, total_ns=calls * avg_ns) for name, (calls, avg_ns) in names.items()
    ]
    (row,) = run_rule("embedding-sort", _steady_shapes=shapes, _step_totals=[STEP])
    assert (row["backward_ns"], row["sort_ns"]) == (240_000 + (sort_ns or 0), sort_ns)


# Two steps of one process, each as long as `STEP`.
WINDOWS = [
    {"process_id": 1, "step": step, "start_ns": step * 1_000_000, "end_ns": (step + 1) * 1_000_000,
     "host_start_ns": step * 1_000_000, "host_end_ns": (step + 1) * 1_000_000}
    for step in range(2)
]  # fmt: skip
TWO_STEPS = {**STEP, "units": 2, "host_floor_ns": 1e5}


def in_steps(*rows):
    """Give rows that happen in each of two steps, and once more after them."""
    return [
        {"process_id": 1, "start_ns": step * 1_000_000 + 1_000 * (number + 1), **row}
        for step in range(3)
        for number, row in enumerate(rows)
    ]


def in_threads(*waits):
    """Give rows of `waits` of one thread, which happen in each of two steps, and once more after them."""
    return [{"thread_id": 1, "end_ns": row["start_ns"] + 100, **row} for row in in_steps(*waits)]


def launch_before(waits, count):
    """Give rows of `launches`: one right before each of the first `count` waits of a step."""
    return [
        {
            "process_id": 1, "thread_id": 1, "call_group": "launch", "api_start_ns": row["start_ns"] - 9,
            "api_end_ns": row["start_ns"] - 8, "api_duration_ns": 1, "start_ns": row["start_ns"] - 7,
            "end_ns": row["start_ns"] - 6, "duration_ns": 1,
        }
        for number, row in enumerate(waits) if number % (len(waits) // 3) < count
    ]  # fmt: skip


def copy(kind="H2D", size=4):
    """Give a row of `memcpys`."""
    return {"copy_kind": kind, "size_bytes": size, "duration_ns": 1_000, "graph_node_id": 0}


def wait(*, is_copy=False, copy_kind=None, copy_bytes=0):
    """Give a row of `waits`."""
    return {"name": "cudaStreamSynchronize", "is_copy": is_copy, "copy_kind": copy_kind, "copy_bytes": copy_bytes}


@pytest.mark.parametrize(
    ("copies", "launches", "is_found"),
    [
        ([copy()] * 3, 10, True),
        ([copy()] * 2, 8, True),
        ([copy()] * 2, 9, False),  # less than a fifth of all calls
        ([copy()], 1, False),
        ([copy(size=256)] * 3, 10, True),
        ([copy(size=257)] * 3, 10, False),
        ([copy("D2H")] * 3, 10, False),
        ([{**copy(), "graph_node_id": 7}] * 3, 10, False),
    ],
)
def test_small_copies(copies, launches, is_found, run_rule):
    totals = {**TWO_STEPS, "launch_calls": launches}
    waits = in_steps(wait(), wait(copy_kind="H2D", copy_bytes=257))
    rows = run_rule("small-copies", memcpys=in_steps(*copies), waits=waits, _steady_windows=WINDOWS,
                    _step_totals=[totals])  # fmt: skip
    assert [row["copies"] for row in rows] == [len(copies)] * is_found
    # Waits that are not for these copies are not counted.
    assert [row["waits"] for row in rows] == [None] * is_found


@pytest.mark.parametrize(
    ("copies", "launches", "is_found"),
    [
        ([copy("D2D", 65_536)] * 16, 10, True),
        ([copy("D2D", 65_537)] * 16, 10, False),
        ([copy("D2D")] * 15, 10, False),
        ([copy("H2D")] * 16, 10, False),
        ([copy("D2D")] * 16, 64, True),
        ([copy("D2D")] * 16, 65, False),
    ],
)
def test_small_copies_within_the_gpu(copies, launches, is_found, run_rule):
    totals = {**TWO_STEPS, "launch_calls": launches}
    gpu = {"memory_bytes_per_s": 2e12}
    rows = run_rule("tiny-d2d", memcpys=in_steps(*copies), gpus=[gpu], _steady_windows=WINDOWS, _step_totals=[totals])
    assert [(row["copies"], row["copy_ns"]) for row in rows] == [(16, 16_000)] * is_found


@pytest.mark.parametrize(
    ("waits", "copies", "copy_ns", "explains"),
    [
        (2, 2, 10_000, ["late-host", "wait", "copy"]),
        (2, 4, 10_000, ["late-host", "wait", "copy"]),
        (2, 5, 10_000, None),  # less than half of the copies
        # The copies take longer than the GPU is idle.
        (2, 2, 100_001, ["late-host", "wait", "pageable-copy"]),
    ],
)
def test_waits_after_copies(waits, copies, copy_ns, explains, run_rule):
    copied = {"copy_kind": "H2D", "copy_bytes": 4096}
    rows = run_rule(
        "sync-after-copy", waits=in_steps(*[wait(**copied)] * waits, wait(), wait(is_copy=True, **copied)),
        _steady_copies=[{"copy_kind": "H2D", "calls": 2 * copies, "avg_bytes": 4096.0}], _steady_windows=WINDOWS,
        classify_report=[{"part": "copy", "time_ns": copy_ns}], _step_totals=[TWO_STEPS],
    )  # fmt: skip
    assert [(row["copies"], row["explains"]) for row in rows] == ([(waits, explains)] if explains else [])


@pytest.mark.parametrize(
    ("waits", "launched_before", "launches", "is_found"),
    [
        ([wait()] * 6, 6, 10, True),
        ([wait()] * 6, 5, 10, False),  # one of them waits once more
        ([wait()] * 5, 5, 10, False),
        ([wait()], 1, 1, False),
        ([wait(copy_kind="D2H", copy_bytes=4096)] * 6, 6, 10, False),
        ([wait(is_copy=True)] * 6, 6, 10, False),
    ],
)
def test_a_wait_after_each_launch(waits, launched_before, launches, is_found, run_rule):
    totals = {**TWO_STEPS, "launch_calls": launches}
    call = {"step": 0, "process_id": 1, "call_group": "launch", "time_ns": 1}
    all_waits = in_threads(*waits)
    rows = run_rule("sync-each-launch", waits=all_waits, _steady_windows=WINDOWS, step_calls=[call],
                    launches=launch_before(all_waits, launched_before), step_idle=[{"host": "other", "idle_ns": 1}],
                    _step_totals=[totals])  # fmt: skip
    assert [row["waits"] for row in rows] == [len(waits)] * is_found


@pytest.mark.parametrize(("idle_ns", "is_named"), [(2e5, True), (2e5 + 2, False)])
def test_waits_do_not_cost_the_time_of_messages(idle_ns, is_named, run_rule):
    """Of a step, the GPU is idle for 200 µs, in which the host is in MPI calls for `idle_ns` of two steps."""
    call = {"step": 0, "process_id": 1, "call_group": "launch", "time_ns": 1}
    totals = {**TWO_STEPS, "idle_ns": 2e5, "launch_calls": 10}
    (row,) = run_rule(
        "sync-each-launch", waits=in_threads(*[wait()] * 6), _steady_windows=WINDOWS, step_calls=[call],
        launches=launch_before(in_threads(*[wait()] * 6), 6),
        step_idle=[{"host": "MPI calls", "idle_ns": idle_ns}], _step_totals=[totals],
    )  # fmt: skip
    assert row["recoverable_ns"] == pytest.approx(0.9 * (2e5 - idle_ns / 2))
    assert ("late-host" in row["explains"]) == is_named


def launch(start_ns, runs, *, api=40_000):
    """Give a row of `launches`: a call, and a kernel that starts so long after the call's begin."""
    return {"process_id": 1, "thread_id": 1, "call_group": "launch", "api_start_ns": 0, "api_end_ns": api,
            "api_duration_ns": api, "start_ns": start_ns, "end_ns": start_ns + runs, "duration_ns": runs}  # fmt: skip


@pytest.mark.parametrize(
    ("launches", "count"),
    [
        # A call that waits returns after the end of its kernel; a full queue only delays its start.
        ([launch(5_000, 30_000)] * 4, 4),
        ([launch(44_000, 30_000)] * 4, 0),
        # By the clock of the GPU, kernels end before their calls return, and begin before them.
        ([launch(-40_000, 30_000)] * 4, 0),
        ([launch(-40_000, 2_000)] * 4, 0),
        # A slow call of a short kernel may not block. One in ten is a call of another kind.
        ([launch(5_000, 3_000)] * 4, 0),
        ([launch(5_000, 3_000)] * 18 + [launch(44_000, 30_000)] * 2, 0),
        ([launch(5_000, 30_000)] * 9 + [launch(44_000, 30_000)], 9),
        ([launch(5_000, 30_000)] * 8 + [launch(44_000, 30_000)], 0),
        ([launch(5_000, 30_000)] * 5 + [launch(44_000, 3_000)] * 5, 0),
        # The kernels take longer than the calls.
        ([launch(5_000, 30_000, api=36_000)] * 25, 0),
        ([launch(5_000, 30_000)], 0),
    ],
)
def test_launch_calls_that_wait_for_their_kernel(launches, count, run_rule):
    rows = [
        {**row, **{name: row[name] + step * 1_000_000 for name in ("api_start_ns", "api_end_ns", "start_ns", "end_ns")}}
        for step in range(2)
        for row in launches
    ]
    call = {"process_id": 1, "call_group": "launch", "time_ns": sum(row["api_duration_ns"] for row in launches)}
    totals = {**TWO_STEPS, "kernel_ns": sum(row["duration_ns"] for row in launches) if len(launches) < 25 else 9e5}
    findings = run_rule(
        "sync-each-launch", waits=in_threads(wait(is_copy=True)), _steady_windows=WINDOWS, launches=rows,
        step_calls=[{**call, "step": step} for step in range(2)], step_idle=[{"host": "other", "idle_ns": 1}],
        _step_totals=[totals],
    )  # fmt: skip
    assert [(row["blocking_calls"], row["waits"]) for row in findings] == [(count, None)] * (count > 0)


REDUCTION, GATHER = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", "ncclDevKernel_AllGather_RING_LL(int)"
PRODUCTS_AND_COLLECTIVES = [
    {"name_id": number, "name": name, "family": family}
    for number, (name, family) in enumerate([(BF16, "gemm"), (REDUCTION, "comm"), (GATHER, "comm")])
]


def kernels(*names, duration_ns=50_000):
    """Give rows of `kernel_events`, one after another, in each of two steps."""
    numbers = {row["name"]: row["name_id"] for row in PRODUCTS_AND_COLLECTIVES}
    return [
        {"process_id": 1, "name_id": numbers[name], "start_ns": step * 1_000_000 + number * 60_000,
         "end_ns": step * 1_000_000 + number * 60_000 + duration_ns}
        for step in range(2)
        for number, name in enumerate(names)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("names", "is_late"),
    [
        ([BF16] * 4 + [REDUCTION] * 4, True),
        ([BF16] * 4 + [REDUCTION] * 3, False),
        ([BF16] * 3 + [REDUCTION] * 4 + [BF16], False),
        ([BF16] * 4 + [GATHER] * 4, False),  # parameters
        ([REDUCTION] * 4, False),
    ],
)
def test_reductions_after_the_last_product(names, is_late, run_rule):
    rows = run_rule("gradient-reduction-late", kernel_events=kernels(*names), kernel_names=PRODUCTS_AND_COLLECTIVES,
                    _steady_windows=WINDOWS, _step_totals=[TWO_STEPS])  # fmt: skip
    # The first one may wait for another rank: what can be saved begins at its end.
    assert [(row["collectives"], row["recoverable_ns"]) for row in rows] == [(4, 180_000)] * is_late


@pytest.mark.parametrize(
    ("count", "duration_ns", "is_found"), [(16, 40_000, True), (15, 40_000, False), (16, 40_001, False)]
)
def test_many_small_reductions(count, duration_ns, is_found, run_rule):
    calls = [
        {"process_id": 1, "thread_id": 1, "call_group": "launch", "name_id": number % 2,
         "api_start_ns": 30_000 * number, "api_end_ns": 30_000 * number + 5_000}
        for number in range(16)
    ]  # fmt: skip
    rows = run_rule(
        "small-buckets", kernel_events=kernels(*[REDUCTION] * count, duration_ns=duration_ns), launches=calls,
        kernel_names=PRODUCTS_AND_COLLECTIVES, _steady_windows=WINDOWS, _step_totals=[TWO_STEPS],
        step_budget=[{"part": "communication", "time_ns": 2e6}],
    )  # fmt: skip
    assert [(row["collectives"], row["median_ns"]) for row in rows] == [(16, 40_000)] * is_found


COLUMNS = {
    "copy_kind": "D2H", "source_memory": "device", "target_memory": "pinned", "name": "cudaMemcpy2DAsync", "calls": 4,
    "total_ns": 30_000, "avg_bytes": 16_384, "bandwidth_bytes_per_s": 2.2e9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # A contiguous copy takes 2.5 us and its bytes at 20 GB/s: 3.3 us. A kernel takes 2 us.
        ({}, ("to_host", 30_000 - 4_500 - 4 * 819.2, 30_000 - 4 * 5_319.2)),
        ({"copy_kind": "H2D", "source_memory": "pinned", "target_memory": "device"}, ("to_gpu", 22_223.2, 8_723.2)),
        # Peers of 20 GB/s, and the memory of the GPU.
        ({"copy_kind": "P2P", "target_memory": "device"}, ("between", 22_223.2, 8_723.2)),
        ({"copy_kind": "D2D", "target_memory": "device", "total_ns": 24_000}, ("between", 19_472.7, 5_972.7)),
        ({"total_ns": 26_000}, None),
        ({"name": "cudaMemcpyAsync"}, None),
        ({"target_memory": "pageable"}, None),
        ({"copy_kind": "D2D", "avg_bytes": 1 << 20, "total_ns": 3e5}, None),
        ({"calls": 2, "total_ns": 15_000}, None),
    ],
)
def test_strided_copies(changes, expected, run_rule):
    rows = run_rule(
        "strided-copies", _steady_copies=[{**COLUMNS, **changes}], _pinned_rate=[{"bytes_per_s": 20e9}],
        memcpys=[{"copy_kind": "D2H", "size_bytes": 16_384, "duration_ns": 7_500}],
        gpus=[{"memory_bytes_per_s": 4.8e12}],
        step_budget=[{"part": "copy", "time_ns": 30_000}], _step_totals=[STEP],
    )  # fmt: skip
    numbers = [(row["recoverable_ns"], row["saving_low_ns"]) for row in rows]
    assert [row["cure_case"] for row in rows] == ([expected[0]] if expected else [])
    assert numbers == ([pytest.approx(expected[1:], abs=0.1)] if expected else [])


CLIPPINGS = [*[BF16] * 4, LIST_NORM, LIST_SCALING] * 2
ONE_CLIPPING = [*[BF16] * 8, LIST_NORM, LIST_SCALING]
NORM_KERNEL = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::NormTwoOps<float>>>(T3)"


@pytest.mark.parametrize(
    ("update", "optimizer", "expected"),
    [
        # Of 2 clippings of 20 us in each step, one is too many.
        (CLIPPINGS, FUSED_ADAM, (2, 1, 20_000)),
        (
            CLIPPINGS,
            LIST.format("", 4, "at::native::PointwiseOpListFunctor<float, (int)4>, std::divides"),
            (2, 1, 20_000),
        ),
        ([*[BF16] * 4, *[NORM_KERNEL] * 8] * 3, FUSED_ADAM, (3, None, 160_000)),
        (ONE_CLIPPING, FUSED_ADAM, None),
        # Groups of parameters, a norm for a log, norms of some layers, and no optimizer.
        ([*ONE_CLIPPING, LIST_NORM, LIST_SCALING], FUSED_ADAM, None),
        ([*ONE_CLIPPING, BF16, LIST_NORM, LIST_SCALING], FUSED_ADAM, None),
        ([*[BF16] * 4, LIST_NORM] * 2, FUSED_ADAM, None),
        ([*[BF16] * 4, *[NORM_KERNEL] * 7] * 2, FUSED_ADAM, None),
        ([*CLIPPINGS, *[BF16] * 4, LIST_NORM, LIST_NORM, LIST_SCALING], FUSED_ADAM, None),
        (CLIPPINGS, "scale(float *)", None),
    ],
)
def test_clippings(update, optimizer, expected, run_rule):
    """Four updates; what belongs to the first and the last may be cut off."""
    names = [*update, optimizer] * 4
    ids = {name: number for number, name in enumerate(dict.fromkeys(names))}
    constructs = {LIST_NORM: "norm of tensors", NORM_KERNEL: "norm of tensors", FUSED_ADAM: "fused Adam"}
    steps = {"start_ns": -1, "end_ns": len(names) * 20_000, "process_id": 1}
    rows = run_rule(
        "repeated-clipping",
        kernel_events=[
            {"process_id": 1, "device_id": 0, "start_ns": 20_000 * number, "duration_ns": 10_000, "name_id": ids[name]}
            for number, name in enumerate(names)
        ],
        kernel_names=[
            {"name_id": number, "name": name, "family": "gemm" if name == BF16 else "other"}
            for name, number in ids.items()
        ],
        kernel_constructs=[{"name_id": ids[name], "construct": constructs.get(name)} for name in ids],
        _steady_windows=[steps], _step_totals=[{**STEP, "units": 4}],
    )  # fmt: skip
    numbers = [(row["rounds"], row["scalings"], row["recoverable_ns"]) for row in rows]
    assert numbers == ([pytest.approx(expected)] if expected else [])


BACKWARD = "void softmax_warp_backward<float, float, float, 4, true, false>(int)"
FUSED = "void multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float>>(T1)"
ADAM, AVERAGE, SIGNS = ("mul", "lerp_scalar", "addcmul_cuda"), ("MulFunctor", "Functor_add"), ("MulFunctor", "sign")


@pytest.mark.parametrize(
    ("operations", "tensors", "different", "kernels", "expected"),
    [
        (ADAM, 8, 0, [], ("optimizer", 24)),
        (ADAM, 7, 0, [], None),
        # With a fused optimizer, it is another update.
        (ADAM, 8, 0, [FUSED], ("list", 24)),
        (AVERAGE, 8, 0, [BACKWARD, FUSED], ("list", 16)),
        # Any update of tensors of several sizes, in a program that trains.
        (SIGNS, 10, 2, [BACKWARD], ("list", 20)),
        (SIGNS, 10, 1, [BACKWARD], None),
        (SIGNS, 10, 2, [], None),
        (("MulFunctor", "reduce_kernel"), 10, 2, [BACKWARD], None),
    ],
)
def test_updates_of_one_tensor_at_a_time(operations, tensors, different, kernels, *, expected, run_rule):
    names = [
        {"name_id": number, "name": NATIVE.format(operation),
         "family": "reduction" if operation == "reduce_kernel" else "elementwise"}
        for number, operation in enumerate(operations)
    ]  # fmt: skip
    loop = {"loop": 1, "depth": 1, "iterations": 2 * tensors, "period_ns": 40_000}
    rows = run_rule(
        "optimizer-per-parameter", kernel_names=names, loops=[loop], step_method=[{"step_count": 2}],
        loop_operations=[{"loop": 1, "position": row["name_id"], "kind": "kernel", "name_id": row["name_id"]}
                         for row in names],
        loop_iterations=[{"loop": 1, "is_different": number < different} for number in range(2 * tensors)],
        _steady_shapes=[{"name": name} for name in ["none", *kernels]], _step_totals=[STEP],
    )  # fmt: skip
    assert [(row["cure_case"], row["kernels"]) for row in rows] == ([expected] if expected else [])


# What the replacements of the catalog of constructs need, as values of an operation of a step.
OPERATION = {
    "has_steps": True, "has_backward": False, "devices": 1, "framework": "pytorch", "steps_pct": 100, "step_ns": 1e6,
    "step_busy_pct": 90, "step_launches": 100, "in_graph_pct": 0, "idle_before_ns": 0, "sm_count": 132,
    "fp32_flop_per_s": 67e12, "half_flop_per_s": 990e12,
}  # fmt: skip
REPLACEMENTS = {
    replacement.title: replacement.when
    for entry in construct_catalog.read_constructs()
    for replacement in entry.replacement
}
# 67 million threads, for which 16 bytes each take 224 us.
OWN_KERNEL = {
    "provenance": "hand-written", "step_pct": 5, "static_shared_bytes": 0, "dynamic_shared_bytes": 0,
    "blocks_count": 262_144, "threads_per_block": 256, "waves_per_sm": 8, "memory_bytes_per_s": 4.8e12,
}  # fmt: skip
INDEX = (
    "void at::native::index_elementwise_kernel<(int)128, (int)4, void at::native::gpu_index_kernel<"
    "void at::native::index_kernel_impl<at::native::OpaqueType<(int)1>>(at::TensorIteratorBase &)>(int)>(long, T3)"
)
TRANSPOSED = (
    "void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<"
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda({})]>>(int, T3)"
)
MASK = "cupyx_scipy_ndimage_correlate_2d_reflect_w{}_{}"
KEYS = "void cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<cub::detail::radix::policy_hub<{}>>(T1)"
RADIX = (
    "void cub::detail::radix_sort::DeviceRadixSort{}Kernel<cub::detail::radix::policy_hub<{}, int>::Policy1000>(T4 *)"
)
OLD_RADIX = "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<{}, int>::Policy900, (bool)0>(T7 *)"
MERGED = "void cub::detail::merge_sort::DeviceMergeSort{}Kernel<Policy, Key *, unsigned int, Less, {}>(bool, T2, T3)"
SMALL_VALUES = [
    "int", "cub::NullType", "unsigned long long", "float2", "thrust::complex<float>", "double",
    "at::cuda::cub::detail::OpaqueType<(int)8>", "thrust::tuple<int, float, thrust::null_type>",
]  # fmt: skip
MERGE = "void cub::detail::merge_sort::DeviceMergeSort{}Kernel<cub::detail::merge_sort::policy_hub<float *>>(bool)"
PRODUCT = "16-bit matrix product"


@pytest.fixture(scope="module")
def is_met():
    """Give a function that returns whether an operation with these values meets the condition of a replacement."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE operation ({', '.join(construct_catalog.list_columns())})")

        def evaluate(title, values):
            texts = [f"{write_value(value)} AS {name}" for name, value in {**OPERATION, **values}.items()]
            connection.execute("DELETE FROM operation")
            connection.execute(f"INSERT INTO operation BY NAME SELECT {', '.join(texts)}")
            return connection.sql(f"SELECT coalesce(({REPLACEMENTS[title]})::BOOLEAN, false) FROM operation").fetchone()

        yield lambda title, values: evaluate(title, values)[0]


def write_value(value):
    """Write a value as SQL: a number per construct as a map, names as a list."""
    if isinstance(value, dict):
        return f"MAP {{{', '.join(f'{literal(name)}: {number}' for name, number in value.items())}}}"
    return f"[{', '.join(map(literal, value))}]" if isinstance(value, list) else literal(value)


@pytest.mark.parametrize(
    ("title", "values", "misses"),
    [
        (
            "Small systems are factorized and solved one after another",
            {"calls": 8, "blocks_count": 131, "avg_ns": 60_000},
            [{"calls": 7}, {"blocks_count": 132}, {"avg_ns": 500_000}],
        ),
        (
            "Buffers are cleared one by one",
            {"calls": 8, "construct_calls": 8, "size_bytes": 4096, "before": "memset", "after": "memset"},
            [
                {"calls": 4},
                {"size_bytes": 4 << 20},
                {"before": "scale", "after": "scale"},
                {"constructs": ["LU factorization", "memset"], "counts": {"LU factorization": 2, "memset": 8}},
                {"constructs": ["memset", "top-k selection"], "counts": {"memset": 8, "top-k selection": 60}},
                {"in_graph_pct": 50},
            ],
        ),
        (
            # The shape of summit's memsets.
            "Large arrays are cleared in each step",
            {"calls": 4, "size_bytes": 256 << 20, "avg_ns": 59_560, "construct_pct": 27, "constructs": ["memset"]},
            [
                {"calls": 0.5},
                {"size_bytes": 1 << 19},
                {"avg_ns": 2_999},
                {"construct_pct": 7.9},
                {"has_steps": False},
                {"has_backward": True},
                {"constructs": ["memset", "radix sort"], "counts": {"memset": 4, "radix sort": 4}},
            ],
        ),
        (
            "Large tensors are filled in each step",
            {"calls": 1, "avg_ns": 60_000, "construct_pct": 8, "constructs": ["fill of a tensor"]},
            [
                {"calls": 0.5},
                {"avg_ns": 9_999},
                {"construct_pct": 7.9},
                {"has_steps": False},
                {"has_backward": True},
                {"constructs": ["addition of rows by index", "fill of a tensor"]},
            ],
        ),
        (
            "Eigenvalues of many small matrices come from an iteration",
            {"calls": 8, "blocks_count": 32_768, "construct_pct": 65},
            [{"blocks_count": 1_055}, {"construct_pct": 4.9}, {"has_steps": False}],
        ),
        (
            "Elements are picked one by one",
            {
                "calls": 1, "avg_ns": 628_000, "step_pct": 69, "blocks_count": 131_072, "name": INDEX,
                "memory_bytes_per_s": 4.8e12,
            },
            [
                # Neighbors in order: the arithmetic takes the time.
                {"avg_ns": 440_000},
                {"name": INDEX.replace("(int)1>", "(int)8>")},
                {"avg_ns": 49_999},
                {"step_pct": 9.9},
                {"blocks_count": 8_191},
                {"has_steps": False},
                {"name": INDEX.replace("gpu_index_kernel", "index_put_kernel_impl")},
                {"name": "void at::native::vectorized_gather_kernel<(int)16, long>(char *)"},
            ],
        ),
        (
            "An array is filtered for its splines before each interpolation",
            {
                "calls": 7, "avg_ns": 64_000, "construct_pct": 25,
                "counts": {"interpolation by CuPy": 7, "spline filter by CuPy": 21},
            },
            [
                {"calls": 1, "avg_ns": 19_999},
                {"construct_pct": 2.9},
                {"counts": {"spline filter by CuPy": 21}},
                {"has_steps": False},
            ],
        ),
        (
            "Large arrays are filled with random numbers, which a later kernel reads",
            {
                "name": "void gen_sequenced<curandStateXORWOW>(T1 *)", "avg_ns": 764_000, "construct_pct": 72,
                "after": "drift",
            },
            [
                {"avg_ns": 9_999},
                {"construct_pct": 4.9},
                {"after": "radix sort by CUB"},
                {"after": "D2H copy"},
                {"after": "FP64 matrix product"},
                {"has_steps": False},
                {"name": "void generate_sobol32<float>(T1 *)"},
            ],
        ),
        (
            "Large tensors are filled with random numbers, which a later operation reads",
            {"avg_ns": 764_000, "construct_pct": 72, "after": "PyTorch elementwise operation"},
            [
                {"avg_ns": 19_999},
                {"construct_pct": 9.9},
                {"after": "radix sort"},
                {"has_steps": False},
                {"framework": "cupy"},
            ],
        ),
        *(
            (
                "Arrays are shifted around Fourier transforms, by copies of their parts",
                {
                    "name": "cupy_copy__complex64_complex64", "calls": 96, "avg_ns": 21_900, "step_pct": 33,
                    "after": "CuPy copy", "counts": {transform: 24, "CuPy copy": 96},
                },
                [
                    {"name": "cupy_copy__float32_complex64"},
                    {"calls": 47},
                    {"after": "Fourier transform"},
                    {"counts": {"CuPy copy": 96}},
                    {"step_pct": 2.9},
                    {"steps_pct": 49},
                    {"has_steps": False},
                ],
            )
            for transform in ("Fourier transform", "Fourier transform of real data")
        ),
        (
            "Large arrays are copied without a change of their type",
            {"name": "cupy_copy__float32_float32", "avg_ns": 50_000, "step_pct": 20},
            [
                {"name": "cupy_copy__float32_float64"},
                {"name": "cupy_fill"},
                # A transform of several dimensions back to real data overwrites its input: CuPy copies it.
                {"after": "Fourier transform"},
                {"avg_ns": 9_999},
                {"step_pct": 4.9},
                {"has_steps": False},
            ],
        ),
        (
            "Large arrays are converted to another type in each step",
            {"name": "cupy_copy__float32_float64", "avg_ns": 50_000, "step_pct": 20},
            [
                {"name": "cupy_copy__float64_float64"},
                {"name": "cupy_arange"},
                {"avg_ns": 9_999},
                {"step_pct": 4.9},
                {"has_steps": False},
            ],
        ),
        (
            "Inverse Fourier transforms are scaled by an operation of their own",
            {
                "name": "cupy_true_divide__complex64_complex_complex64", "avg_ns": 81_000, "step_pct": 8,
                "before": "Fourier transform",
            },
            [
                {"name": "cupy_true_divide__complex64_complex64_complex64"},
                {"name": "cupy_multiply__complex64_complex_complex64"},
                {"before": "CuPy copy"},
                {"avg_ns": 4_999},
                {"step_pct": 1.9},
                {"step_busy_pct": 49},
                {"has_steps": False},
            ],
        ),
        (
            "Elements are selected by masks, whose size the host must know",
            {"construct_calls": 2},
            [{"construct_calls": 1.9}, {"in_graph_pct": 50}, {"has_steps": False}],
        ),
        (
            "Arrays are shifted by a kernel around Fourier transforms",
            {"construct_pct": 2, "counts": {"Fourier transform": 2}},
            [{"construct_pct": 1.9}, {"counts": {"CuPy copy": 2}}, {"has_steps": False}],
        ),
        (
            "Tensors are shifted around Fourier transforms",
            {
                "construct_pct": 10, "construct_calls": 8, "before": "Fourier transform",
                "counts": {"Fourier transform": 8},
            },
            [
                {"before": "PyTorch elementwise operation"},
                {"construct_calls": 3},
                {"construct_pct": 1.9},
                {"has_steps": False},
            ],
        ),
        (
            "Neighbors on a grid are read from rolled copies",
            {"construct_pct": 30, "construct_calls": 4, "avg_ns": 50_000, "constructs": ["roll of a tensor"]},
            [
                {"construct_calls": 3},
                {"construct_pct": 4.9},
                {"avg_ns": 4_999},
                {"has_backward": True},
                {"has_steps": False},
                # The shifted windows of a vision model.
                {"constructs": ["roll of a tensor", PRODUCT]},
                {"constructs": ["Fourier transform", "roll of a tensor"]},
            ],
        ),
        (
            "Small pieces are copied within or between GPUs one after another",
            {"devices": 2, "calls": 8, "after": "other copy"},
            [{"devices": 1}, {"calls": 7}, {"after": "exchange(float *)"}, {"in_graph_pct": 50}],
        ),
        (
            "Matrices are transposed before they are multiplied",
            {"construct_pct": 5, "avg_ns": 20_000, "after": "TF32 matrix product"},
            [{"construct_pct": 1.9}, {"avg_ns": 1_999}, {"after": "scale(float *)"}, {"has_steps": False}],
        ),
        (
            "A matrix is transposed by a kernel before it is multiplied",
            {"step_pct": 5, "avg_ns": 20_000, "after": "FP64 matrix product"},
            [
                {"step_pct": 1.9},
                {"avg_ns": 4_999},
                {"after": "scale(float *)"},
                {"steps_pct": 49},
                {"has_steps": False},
            ],
        ),
        *(
            (
                "Records are moved in each pass of a radix sort",
                {"name": name.format(f"unsigned int, {value}"), "calls": 4, "avg_ns": 877_000, "construct_pct": 88},
                [
                    *({"name": name.format(f"unsigned int, {small}")} for small in SMALL_VALUES),
                    {"name": RADIX.format("Histogram", "unsigned int, Record")},
                    {"calls": 1},
                    {"avg_ns": 9_999},
                    {"construct_pct": 4.9},
                ],
            )
            for name, value in (
                (RADIX.format("Onesweep", "{}"), "Record"),
                (RADIX.format("Downsweep", "{}"), "float4"),
                (RADIX.format("Onesweep", "{}"), "cuda::std::__4::tuple<unsigned int, float4>"),
                (RADIX.format("Onesweep", "{}"), "thrust::pair<int, Record>"),
                (OLD_RADIX, "Record"),
            )
        ),
        *(
            (
                "Records are moved in each pass of a merge sort",
                {"name": MERGED.format(kernel, types), "construct_pct": 60, "construct_ns": 600_000},
                [
                    *({"name": MERGED.format(kernel, f"int, {small}")} for small in SMALL_VALUES),
                    {"name": MERGED.format("Partition", "int")},
                    {"name": MERGED.format("Merge", "long, cub::NullType, cub::detail::VSMemHelper")},
                    # CuPy sorts the rows of an array by pairs of a row and an element.
                    {"name": MERGED.format("Merge", "cuda::std::tuple<unsigned long, float>, cub::NullType")},
                    {"name": "void at::native::searchsorted_cuda_kernel<float, long>(T2 *, const T1 *)"},
                    {"construct_pct": 4.9},
                    {"construct_ns": 49_999},
                    {"step_busy_pct": 49},
                ],
            )
            for kernel, types in (
                ("BlockSort", "Record, cub::NullType"), ("Merge", "int, Record"), ("Partition", "Record"),
                ("Merge", "int, Record, cub::detail::VSMemHelper"),
            )
        ),
        (
            # The shape of auditor's sorts; two sorts are one by two keys.
            "Arrays of one size are sorted again and again in a step",
            {
                "name": MERGE.format("BlockSort"), "calls": 3, "construct_ns": 600_000, "construct_pct": 60,
                "step_busy_pct": 95,
            },
            [
                {"calls": 2},
                {"name": MERGE.format("Merge")},
                {"construct_ns": 149_999},
                {"construct_pct": 47},
                {"has_steps": False},
            ],
        ),
        (
            "Arrays of one size are sorted several times in a step",
            {
                "name": KEYS.format("float").replace("Onesweep", "Histogram"), "framework": "cupy", "calls": 3,
                "construct_ns": 150_000, "construct_pct": 60, "step_busy_pct": 95,
            },
            [
                {"name": KEYS.format("float")},
                {"calls": 2},
                {"construct_ns": 149_999},
                {"construct_pct": 47},
                {"framework": "pytorch"},
            ],
        ),
        (
            "Numbers are sorted by comparisons",
            {
                "name": MERGE.format("Merge"), "construct_pct": 5, "step_busy_pct": 75,
                "counts": {"merge sort or sorted search": 20},
            },
            [
                {"name": MERGE.format("Merge").replace("float", "tuple<unsigned long, float>")},
                {"counts": {"merge sort or sorted search": 20, "conversion of a sparse matrix": 2}},
            ],
        ),
        (
            "The result of a reduction is read back to the host",
            {
                "calls": 60, "read_back_pct": 100, "read_back_bytes": 4, "idle_before_ns": 1,
                "counts": {"reduction by CUB": 60},
            },
            # What nonzero counts is the size of its result.
            [{"counts": {"reduction by CUB": 60, "selection by CUB": 120}}, {"read_back_bytes": 65}, {"calls": 3}],
        ),
        (
            "Elements are selected into arrays whose size the host must know",
            {"calls": 2, "before": "D2H copy", "read_back_pct": 0, "idle_before_ns": 1},
            [
                {"before": "selection by CUB"}, {"framework": "cuda"}, {"calls": 1},
                {"counts": {"addition of rows by index": 1}},
            ],
        ),
        (
            "Scores of all words are gathered before the loss",
            {
                "name": "ncclDevKernel_AllGather_RING_LL(int)", "calls": 1, "avg_ns": 2_000_000,
                "construct_ns": 2_000_000, "has_backward": True,
                "counts": {"log-softmax": 2, "PyTorch concatenation": 1},
                "times": {"log-softmax": 4_000_000, "PyTorch concatenation": 500_000},
            },
            [
                # Sharded parameters; a gathered batch, which is small next to the scores; no loss; inference.
                {"counts": {"log-softmax": 2, "PyTorch concatenation": 1, "NCCL reduce-scatter": 1}},
                {"times": {"log-softmax": 4_000_000, "PyTorch concatenation": 50_000}},
                {"counts": {"PyTorch concatenation": 1}},
                {"has_backward": False},
                {"calls": 4},
            ],
        ),
        (
            "Overlapping boxes are suppressed in many small calls",
            {
                "name": "void vision::ops::<unnamed>::nms_kernel_impl<float>(int)", "calls": 2, "construct_calls": 4,
                "avg_ns": 9_000,
            },
            [
                {"name": "vision::ops::<unnamed>::gather_keep_from_mask(bool *)"},
                {"construct_calls": 2},
                {"avg_ns": 200_000},
            ],
        ),
        (
            # Beam search: the selections of one word need nothing of each other.
            "Top-k selections are read back one after another",
            {
                "name": "void at::native::mbtopk::fill<unsigned int, unsigned int>(T1 *, T1, T2)", "calls": 8,
                "constructs": [PRODUCT], "counts": {"read-back of a scalar": 16, PRODUCT: 13},
            },
            [
                {"calls": 7},
                {"name": "void at::native::mbtopk::computeDigitCumSum<unsigned int>(T1)"},
                {"counts": {"read-back of a scalar": 7, PRODUCT: 13}},
                # A token each, and a router of experts in each layer.
                {"counts": {"read-back of a scalar": 16, PRODUCT: 16}},
                {"has_backward": True},
                {"has_steps": False},
            ],
        ),
        (
            "Packed weights are unpacked again in each step",
            {
                "calls": 8, "avg_ns": 2_000, "construct_calls": 64, "construct_ns": 50_000, "constructs": [PRODUCT],
                "counts": {PRODUCT: 32}, "times": {"PyTorch copy or cast": 50_000},
            },
            [
                {"avg_ns": 1_999},
                {"counts": {PRODUCT: 12}},
                {"constructs": [], "counts": {}},
                {"times": {"PyTorch copy or cast": 49_999}},
                {"has_backward": True},
                {"has_steps": False},
            ],
        ),
        (
            "Keys and values are copied before each attention call",
            {
                "calls": 8, "avg_ns": 20_000, "total_ns": 160_000, "after": "fused attention",
                "counts": {"fused attention": 4}, "times": {"fused attention": 320_000},
            },
            [
                {"calls": 9},
                {"calls": 3},
                {"avg_ns": 19_999},
                {"total_ns": 159_999},
                {"has_backward": True},
                {"after": "softmax"},
                {"counts": {"softmax": 4}},
            ],
        ),
        (
            "Tokens are decoded eagerly with a cache that grows",
            {
                "calls": 2, "shapes": 8, "steps_pct": 10, "construct_calls": 16, "step_busy_pct": 40,
                "counts": {"fused attention": 16},
            },
            [
                {"shapes": 7},
                {"steps_pct": 50},
                {"construct_calls": 15},
                {"step_busy_pct": 50},
                {"step_launches": 49},
                {"has_backward": True},
                {"in_graph_pct": 50},
            ],
        ),
        (
            "Batch normalization computes statistics, although nothing is trained",
            {
                "name": "void at::native::batch_norm_collect_statistics_kernel<float>(int)", "calls": 8,
                "construct_calls": 16, "construct_pct": 1, "constructs": [PRODUCT],
                "counts": {"elementwise addition to integers": 7},
            },
            [
                {"has_backward": True},
                {"constructs": ["fused SGD"]},
                {"counts": {"elementwise addition to integers": 6}},
                {"counts": {}},  # instance normalization
                {"name": "void at::native::batch_norm_update_stats(int)"},
                {"construct_pct": 0.9},
            ],
        ),
        (
            "Dropout runs, although nothing is trained",
            {"name": "fused_dropout_kernel_vec<float>(int)", "calls": 2, "constructs": [PRODUCT]},
            [{"has_backward": True}, {"calls": 1}, {"constructs": ["fused Adam"]}, {"name": "masked_scale(int)"}],
        ),
        (
            "A normalization is written out as mean, variance and elementwise operations",
            {
                "construct_calls": 4, "avg_ns": 5_000, "construct_pct": 0.5, "step_busy_pct": 50,
                "counts": {"PyTorch mean": 4, "PyTorch elementwise operation": 12},
            },
            [
                {"construct_calls": 3},
                {"avg_ns": 4_999},
                {"construct_pct": 0.4},
                {"step_busy_pct": 49},
                {"counts": {"PyTorch mean": 3, "PyTorch elementwise operation": 12}},
                {"counts": {"PyTorch mean": 9, "PyTorch elementwise operation": 12}},
                {"counts": {"PyTorch mean": 4, "PyTorch elementwise operation": 11}},
            ],
        ),
        (
            "Tables of sines and cosines are computed again for each layer",
            {"construct_calls": 22, "shapes": 2, "counts": {"fused attention": 12}},
            [
                {"construct_calls": 21},
                {"counts": {"fused attention": 1}},
                {"counts": {}},  # Fourier features of positions
                {"shapes": 5},
                {"in_graph_pct": 50},
                {"has_steps": False},
            ],
        ),
        (
            "Tensors are transposed between convolutions and normalizations of layers",
            {
                "name": "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<copy>>(int)",
                "avg_ns": 20_000, "construct_pct": 5, "step_busy_pct": 60, "calls": 12,
                "counts": {"layer normalization": 6}, "constructs": ["depthwise or grouped convolution"],
            },
            [
                {"name": "void at::native::vectorized_elementwise_kernel<4, copy>(int)"},  # a cast
                {"avg_ns": 19_999},
                {"construct_pct": 4.9},
                {"step_busy_pct": 59},
                {"calls": 2},
                {"counts": {"layer normalization": 6, "fused attention": 6}},
                {"counts": {"layer normalization": 1}},
                {"constructs": [PRODUCT]},
            ],
        ),
        (
            # The shape of sundial's copies: 33.6 million numbers of two bytes.
            "Tensors are transposed by copies beside a kernel of the program",
            {
                "name": TRANSPOSED.format("c10::BFloat16"), "avg_ns": 218_000, "step_pct": 42, "blocks_count": 65_536,
                "threads_per_block": 128, "memory_bytes_per_s": 4.8e12, "constructs": [PRODUCT, "activation function"],
                "families": ["gemm", "activation"], "before": PRODUCT, "after": "taps",
            },
            [
                {"name": TRANSPOSED.format("float").replace("nocast", "cast")},
                {"name": TRANSPOSED.format("float"), "avg_ns": 180_000},  # at a third of the bandwidth
                {"avg_ns": 90_000},
                {"avg_ns": 19_999, "blocks_count": 4_096},
                {"step_pct": 2.9},
                {"has_steps": False},
                {"after": "activation function"},
                {"after": "activation"},
                {"after": "D2H copy"},
                {"after": "memset"},
                {"after": "triton_poi_fusion_3"},
            ],
        ),
        (
            "Arrays are transposed by copies beside a kernel of the program",
            {
                "name": "input_transpose_fusion_1", "avg_ns": 20_000, "step_pct": 3, "constructs": [PRODUCT],
                "families": ["gemm"], "before": "taps", "after": PRODUCT,
            },
            [
                {"name": "input_concatenate_fusion_1"},
                {"avg_ns": 19_999},
                {"step_pct": 2.9},
                {"has_steps": False},
                {"before": "gemm"},
                {"before": "loop_fusion"},
            ],
        ),
        (
            "Whole caches of keys and values are gathered in each step",
            {
                "avg_ns": 20_000, "calls": 16, "total_ns": 320_000, "before": "gather of rows", "after": "memset",
                "counts": {"fused attention": 8}, "times": {"fused attention": 640_000},
                "constructs": ["fused attention", "gather of rows", "top-k selection"],
            },
            [
                {"has_steps": False},
                {"has_backward": True},
                {"avg_ns": 19_999},
                {"before": "fill of a tensor"},
                {"counts": {"fused attention": 12}},
                {"counts": {}},
                {"times": {"fused attention": 640_001}},
                {"constructs": ["fused attention", "gather of rows"]},
            ],
        ),
        (
            "Whole arrays are copied in each iteration of a compiled loop",
            {
                "framework": "jax", "size_bytes": 1 << 20, "bytes_per_s": 4.8e11, "memory_bytes_per_s": 4.8e12,
                "construct_pct": 5, "calls": 8,
            },
            [
                {"framework": "pytorch"},
                {"calls": 7},
                {"size_bytes": 1_000_000},
                {"construct_pct": 4.9},
                {"bytes_per_s": 4.7e11},
                {"devices": 2},
                {"has_steps": False},
            ],
        ),
        (
            "The optimizer runs as a sequence of operations over all tensors",
            {
                "name": LIST.format("", 4, "at::native::PointwiseOpScalarListFunctor<float>"), "has_backward": True,
                "construct_pct": 3, "construct_calls": 6, "step_busy_pct": 75, "counts": {},
            },
            [
                {"name": LIST_SCALING},  # the gradients are clipped
                {"has_backward": False},
                {"construct_calls": 5},
                {"construct_pct": 2.9},
                {"step_busy_pct": 74},
                {"counts": {"fused Adam": 1}},
            ],
        ),
        (
            "Depthwise convolutions run in PyTorch's kernel for any filter",
            {
                "name": "void at::native::<unnamed>::conv_depthwise2d_forward_kernel_generic<float, int>(T1)",
                "avg_ns": 500_000, "construct_pct": 10, "step_busy_pct": 50,
            },
            [
                {"name": "void at::native::<unnamed>::conv_depthwise2d_forward_kernel<5, float, int>(T1)"},
                {"avg_ns": 499_999},
                {"construct_pct": 9.9},
                {"step_busy_pct": 49},
            ],
        ),
        (
            "The softmax of a few long rows runs in one block for each row",
            {
                "name": "void cunn_SoftMaxForward<4, float>(int)", "blocks_count": 32, "avg_ns": 30_000,
                "construct_pct": 2, "step_busy_pct": 50,
            },
            [
                {"name": "void softmax_warp_forward<float>(int)"},
                {"blocks_count": 33},
                {"avg_ns": 29_999},
                {"construct_pct": 1.9},
                {"step_busy_pct": 49},
            ],
        ),
        (
            "The prefix sums of a few long rows run in one block for each row, or fewer",
            {
                "name": "void at::native::tensor_kernel_scan_innermost_dim<float>(int)", "blocks_count": 32,
                "avg_ns": 30_000, "step_pct": 2, "step_busy_pct": 50,
            },
            [
                {"name": "void at_cuda_detail::cub::DeviceScanKernel<int>(T1)"},
                {"blocks_count": 33},
                {"avg_ns": 29_999},
                {"step_pct": 1.9},
                {"step_busy_pct": 49},
            ],
        ),
        (
            "Rows are added up by index with atomic operations",
            {"avg_ns": 100_000, "step_pct": 10, "step_busy_pct": 50, "counts": {PRODUCT: 1}},
            [
                {"avg_ns": 99_999},
                {"step_pct": 9.9},
                {"step_busy_pct": 49},
                {"has_backward": True},
                {"counts": {"gather of rows": 1}},
                {"counts": {"indexing": 1}},
                {"counts": {"top-k selection": 1}},
            ],
        ),
        *(
            (
                f"Small {noun} or batches are trained one after another in a step",
                {
                    "name": f"void at::native::{name}_forward<float>(int)", "calls": 4, "avg_ns": 9_999,
                    "has_backward": True, "step_busy_pct": 49, "before": "TF32 matrix product", "constructs": [PRODUCT],
                    "counts": {PRODUCT: 12},
                },
                [
                    {"calls": 3},
                    {"avg_ns": 10_000},
                    {"has_backward": False},
                    {"name": f"void at::native::{name}_backward<float>(int)"},
                    {"step_busy_pct": 50},
                    {"before": "PyTorch concatenation"},  # levels of a detector
                    {"counts": {PRODUCT: 11}},
                    # Each has an update of its own.
                    {"constructs": [PRODUCT, "fused Adam"], "counts": {PRODUCT: 12, "fused Adam": 4}},
                ],
            )
            for noun, name in (("networks", "mse_kernel"), ("classifiers", "softmax_warp"))
        ),
        (
            "Counts are taken by a function that reads values back to the host",
            {"name": "void at::cuda::kernelHistogram1D<long>(int)", "before": "D2H copy", "idle_before_ns": 20_000},
            [{"before": "memset"}, {"name": "histogram(int *)"}, {"idle_before_ns": 0}, {"in_graph_pct": 50}],
        ),
        (
            "Elements are repeated by counts, whose sum the host reads back",
            {"before": "D2H copy", "idle_before_ns": 20_000},
            [{"before": "prefix sum"}, {"idle_before_ns": 0}, {"has_steps": False}],
        ),
        (
            "Logits of all positions are converted, and few of them are used",
            {
                "avg_ns": 100_000, "total_ns": 100_000, "step_pct": 1, "before": PRODUCT, "after": "softmax",
                "times": {"softmax": 20_000},
            },
            [
                {"avg_ns": 99_999},
                {"step_pct": 0.9},
                {"before": "fused attention"},
                {"after": "PyTorch elementwise operation"},
                {"times": {"softmax": 20_001}},  # all of them
                {"has_backward": True},
                {"has_steps": False},
            ],
        ),
        (
            "The whole vocabulary is sorted to sample from it",
            {"construct_pct": 5, "counts": {"prefix sum": 1, "softmax": 1, "random numbers": 1}},
            [
                {"construct_pct": 4.9},
                {"counts": {"softmax": 1, "random numbers": 1}},
                {"counts": {"prefix sum": 1, "softmax": 1}},
                {"has_backward": True},
            ],
        ),
        (
            "Real data are transformed as complex numbers",
            {"after": "Fourier transform", "avg_ns": 10_000, "step_busy_pct": 50, "counts": {"Fourier transform": 4}},
            [
                {"after": "PyTorch elementwise operation"},
                {"avg_ns": 9_999},
                {"step_busy_pct": 49},
                {"counts": {"Fourier transform": 4, "Fourier transform of real data": 2}},
            ],
        ),
        (
            "Attention runs in FP32, matrix products in a smaller type",
            {
                "name": "fmha_cutlassF_f32_aligned_64x64_rf_sm80(int)", "construct_pct": 5, "step_busy_pct": 50,
                "counts": {PRODUCT: 5, "TF32 matrix product": 4},
            },
            [
                {"name": "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(int)"},
                {"construct_pct": 4.9},
                {"step_busy_pct": 49},
                # A program in FP32 may need it.
                {"counts": {PRODUCT: 5, "TF32 matrix product": 5}},
                {"counts": {PRODUCT: 5, "FP32 matrix product without tensor cores": 5}},
            ],
        ),
        (
            "Metrics are reduced over the ranks and read back one by one",
            {"calls": 2, "read_back_pct": 50, "read_back_bytes": 64, "blocks_count": 4},
            [{"calls": 1}, {"read_back_pct": 49}, {"read_back_bytes": 1 << 20}, {"blocks_count": 5}],
        ),
        (
            "A sparse matrix is sorted and its equal entries are added in each step",
            {"calls": 1, "construct_pct": 1},
            [{"calls": 0.5}, {"construct_pct": 0.9}, {"has_steps": False}],
        ),
        (
            "A permutation of many elements is drawn in each step",
            {"calls": 1, "times": {"radix sort": 30_000}},
            [{"calls": 0.5}, {"times": {"radix sort": 29_999}}, {"times": {"softmax": 1}}],
        ),
        (
            "A causal mask is made and handed to fused attention",
            {"calls": 1, "counts": {"fused attention": 1}},
            [{"calls": 0.5}, {"counts": {"softmax": 1}}],
        ),
        (
            "The optimizer updates all rows of an embedding table",
            {"name": "sum_and_scatter", "times": {"fused Adam": 470_000, "fill of a tensor": 30_000}},
            [
                {"times": {"fused Adam": 469_999, "fill of a tensor": 30_000}},
                {"times": {"fused Adam": 900_000, "fill of a tensor": 29_999}},
                {"name": "compute_grad_weight"},
            ],
        ),
        (
            "Matrix-vector products of one size run one after another",
            {
                "calls": 48, "avg_ns": 10_000, "before": "matrix-vector product", "after": "matrix-vector product",
                "shapes": 1, "construct_calls": 48, "step_pct": 60,
            },
            [
                {"before": "norm"},
                {"after": "norm"},
                {"shapes": 2},
                {"step_pct": 59},
                {"avg_ns": 9_999},
                {"calls": 7},
                {"idle_before_ns": 48 * 50_001},
            ],
        ),
        (
            "Huge arrays are computed, and reduced by an operation of their own",
            {
                "calls": 2, "avg_ns": 200_000, "step_pct": 10, "before": "PyTorch reduction", "total_ns": 400_000,
                "after": "PyTorch reduction", "times": {"PyTorch elementwise operation": 120_000},
            },
            [
                {"calls": 1},
                {"avg_ns": 199_999},
                {"step_pct": 9.9},
                {"after": "softmax"},
                {"times": {"PyTorch elementwise operation": 119_999}},
            ],
        ),
        (
            "Experts run one after another, and the rows of each are searched",
            {
                "calls": 8, "before": "reduction by CUB", "after": "selection by CUB", "step_busy_pct": 60,
                "counts": {"gather of rows": 4, "addition of rows by index": 4}, "constructs": [PRODUCT],
            },
            [
                {"constructs": ["softmax"]},
                {"before": "softmax"},
                {"after": "softmax"},
                {"step_busy_pct": 70},
                {"counts": {"gather of rows": 3, "addition of rows by index": 4}},
                {"counts": {"gather of rows": 4, "addition of rows by index": 3}},
                {"has_backward": True},
            ],
        ),
        (
            "A large window is applied in two dimensions at once",
            {"step_pct": 3, "name": MASK.format(7, 7)},
            [{"step_pct": 2.9}, *({"name": MASK.format(*size)} for size in ((41, 1), (1, 41), (6, 7), (7, 6)))],
        ),
        (
            "Integer keys are sorted by all of their bits, or by many",
            {
                "framework": "cuda", "calls": 4, "avg_ns": 10_000, "construct_pct": 10,
                "name": KEYS.format("unsigned int, unsigned int"),
            },
            # 2 passes are 16 bits at most; floating-point keys use all of their bits.
            [{"calls": 2}, {"name": KEYS.format("float, int")}, {"framework": "pytorch"}, {"construct_pct": 9.9}],
        ),
        (
            "Convolutions run in FP32 without tensor cores",
            {"avg_ns": 20_000, "step_busy_pct": 75},
            [{"avg_ns": 19_999}, {"step_busy_pct": 74}, {"half_flop_per_s": 260e12}],
        ),
        (
            "Large tensors are joined, which copies all of them",
            {"calls": 4, "avg_ns": 20_000, "construct_pct": 10},
            [
                {"avg_ns": 19_999},
                {"construct_pct": 9.9},
                {"counts": {"bits taken out of packed integers": 2}},
                {"has_backward": True},
                {"has_steps": False},
            ],
        ),
        (
            # Small tensors are, for example, the halves of a rotary embedding.
            "Tensors are joined before each attention call, which copies all of them",
            {
                "construct_calls": 8, "avg_ns": 20_000, "construct_pct": 5, "after": "fused attention",
                "counts": {"fused attention": 4},
            },
            [
                {"avg_ns": 19_999},
                {"construct_pct": 4.9},
                {"construct_calls": 9},
                {"after": "softmax"},
                {"has_backward": True},
                {"has_steps": False},
            ],
        ),
        (
            "Rows are gathered before layers that may treat each row by itself",
            {
                "calls": 4, "construct_calls": 4, "avg_ns": 20_000, "total_ns": 80_000, "step_pct": 10,
                "after": PRODUCT, "constructs": [PRODUCT], "times": {PRODUCT: 16_000},
                "counts": {"activation function": 4, "PyTorch reduction": 4},
            },
            # An embedding; a gather and no layer after it; the tokens of experts; training.
            [
                {"avg_ns": 19_999},
                {"step_pct": 9.9},
                {"after": "PyTorch reduction"},
                {"counts": {"activation function": 3, "PyTorch reduction": 4}},
                {"counts": {"activation function": 4, "PyTorch reduction": 3}},
                {"times": {PRODUCT: 15_999}},
                {"constructs": [PRODUCT, "top-k selection"]},
                {"has_backward": True},
                {"has_steps": False},
            ],
        ),
        (
            "Weights are normalized again in each step, without training",
            {"construct_calls": 2, "constructs": ["weight normalization"]},
            [
                {"construct_calls": 1},
                {"constructs": ["weight normalization", "gradient of weight normalization"]},
                {"constructs": ["weight normalization", "operation over a list of tensors"]},
                {"has_steps": False},
            ],
        ),
        (
            "Buffers are broadcast in each step",
            {"calls": 1, "has_backward": True, "steps_pct": 80, "counts": {"NCCL all-reduce": 1}},
            # In inference, a broadcast sends what one rank has drawn.
            [{"has_backward": False}, {"calls": 9}, {"steps_pct": 79}, {"counts": {"softmax": 1}}],
        ),
        (
            "A huge array is computed by an expression, and only its sums are used",
            {"avg_ns": 1_000_000, "construct_pct": 30, "construct_ns": 2e6, "times": {"CuPy reduction": 100_000}},
            [{"avg_ns": 999_999}, {"construct_pct": 29}, {"times": {"CuPy reduction": 99_000}}],
        ),
        # Kernels of a program's own, by their names, where the shape or the number of launches is that of the slow way.
        (
            "A matrix product runs in a simple kernel of the program's own",
            {**OWN_KERNEL, "registers_per_thread": 64, "avg_ns": 20_000},
            [{"registers_per_thread": 65}, {"avg_ns": 19_999}, {"step_pct": 4.9}, {"provenance": "CUTLASS"}],
        ),
        (
            "A matrix is transposed without shared memory",
            {**OWN_KERNEL, "avg_ns": 560_000},
            [{"avg_ns": 559_000}, {"static_shared_bytes": 4_224}, {"waves_per_sm": 1.9}, {"provenance": "cuBLAS"}],
        ),
        (
            "An array is summed by adding each element to one place",
            {**OWN_KERNEL, "registers_per_thread": 32, "avg_ns": 2_240_000},
            # Threads that read 16 bytes or less take as long as the memory; blocks that sum first use shared memory.
            [{"avg_ns": 2_230_000}, {"static_shared_bytes": 32}, {"waves_per_sm": 7}, {"registers_per_thread": 33}],
        ),
        (
            "An array is summed in many launches, level by level",
            {**OWN_KERNEL, "construct_calls": 8, "shapes": 4, "construct_pct": 5},
            [{"construct_calls": 7}, {"shapes": 3}, {"construct_pct": 4.9}, {"provenance": "PyTorch"}],
        ),
        (
            "A histogram is counted in the GPU's memory, without counters in each block",
            {**OWN_KERNEL, "registers_per_thread": 32, "avg_ns": 1_120_000},
            [{"avg_ns": 1_118_000}, {"dynamic_shared_bytes": 1_024}, {"waves_per_sm": 1.9}, {"step_pct": 4.9}],
        ),
        (
            "Numbers are sorted by kernels of the program's own, in many launches",
            {**OWN_KERNEL, "construct_calls": 8, "construct_pct": 5},
            [{"construct_calls": 7}, {"construct_pct": 4.9}, {"provenance": "PyTorch"}],
        ),
        (
            "A prefix sum runs in many launches, level by level",
            {**OWN_KERNEL, "construct_calls": 8, "construct_pct": 5},
            [{"construct_calls": 7}, {"construct_pct": 4.9}, {"provenance": "CUB/Thrust"}],
        ),
        (
            "An image is blurred by a window of two dimensions",
            {**OWN_KERNEL, "name": "gaussian_blur(float *, int)", "block_y": 8, "avg_ns": 1_350_000},
            [{"avg_ns": 1_340_000}, {"block_y": 1}, {"name": "blur_rows(float *)"}, {"name": "blurX(float *)"}],
        ),
        (
            "A table that may stay the same is computed again in each step",
            {**OWN_KERNEL, "calls": 1},
            [{"calls": 0.5}, {"has_steps": False}, {"steps_pct": 89}, {"step_pct": 4.9}],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_an_operation_needs_to_be_replaceable(title, values, misses, is_met):
    assert is_met(title, values)
    assert [changes for changes in misses if is_met(title, {**values, **changes})] == []


REPETITION = {
    "loop": 1, "is_step": False, "repeats": 40, "operations": 3, "period_ns": 20_000, "busy_ns": 10_000,
    "idle_ns": 10_000, "filled_ns": 10_000, "share": 0.9, "graph_share": 0.0, "kernel": "scale", "kernels": "scale",
    "blocks": 4096, "sm_count": 132, "has_layers": False, "has_blocks": False, "is_plain": True, "is_compiled": False,
}  # fmt: skip
BUSY = {"idle_ns": 1_000, "busy_ns": 19_000, "filled_ns": 19_000}


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, "repeated-sequence"),
        ({"idle_ns": 9_999}, "repeated-step"),
        ({"busy_ns": 60_001, "filled_ns": 60_001, "operations": 3}, None),  # launches are no part of it
        ({"graph_share": 0.5}, None),
        # Layers of a model in at most 8 operations.
        ({"has_layers": True, "has_blocks": True, "operations": 8, "is_plain": False}, "repeated-sequence"),
        ({"has_layers": True, "has_blocks": True, "operations": 9, "is_plain": False}, None),
        # Products alone: small networks, samples or matrices, one after another.
        ({"has_layers": True, "operations": 40, "is_plain": False}, "repeated-sequence"),
        # Kernels that leave most of the GPU free.
        ({**BUSY, "filled_ns": 4_750}, "repeated-sequence repeated-step"),
        ({**BUSY, "filled_ns": 4_760}, "repeated-step"),
        # Steps: of one block each, or time steps.
        ({"is_step": True, "blocks": 1}, "repeated-sequence"),
        ({"is_step": True, "blocks": 2}, "repeated-step"),
        ({"is_step": True, "blocks": 2, "is_plain": False}, None),
        # Loops of XLA, if they are short.
        ({**BUSY, "is_compiled": True, "period_ns": 50_000}, "repeated-sequence"),
        ({**BUSY, "is_compiled": True, "period_ns": 50_001}, None),
    ],
)
def test_repetitions(changes, names, run_rule):
    rows = {
        name: run_rule(
            name,
            _repetitions=[{**REPETITION, **changes}],
            _step_totals=[STEP],
            _steady_shapes=[native("scale", avg_ns=1_000)],
        )
        for name in ("repeated-sequence", "repeated-step")
    }
    assert [name for name in rows if rows[name]] == (names or "").split()


@pytest.mark.parametrize(("name", "is_found"), [("layer_norm_kernel", True), ("layer_norm_grad_input_kernel", False)])
def test_norms_that_are_trained_belong_to_layers(name, is_found, run_rule):
    repetition = {**REPETITION, "has_layers": True, "has_blocks": True, "is_plain": False}
    rows = run_rule(
        "repeated-sequence", _repetitions=[repetition], _step_totals=[STEP], _steady_shapes=[native(name, avg_ns=1_000)]
    )
    assert bool(rows) is is_found


@pytest.mark.parametrize(("idle_ns", "is_all"), [(780_000, True), (781_000, False)])
def test_cpu_work_between_repetitions_belongs_to_them(idle_ns, is_all, run_rule):
    (row,) = run_rule(
        "repeated-sequence", _repetitions=[REPETITION], _step_totals=[{**STEP, "idle_ns": idle_ns}],
        _steady_shapes=[native("scale", avg_ns=1_000)],
    )  # fmt: skip
    assert row["recoverable_ns"] == 390_000
    assert ("cpu-work" in row["explains"]) is is_all


@pytest.mark.parametrize(
    ("changes", "is_found"),
    [
        ({}, True),
        ({"blocks_per_sm": 2, "blocks_without_shared": 7}, False),
        ({"dynamic_shared_bytes": 49_152}, False),
        ({"warps_per_block": 17}, False),
        ({"blocks_count": 527}, False),  # too few blocks to use the room
        ({"avg_ns": 9_999}, False),
        ({"provenance": "cuBLAS"}, False),
        ({"family": "attention"}, False),
    ],
)
def test_shared_memory_that_leaves_room_for_one_block(changes, is_found, run_rule):
    operation = {
        "kind": "kernel", "name": "smooth(float *)", "provenance": "hand-written", "family": "other", "calls": 1,
        "blocks_per_sm": 1, "blocks_without_shared": 8, "warps_per_block": 8, "warps_per_sm": 64, "blocks_count": 528,
        "sm_count": 132, "dynamic_shared_bytes": 180 << 10, "threads_per_block": 256, "avg_ns": 1e6, "total_ns": 1e6,
    }  # fmt: skip
    rows = run_rule("shared-memory-blocks", step_operations=[{**operation, **changes}], _step_totals=[STEP])
    assert [row["recoverable_ns"] for row in rows] == [750_000] * is_found


@pytest.mark.parametrize(
    ("changes", "is_found"),
    [
        ({}, True),
        ({"blocks_count": 528}, True),  # 8 warps for each SM
        ({"blocks_count": 529}, False),
        ({"blocks_count": 131}, False),  # small-grid
        ({"avg_ns": 19_999}, False),
        ({"step_pct": 4.9}, False),
        ({"registers_per_thread": 65}, False),
        ({"static_shared_bytes": 1_024}, False),
        ({"streams": 2}, False),
        ({"provenance": "CUTLASS"}, False),
        ({"family": "gemm"}, False),
    ],
)
def test_few_threads_for_each_multiprocessor(changes, is_found, run_rule):
    operation = {
        "kind": "kernel", "name": "row_sums(float *)", "provenance": "hand-written", "family": "other", "calls": 1,
        "blocks_count": 264, "threads_per_block": 64, "warps_per_block": 2, "warps_per_sm": 64, "sm_count": 132,
        "registers_per_thread": 64, "static_shared_bytes": 0, "dynamic_shared_bytes": 0, "streams": 1, "step_pct": 50.0,
        "avg_ns": 400_000, "total_ns": 400_000,
    }  # fmt: skip
    rows = run_rule("few-threads", step_operations=[{**operation, **changes}], _step_totals=[STEP])
    warps = changes.get("blocks_count", 264) * 2 / 132
    assert [row["recoverable_ns"] for row in rows] == [pytest.approx(400_000 * (1 - warps / 16))] * is_found


@pytest.mark.parametrize(
    ("kernel", "local", "shares", "expected"),
    [
        ("advance(float *)", (64, 64.0), (95.0, 79.9), ("warning", "spills")),
        # Threads that take long for what they hold; spills explain that, too.
        ("add(float *)", (64, 64.0), (95.0, 79.9), ("warning", "slow_threads")),
        ("down(float *)", (64, 64.0), (95.0, 79.9), ("warning", "narrow")),
        # A limit is a multiple of 8: with other numbers, arrays lie there and no spills.
        ("advance(float *)", (63, 64.0), (95.0, 79.9), ("warning", "stack")),
        ("advance(float *)", (65, 64.0), (95.0, 79.9), ("warning", "stack")),
        ("advance(float *)", (31, 63.0), (95.0, 79.9), ("warning", "other")),
        ("advance(float *)", (255, 64.0), (95.0, 79.9), ("warning", "other")),  # all that a thread can have
        ("advance(float *)", (72, 64.0), (95.0, 79.9), ("warning", "other")),  # nothing is gained from more registers
        ("advance(float *)", (64, 63.0), (95.0, 79.9), ("warning", "other")),  # a small stack
        ("mix(float *)", (64, 64.0), (95.0, 79.9), ("warning", "other")),  # that of another kernel
        ("advance(float *)", (64, 64.0), (94.0, 79.9), ("info", "spills")),
        # Most of it is known to be efficient.
        ("advance(float *)", (64, 64.0), (95.0, 80.0), ("info", "spills")),
    ],
)
def test_kernels_that_take_the_time(kernel, local, shares, expected, run_rule):
    pct, efficient_pct = shares
    row = shape(kernel, avg_ns=10_000 * pct)
    keys = {name: row[name] for name in ("name", "grid", "block", "total_ns")}
    bound = {**keys, "bound": "compute", "evidence": "names", "reason": "", "sm_pct": None, "memory_pct": None}
    headroom = {**keys, "ceiling": "DRAM", "ceiling_used_pct": 10.0, "recoverable_ns": 0}
    rows = run_rule(
        "hot-kernels", _steady_shapes=[row], classify_kernels_report=[bound], headroom_report=[headroom],
        _own_local_memory=[{"name": "advance(float *)", "registers": local[0], "local_bytes": local[1]}],
        _slow_threads=[
            {"name": name, "times": 12.4, "narrow_block": block}
            for name, block in (("add(float *)", None), ("down(float *)", "1x256"))
        ],
        classify_report=[{"part": "wall", "verdict": "GPU-bound"}],
        construct_coverage=[{"efficient_pct": efficient_pct}], _repetitions=[REPETITION],
        _step_totals=[{**STEP, "busy_ns": 1e6, "kernel_ns": 1e6}],
    )  # fmt: skip
    assert [(row["severity"], row["cure_case"]) for row in rows] == [expected]


def collectives(operation, count=1, *, run_ns=100_000, exposed_ns=None, start_ns=500_000):
    """Give rows of `_exposed_collectives` in each of two steps."""
    return [
        {"step": step, "operation": operation, "name": f"ncclDevKernel_{operation}_Sum_f32_RING_LL(int)",
         "start_ns": step * 1_000_000 + start_ns + number * 1_000,
         "end_ns": step * 1_000_000 + start_ns + number * 1_000 + run_ns,
         "exposed_ns": run_ns if exposed_ns is None else exposed_ns, "bytes": 1_000}
        for step in range(2)
        for number in range(count)
    ]  # fmt: skip


ADAM_SHAPE = shape("void multi_tensor_apply_kernel<FusedAdamMathFunctor>(T1)")
GATHERS = [*collectives("AllGather", 8), *collectives("ReduceScatter")]


@pytest.mark.parametrize(
    ("name", "rows", "tables", "is_found"),
    [
        ("exposed-gathers", GATHERS, {"busy_ns": 6e5}, True),
        ("exposed-gathers", GATHERS, {"busy_ns": 5.9e5}, False),
        ("exposed-gathers", collectives("AllGather"), {}, False),
        ("exposed-gathers", collectives("ReduceScatter"), {}, False),
        ("small-units", GATHERS, {"busy_ns": 5.9e5}, True),
        ("small-units", GATHERS, {"busy_ns": 6e5}, False),
        ("small-units", collectives("AllGather", 8), {"busy_ns": 5.9e5}, False),
        ("small-units", [*collectives("AllGather", 7), *collectives("ReduceScatter")], {"busy_ns": 5e5}, False),
        ("small-units", GATHERS, {"busy_ns": 5e5, "launch_calls": 481}, False),
        ("small-exchanges", collectives("AllReduce", 8, run_ns=40_000), {}, True),
        ("small-exchanges", collectives("AllReduce", 7, run_ns=40_000), {}, False),
        ("small-exchanges", collectives("AllReduce", 8, run_ns=40_001), {}, False),
        ("small-exchanges", collectives("SendRecv", 8, run_ns=40_000), {}, False),
        ("message-waits", collectives("SendRecv"), {}, True),
        ("message-waits", collectives("SendRecv", exposed_ns=99_000), {}, False),
        ("message-waits", collectives("AllGather"), {}, False),
        # Divided into many messages.
        ("message-waits", collectives("SendRecv", 16, exposed_ns=15_700), {}, True),
        ("message-waits", collectives("SendRecv", 16, exposed_ns=15_600), {}, False),
        ("message-waits", collectives("SendRecv", 15, exposed_ns=15_600), {}, True),
        ("fp32-gradients", collectives("AllReduce", run_ns=50_000), {}, True),
        ("fp32-gradients", collectives("AllReduce", run_ns=49_999), {}, False),
        ("fp32-gradients", collectives("AllReduce"), {"_steady_shapes": [shape(BF16)]}, False),
        ("one-reduction", collectives("AllReduce", 3, run_ns=200_000), {}, True),
        ("one-reduction", collectives("AllReduce", 4, run_ns=200_000), {}, False),
        ("one-reduction", collectives("AllReduce", 3, run_ns=199_999), {}, False),
        ("one-reduction", collectives("AllReduce", start_ns=100_000, run_ns=200_000), {}, False),
        ("one-reduction", collectives("ReduceScatter", run_ns=200_000), {}, False),
    ],
)
def test_exposed_collectives(name, rows, tables, is_found, run_rule):
    totals = {**TWO_STEPS, **{column: value for column, value in tables.items() if column in TWO_STEPS}}
    shapes = tables.get("_steady_shapes", [ADAM_SHAPE])
    findings = run_rule(name, _exposed_collectives=rows, _steady_shapes=shapes, kernel_events=kernels(*[BF16] * 4),
                     kernel_names=PRODUCTS_AND_COLLECTIVES, _steady_windows=WINDOWS, _step_totals=[totals])  # fmt: skip
    assert len(findings) == is_found


def read_flags(run_rule, sizes, *, thread_id=1, kernel="forward", shapes=()):
    """Run the rule on reads of these sizes, one per step, by a thread that launched a kernel."""
    windows = [{**WINDOWS[0], "step": step, **{
        f"{side}{end}_ns": 1_000_000 * (step + (end == "end")) for side in ("", "host_") for end in ("start", "end")
    }} for step in range(len(sizes))]  # fmt: skip
    rows = [
        {"process_id": 1, "device_id": 0, "start_ns": step * 1_000_000 + 1_000, "end_ns": 1_000_000 * step + 2_000,
         "copy_end_ns": step * 1_000_000 + 2_000, "copy_kind": "D2H", "copy_bytes": size, "size_bytes": size,
         "correlation_id": step, "thread_id": thread_id}
        for step, size in enumerate(sizes)
    ]  # fmt: skip
    steps = [{"gpu_idle_ns": 100_000, "phase": "steady"}]
    call = {"process_id": 1, "thread_id": thread_id, "correlation_id": 0, "start_ns": 0, "end_ns": 1, "name_id": 0}
    return run_rule(
        "graph-break", waits=rows, memcpys=rows, frameworks=[{"framework": "pytorch", "is_program": True}],
        kernel_events=[{**call, "start_ns": 0, "end_ns": 1}], kernel_names=[{"name_id": 0, "name": kernel}],
        launches=[call], api_calls=[call], nvtx_ranges=[{**call, "name": "x"}],
        _steady_shapes=[shape(BF16), *shapes], steps=steps, step_method=[{"tokens_per_step": 1}],
        _steady_windows=windows, _step_totals=[{**STEP, "units": len(sizes)}],
    )  # fmt: skip


@pytest.mark.parametrize(("calls", "cure_case"), [(2, "tokens"), (1, "branch")])
def test_a_flag_of_each_chosen_token_is_tested_less_often(calls, cure_case, run_rule):
    choice = {**shape("void reduce_kernel<512, 1, ReduceOp<float, ArgMaxOps<float>>>(T3)"), "calls": calls}
    (row,) = read_flags(run_rule, [1, 1], shapes=[choice])
    assert row["cure_case"] == cure_case


@pytest.mark.parametrize(
    ("sizes", "is_found"), [([1, 1], True), ([1, 8], True), ([8, 8, 8, 1], False), ([8, 8], False)]
)
def test_flags_that_are_read_back_are_branches(sizes, is_found, run_rule):
    """Half of the steps must have one."""
    assert [row["reads"] for row in read_flags(run_rule, sizes)] == [sizes.count(1) / len(sizes)] * is_found


@pytest.mark.parametrize(
    ("thread_id", "kernel", "is_backward"),
    [(2, "conv_depthwise2d_grad_weight_kernel", True), (2, "forward", False), (1, "layer_norm_backward", False)],
)
def test_flags_that_the_backward_pass_reads_are_checks_of_gradients(thread_id, kernel, is_backward, run_rule):
    """The main thread has the number of the process."""
    (row,) = read_flags(run_rule, [1, 1], thread_id=thread_id, kernel=kernel)
    assert (row["is_backward"], row["cure_case"]) == (is_backward, "backward" if is_backward else "branch")


@pytest.mark.parametrize(
    ("changes", "copy", "is_found"),
    [
        ({}, {}, True),
        ({}, {"size_bytes": 256}, False),  # single values
        ({}, {"copy_kind": "D2H"}, False),
        ({}, {"start_ns": 300_001}, False),  # another operation ends the gap
        ({"end_ns": 199_999}, {"start_ns": 199_999}, False),
        ({"start_ns": 50_000}, {"size_bytes": 4 * (1 << 10)}, False),  # it was copied to the host before
        ({"start_ns": 50_000}, {"size_bytes": 4 * (1 << 10) + 1}, True),
        # Half of the gap is in CUDA calls.
        ({"api_ns": 100_000}, {}, True),
        ({"api_ns": 100_001}, {}, False),
        ({"host": "sync"}, {}, False),
    ],
)
def test_gaps_before_copies_of_an_input(changes, copy, is_found, run_rule):
    gap = {"gpu_id": 0, "host": "late", "start_ns": 100_000, "end_ns": 300_000, "call_ns": 300_000, "sync_ns": 0,
           "copy_ns": 0, "alloc_ns": 0, "mpi_ns": 0, "api_ns": 0}  # fmt: skip
    copies = {"start_ns": 300_000, "copy_kind": "H2D", "size_bytes": 257, **copy}
    read = {"copy_kind": "D2H", "start_ns": 40_000, "end_ns": 50_000, "size_bytes": 1 << 10}
    # Gaps of 99,999 ns are more than a tenth of this step, and too short.
    rows = run_rule("host-input", _idle_time=[{**gap, **changes}], memcpys=[copies, read], _steady_windows=WINDOWS[:1],
                    host_report=[{"code": "cpu_work", "recoverable_ns": 0.0}],
                    _step_totals=[{**STEP, "wall_ns": 5e5}])  # fmt: skip
    assert [row["gap_ns"] for row in rows] == [300_000 - {**gap, **changes}["start_ns"]] * is_found


@pytest.mark.parametrize(
    ("changes", "read", "back_bytes", "is_found"),
    [
        ({}, {}, 1 << 18, True),
        ({}, {}, None, True),
        # New data for the next step, not what was computed from the old.
        ({}, {}, (1 << 18) + 1, False),
        ({}, {"size_bytes": (1 << 16) - 1}, None, False),
        ({}, {"copy_kind": "H2D"}, None, False),
        ({}, {"end_ns": 99_999}, None, False),  # another operation begins the gap
        ({}, {"start_ns": -300_001}, None, False),  # the copy takes more than twice as long
        ({"api_ns": 100_000}, {}, None, True),
        ({"api_ns": 100_001}, {}, None, False),
        ({"host": "sync"}, {}, None, False),
    ],
)
def test_gaps_after_copies_of_results(changes, read, back_bytes, is_found, run_rule):
    gap = {"gpu_id": 0, "host": "late", "start_ns": 100_000, "end_ns": 300_000, "call_ns": 300_000, "sync_ns": 0,
           "copy_ns": 0, "alloc_ns": 0, "mpi_ns": 0, "api_ns": 0}  # fmt: skip
    copies = [{"copy_kind": "D2H", "start_ns": 60_000, "end_ns": 100_000, "size_bytes": 1 << 16, **read}]
    if back_bytes:
        copies.append({"copy_kind": "H2D", "start_ns": 300_000, "end_ns": 310_000, "size_bytes": back_bytes})
    rows = run_rule("host-stage", _idle_time=[{**gap, **changes}], memcpys=copies, _steady_windows=WINDOWS[:1],
                    _step_totals=[STEP])  # fmt: skip
    expected_ns = 250_000 if back_bytes else 240_000
    # Without data that goes back, it is the time in which the host and the GPU take turns.
    expected = (200_000, expected_ns, "host-stage" if back_bytes else "alternating")
    assert [(row["gap_ns"], row["recoverable_ns"], row["family"]) for row in rows] == [expected] * is_found


@pytest.mark.parametrize(("other_ns", "has_copies"), [(40_000, True), (40_001, False)])
def test_gaps_after_copies_count_copies_where_most_belong_to_them(other_ns, has_copies, run_rule):
    gap = {"gpu_id": 0, "host": "late", "start_ns": 100_000, "end_ns": 300_000, "call_ns": 300_000, "sync_ns": 0,
           "copy_ns": 0, "alloc_ns": 0, "mpi_ns": 0, "api_ns": 0}  # fmt: skip
    copies = [{"copy_kind": "D2H", "start_ns": end_ns - ns, "end_ns": end_ns, "size_bytes": 1 << 16}
              for ns, end_ns in ((40_000, 100_000), (other_ns, 50_000))]  # fmt: skip
    (row,) = run_rule("host-stage", _idle_time=[gap], memcpys=copies, _steady_windows=WINDOWS[:1], _step_totals=[STEP])
    assert row["recoverable_ns"] == 200_000 + 40_000 * has_copies
    assert ("copy" in row["explains"]) == has_copies


@pytest.mark.parametrize(
    ("busy_ns", "api_ns", "copy_ns", "expected"),
    [
        (500_000, 100_000, 0, 500_000),
        # More than half of what the host does is in calls.
        (500_000, 251_000, 0, None),
        # Copies of the next input are no work that could overlap.
        (500_000, 100_000, 300_000, 200_000),
        (500_000, 100_000, 410_000, None),
    ],
)
def test_a_host_and_a_gpu_that_take_turns(busy_ns, api_ns, copy_ns, expected, run_rule):
    step = {"host_start_ns": 0, "host_end_ns": 1_000_000, "api_ns": 500_000 + api_ns, "api_sync_ns": 500_000,
            "gpu_busy_ns": busy_ns, "phase": "steady"}  # fmt: skip
    totals = {**STEP, "busy_ns": busy_ns, "idle_ns": 1e6 - busy_ns, "host_floor_ns": 5e5, "sync_calls": 1}
    rows = run_rule(
        "alternating", steps=[step], step_method=[{"tokens_per_step": 1}],
        step_budget=[
            {"part": "copy", "host": None, "time_ns": copy_ns}, {"part": "idle", "host": "sync", "time_ns": 1}
        ],
        _steady_copies=[{"copy_kind": "H2D", "total_ns": copy_ns}], _step_totals=[totals],
    )  # fmt: skip
    assert [row["recoverable_ns"] for row in rows] == [expected] * (expected is not None)


@pytest.mark.parametrize(
    ("changes", "is_found"),
    [
        ({}, True),
        ({"stream": 13}, False),  # both on one stream
        ({"blocks": 132, "copy_kind": None}, False),  # both fill the GPU
        ({"blocks": 131, "copy_kind": None}, True),
        ({"first_copy_kind": "H2D"}, False),  # two copies in one direction
        ({"issued_ns": 400_001}, False),  # issued when the other stream was done
        ({"start_ns": 420_000}, False),  # it starts later: for another reason
        ({"event_waits": 1}, False),
    ],
)
def test_an_operation_that_waits_for_the_default_stream(changes, is_found, run_rule):
    """A kernel of 400 us, and a copy of 300 us on the default stream that starts when it ends."""
    case = {"stream": 7, "blocks": 4096, "copy_kind": "H2D", "first_copy_kind": None, "issued_ns": 10_000,
            "start_ns": 401_000, "event_waits": 0, **changes}  # fmt: skip
    first = {
        "process_id": 1,
        "device_id": 0,
        "stream_id": 13,
        "correlation_id": 1,
        "start_ns": 1_000,
        "end_ns": 400_000,
    }
    second = {**first, "stream_id": case["stream"], "correlation_id": 2, "start_ns": case["start_ns"],
              "end_ns": case["start_ns"] + 300_000}  # fmt: skip
    shape = {"name_id": 1, "grid_x": case["blocks"], "grid_y": 1, "grid_z": 1, "copy_kind": None}
    rows = [
        {**shape, **first, "copy_kind": case["first_copy_kind"]}, {**shape, **second, "copy_kind": case["copy_kind"]}
    ]  # fmt: skip
    none = {**shape, **first, "correlation_id": 9}
    findings = run_rule(
        "default-stream",
        cuda_streams=[{"process_id": 1, "stream_id": number, "stream_type": kind}
                      for number, kind in ((7, "null stream"), (13, "default stream"))],
        kernel_events=[none, *(row for row in rows if not row["copy_kind"])],
        memcpys=[{**none, "copy_kind": "H2D"}, *(row for row in rows if row["copy_kind"])], memsets=[none],
        outer_api_calls=[{"process_id": 1, "correlation_id": 1, "end_ns": 500},
                         {"process_id": 1, "correlation_id": 2, "end_ns": case["issued_ns"]}],
        gpus=[{"sm_count": 132}], kernel_names=[{"name_id": 1, "name": "solve(float *)"}],
        _steady_windows=[{"start_ns": 0, "end_ns": 1_000_000}],
        _call_counts=[{"name": "cudaStreamWaitEvent", "calls": case["event_waits"]}], _step_totals=[STEP],
    )  # fmt: skip
    assert [row["held"] for row in findings] == [1] * is_found


def steps_of_one_rate(
    *, count=20, period_ns=40_000_000, drift_ns=0, gap_ns=30_000_000, busy_ns=4_000_000, call="read", tid=1
):
    """Give what `paced-outside` reads of steps of one rate: the steps, their gaps, and a call of the host in each."""
    starts = [number * period_ns for number in range(count)]
    key = {"process_id": 1, "thread_id": 1}
    steps = [
        {"step": number, **key, "start_ns": start, "end_ns": start + period_ns, "host_start_ns": start,
         "host_end_ns": start + period_ns, "duration_ns": period_ns + drift_ns * (-1) ** number, "phase": "steady"}
        for number, start in enumerate(starts)
    ]  # fmt: skip
    return {
        "steps": steps,
        "_idle_time": [{"host": "late", "start_ns": start, "end_ns": start + gap_ns} for start in starts],
        "os_calls": [
            {**key, "thread_id": tid, "name": call, "start_ns": start, "duration_ns": 30_000_000} for start in starts
        ],
        "_cpu_work": [{"counted_by": "activity", "samples": 0, "time_ns": 0}],
        "_step_totals": [{**STEP, "wall_ns": period_ns, "busy_ns": busy_ns, "idle_ns": period_ns - busy_ns}],
    }


@pytest.mark.parametrize(
    ("changes", "rates"),
    [
        ({}, [25]),
        ({"count": 19}, []),
        ({"period_ns": 37_000_000}, []),
        ({"period_ns": 40_190_000}, [25]),
        ({"period_ns": 40_210_000}, []),
        ({"drift_ns": 2_000_000}, [25]),
        ({"drift_ns": 2_010_000}, []),
        ({"busy_ns": 20_000_000}, [25]),
        ({"busy_ns": 20_010_000}, []),
        ({"gap_ns": 17_990_000}, []),  # many gaps instead of a long one
        # A thread that sleeps has any rate; other calls and other threads set none.
        ({"period_ns": 37_000_000, "call": "clock_nanosleep"}, [None]),
        ({"period_ns": 37_000_000, "call": "clock_nanosleep", "count": 4}, []),
        ({"period_ns": 37_000_000, "call": "clock_nanosleep", "tid": 2}, []),
        ({"period_ns": 37_000_000, "call": "pthread_cond_wait"}, []),
    ],
)
def test_a_rate_that_something_else_sets(changes, rates, run_rule):
    assert [row["rate"] for row in run_rule("paced-outside", **steps_of_one_rate(**changes))] == rates


@pytest.mark.parametrize(
    ("long_ns", "copied", "after_ns", "excess_ns"),
    [
        (2_000_000, 1_000_000, 1_000_000, 1_000_000),
        (1_999_999, 1_000_000, 1_000_000, None),
        (2_000_000, 999_999, 1_000_000, None),
        # The step after it may wait for what is still being written.
        (2_000_000, 1_000_000, 2_000_000, 2_000_000),
        (2_000_000, 1_000_000, 1_999_999, 1_000_000),
    ],
)
def test_steps_that_copy_and_take_longer(long_ns, copied, after_ns, excess_ns, run_rule):
    steps = [
        {"step": step, "process_id": 1, "host_start_ns": step, "host_end_ns": step + 1, "phase": "steady",
         "duration_ns": {3: long_ns, 4: after_ns}.get(step, 1_000_000), "d2h_bytes": copied if step == 3 else 8}
        for step in range(10)
    ]  # fmt: skip
    call = {"process_id": 1, "name": "read", "start_ns": 0, "duration_ns": 1}
    rows = run_rule("checkpoint-stall", steps=steps, os_calls=[call], _step_totals=[STEP])
    total_ns = 8_000_000 + long_ns + after_ns
    expected = [pytest.approx(1e6 * excess_ns / total_ns)] if excess_ns else []
    assert [row["recoverable_ns"] for row in rows] == expected
