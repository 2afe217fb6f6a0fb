"""Work that a program can leave out: copies of joined tensors, weights, arrays and layers that are computed again."""

from __future__ import annotations

import ailments
import duckdb
import pytest
from ailments import BF16, LARGE, MS, NATIVE, run_steps
from opening import evaluate_rules, open_trace
from rule_tables import STEP
from sweeps import sweep
from synthetic import Trace

from nsys_insight.model.views import create_macros

JOIN = "void at::native::<unnamed>::CatArrayBatchedCopy<at::native::<unnamed>::OpaqueType<(unsigned int)2>>(T1 *)"
CUPY_JOIN = "cupy_concatenate_same_size"
ATTENTION = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits>(Params)"
ATTENTION_GRADIENT = "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits>(Params)"
NORM = "void at::native::<unnamed>::vectorized_layer_norm_kernel<c10::BFloat16, float, (bool)0>(int)"
GATHER = "void at::native::vectorized_gather_kernel<(int)16, long>(char *, char *, T2 *, int, long)"
ACTIVATION = NATIVE.format("launch_clamp_scalar")
MAXIMUM = "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::MaxNanFunctor>>(T3)"
WEIGHT = "void at::native::<unnamed>::weight_norm_{}_first_dim_kernel<float, float>(T1 *, T2 *, const T1 *, int)"
CONVOLUTION = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x64x32_stage3"
JOINED_BEFORE_ATTENTION = "Tensors are joined before each attention call, which copies all of them"
JOINED = "Large tensors are joined, which copies all of them"
NORMALIZED = "Weights are normalized again in each step, without training"
PEAKS = [{"precision": name, "tflop_per_s": rate} for name, rate in (("fp32", 67.0), ("fp64", 34.0))]
INPUT = {"copy_kind": "H2D", "size_bytes": 8}
GATHERED = "Rows are gathered before layers that may treat each row by itself"


def launch_in_turn(*kernels, times=4):
    """Make steps that launch these kernels, (name, ns), so often."""

    def body(loop, _):
        for _ in range(times):
            for name, runs in kernels:
                loop.launch(name, runs, **LARGE)
        loop.launch(BF16, 20_000, **LARGE)

    return run_steps(body, steps=6, nvtx="step").trace


def find(trace, folder, *rules):
    with open_trace(trace.write(folder / "trace.sqlite")) as opened_trace:
        return evaluate_rules(opened_trace, rules or ["replaceable-construct"])


def decode(join_ns, *added):
    return launch_in_turn((BF16, 20_000), (JOIN, join_ns), (JOIN, join_ns), (ATTENTION, 100_000), *added)


def test_a_growing_cache_is_copied(tmp_path):
    findings = find(decode(200_000), tmp_path, "replaceable-construct", "fusion")
    finding = findings[JOINED_BEFORE_ATTENTION]
    assert finding.evidence.startswith("8 concatenations per step of 200 µs")
    assert "1.6 ms" in finding.evidence
    assert "index_copy_" in finding.action
    assert finding.recoverable_ns == pytest.approx(8 * 198_000, rel=0.01)
    # One kernel for both would copy as much.
    assert "fusion" not in findings


@pytest.mark.slow  # tests/test_rule_limits.py has its conditions
def test_the_gradient_of_a_split_tensor_is_no_finding(tmp_path):
    trace = decode(200_000, (ATTENTION_GRADIENT, 200_000))
    assert find(trace, tmp_path).keys().isdisjoint({JOINED, JOINED_BEFORE_ATTENTION})


@pytest.mark.slow  # tests/test_rule_limits.py has its conditions
def test_large_tensors_are_joined(tmp_path):
    finding = find(launch_in_turn((BF16, 100_000), (JOIN, 200_000)), tmp_path)[JOINED]
    assert finding.action.startswith("Allocate the joined tensor once. If it grows")
    assert "none of them grows" in finding.caveat


def test_large_arrays_of_cupy_are_joined(tmp_path):
    trace = launch_in_turn(("cupy_multiply__float32_float32_float32", 50_000), (CUPY_JOIN, 200_000))
    finding = find(trace, tmp_path)["Large arrays are joined, which copies all of them"]
    assert finding.evidence.startswith("4 concatenations per step of 200 µs")


@pytest.mark.parametrize(("groups", "read_bytes", "is_found"), [(8, 8, True), (3, 8, False), (8, None, False)])
def test_elements_of_each_group_are_picked_by_a_mask(groups, read_bytes, is_found, tmp_path):
    def body(loop, _):
        for _ in range(groups):
            loop.launch("cupy_equal__int32_int_bool", 5_000)
            loop.launch("cupy_scan_naive", 5_000)
            if read_bytes:
                loop.copy("D2H", read_bytes, 2_000, blocking=True)
                loop.python(10_000)
            loop.launch("cupy_getitem_mask", 10_000)
            loop.launch("cupy_sum", 5_000)

    findings = find(run_steps(body, steps=6, nvtx="step").trace, tmp_path)
    title = "Elements are picked by a mask, and the host waits for their number each time"
    assert (title in findings) == is_found
    if is_found:
        assert findings[title].evidence.startswith(
            "8 times per step elements are picked by a mask (a[mask]), each after"
        )
        assert "cupy.bincount" in findings[title].action
        ailments.check_finding(findings[title])


def synthesize(*added):
    return launch_in_turn((WEIGHT.format("fwd"), 3_000), (CONVOLUTION, 6_000), *added)


def test_weights_are_normalized_in_inference(tmp_path):
    finding = find(synthesize(), tmp_path)[NORMALIZED]
    assert finding.evidence.startswith("4 weights per step are computed from their direction and length (weight_norm_")
    assert "remove_parametrizations" in finding.action
    assert {"repeated-sequence", "late-host"} <= set(finding.explains)


LAYERS = ((GATHER, 500_000), (BF16, 200_000), (ACTIVATION, 200_000), (MAXIMUM, 100_000))


def test_rows_are_gathered_before_layers(tmp_path):
    finding = find(launch_in_turn(*LAYERS), tmp_path)[GATHERED]
    assert finding.saving_low_ns == 0
    assert finding.recoverable_ns == pytest.approx(0.9 * (4 * 400_000 + 20_000), rel=0.01)
    assert finding.caveat.startswith("each row is gathered once")
    assert "self.pool(x)[neighbors]" in finding.action


def train(*, recomputed=0, layers=6, rounds=1, evaluations=0, backward_thread=True):
    """Make steps of a network of layers whose backward pass computes the last `recomputed` layers again."""
    trace = Trace().gpu()
    main = trace.thread(tid=100)
    other = trace.thread(tid=101) if backward_thread else main
    forward = ((NORM, 30_000), (BF16, 300_000), (ATTENTION, 80_000))

    def launch(host, kernels):
        for name, runs in kernels:
            host.launch(name, runs=runs, **LARGE)

    for _ in range(5):
        start = main.now
        for _ in range(rounds):
            for _ in range(layers):
                launch(main, forward)
            other.now = main.now
            for layer in range(layers):
                if layer < recomputed:
                    launch(other, forward)
                launch(other, ((ATTENTION_GRADIENT, 200_000), ("sm90_dgrad_product", 600_000)))
            main.now = other.now
        for _ in range(evaluations * layers):
            launch(main, forward)
        launch(main, [("void at::native::multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>>(T1)", 50_000)])
        main.sync("device")
        main.range("step", start, main.now)
    return trace


def test_layers_are_computed_again_for_their_gradients(tmp_path):
    finding = find(train(recomputed=6), tmp_path, "recomputation")["recomputation"]
    assert finding.evidence.startswith("of 60 launches of forward attention (flash_fwd_kernel) in the trace, 30 come")
    assert finding.recoverable_ns == pytest.approx(6 * 410_000, rel=0.01)
    assert finding.saving_low_ns == finding.recoverable_ns / 2
    assert "torch.utils.checkpoint" in finding.action
    ailments.check_finding(finding)


@pytest.mark.slow
def test_half_of_the_layers_are_computed_again(tmp_path):
    finding = find(train(recomputed=3), tmp_path, "recomputation")["recomputation"]
    assert finding.recoverable_ns == pytest.approx(3 * 410_000, rel=0.01)


@pytest.mark.parametrize(
    "program",
    [
        *sweep([{}]),
        {"evaluations": 2, "rounds": 2},
        # Which thread launches the backward pass is what tells the two apart.
        {"recomputed": 6, "backward_thread": False},
    ],
)
def test_usual_training_computes_nothing_again(program, tmp_path):
    assert not find(train(**program), tmp_path, "recomputation")


WEIGHT_GRADIENT = "sm90_xmma_wgrad_indexed_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x{}x32"
INPUT_GRADIENT = WEIGHT_GRADIENT.replace("wgrad", "dgrad")
FUSED_ADAM = "void at::native::<unnamed>::multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<(int)4>>(T1)"
CRITIC, GENERATOR = range(2), range(2, 8)


def train_in_turn(*parts):
    """Make steps of parts: the layers whose gradients are computed, and the blocks of the update after them.

    A function returns the part of a step.
    """

    def body(loop, step):
        for layers, blocks in (part(step) if callable(part) else part for part in parts):
            for layer in layers:
                loop.launch(INPUT_GRADIENT.format(layer), 200_000, grid=(132, 1, 1))
                loop.launch(WEIGHT_GRADIENT.format(layer), 300_000, grid=(128, 1, 1))
            loop.launch(FUSED_ADAM, 50_000, grid=(blocks, 1, 1))

    return run_steps(body, steps=6, nvtx="step").trace


def test_gradients_of_the_other_network_are_thrown_away(tmp_path):
    trace = train_in_turn(([*CRITIC, *CRITIC, *GENERATOR], 49), ([*CRITIC, *GENERATOR], 274))
    finding = find(trace, tmp_path, "unused-gradients")["unused-gradients"]
    assert finding.evidence.startswith("8 launches per step of gradients of a convolution's weights run before both")
    assert "100.0% of those before the update with 274 blocks, 80.0% of those before the" in finding.evidence
    assert (finding.saving_low_ns, finding.recoverable_ns) == pytest.approx((8 * 300_000, 8 * 500_000), rel=0.01)
    assert "output.detach()" in finding.action
    ailments.check_finding(finding)


@pytest.mark.parametrize(
    "parts",
    [
        # The cured program, and one whose critic is frozen in the step of the generator.
        [([*CRITIC, *CRITIC], 49), ([*CRITIC, *GENERATOR], 274)],
        [([*CRITIC, *CRITIC], 49), (GENERATOR, 274)],
        # Two networks of one size, or two batches of one network.
        [(GENERATOR, 274), (GENERATOR, 274)],
        # Few layers, which may have equal sizes by chance.
        [(CRITIC, 49), ([*CRITIC, *GENERATOR], 274)],
        # A single update in each step, which sometimes leaves layers out.
        [lambda step: (GENERATOR, 274) if step % 2 else ([*CRITIC, *GENERATOR], 323)],
    ],
)
def test_each_update_uses_its_gradients(parts, tmp_path):
    assert not find(train_in_turn(*parts), tmp_path, "unused-gradients")


def test_a_repeated_kernel_of_cutlass_has_the_name_of_its_argument(tmp_path):
    product = "cutlass_tensorop_f16_s16816fprop_optimized_f16_64x64_64x5_nhwc_align8"

    def body(loop, _):
        for _ in range(40):
            loop.launch(f"void cutlass__5x_cudnn::Kernel<{product}>(T1::Params)", 3_000)
            loop.launch(NATIVE.format("MulFunctor"), 2_000)
            loop.python(10_000)

    with open_trace(run_steps(body, nvtx="step").trace.write(tmp_path / "trace.sqlite")) as trace:
        kernels = {row["kernel"] for row in trace.dicts("SELECT kernel FROM _repetitions")}
    assert kernels == {product}


def test_an_array_that_stays_the_same_is_put_on_the_gpu_once(tmp_path):
    def body(loop, _):
        loop.python(2 * MS)
        loop.copy("H2D", 64 << 20, MS)
        for _ in range(4):
            loop.launch("loop_add_fusion", 250_000, **LARGE)

    finding = find(run_steps(body).trace, tmp_path, "host-input")["host-input"]
    assert finding.action.startswith("If the array stays the same")
    assert "(jax.device_put)" in finding.action


def unary(functor):
    """Write the name of PyTorch's kernel of an operation on one array, over four numbers for each thread."""
    return (
        f"void at::native::vectorized_elementwise_kernel<(int)4, at::native::{functor}, "
        "std::array<char *, (unsigned long)2>>(int, T2, T3)"
    )


MINUS, POWER = (
    unary(f"{name}_kernel_cuda(at::TensorIteratorBase &)::[lambda(float) (instance 1)]") for name in ("neg", "exp")
)
SCALED = unary("BUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>")
SUM_OF_TWO = MINUS.replace("neg_kernel_cuda", "CUDAFunctor_add<float>").replace("long)2>", "long)3>")
TO_OTHER_LAYOUT = (
    "void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<at::native::"
    "direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda(float) (instance 1)]>(int)>(int, T3)"
)
CAST = TO_OTHER_LAYOUT.replace("_nocast", "")
VECTOR_PRODUCT = "void gemv2T_kernel_val<int, int, float, float, float, float, (int)128, (int)16>(T13, T6, T6)"


@pytest.fixture(scope="module")
def macros():
    with duckdb.connect() as connection:
        create_macros(connection, has_constructs=False)
        yield connection


@pytest.mark.parametrize(
    ("name", "reads_one"),
    [
        (MINUS, True),
        (SCALED, True),
        (CAST, True),
        ("cupy_exp__float32_float32", True),
        ("cupy_true_divide__float64_float_float64", True),
        ("cupy_greater__float32_float_bool", True),
        (SUM_OF_TWO, False),
        (unary("FillFunctor<float>").replace("long)2>", "long)1>"), False),
        # A layout in which a vector fills a matrix makes a large array of a small one.
        (TO_OTHER_LAYOUT, False),
        ("cupy_copy__float32_float32", False),
        ("cupy_multiply__float32_float32_float32", False),
        ("void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float>>(T3)", False),
        (BF16, False),
    ],
)
def test_which_operations_read_one_array(name, reads_one, macros):
    assert macros.execute("SELECT reads_one_array(?)", [name]).fetchone() == (reads_one,)


def iterate(*kernels, times=12):
    """Make the rows that the rule about arrays that stay the same reads: a loop of 12 iterations in a step of 1 ms."""
    rows = list(enumerate(kernels))
    return {
        "loops": [{"loop": "1.1", "process_id": 1, "iterations": 2 * times}],
        "step_method": [{"process_id": 1, "step_count": 2, "loop": "1"}],
        "loop_operations": [
            {"loop": "1.1", "kind": "kernel", "repeats": 1, "duration_ns": ns, "position": number, "name_id": number}
            for number, (_, ns) in rows
        ],
        "kernel_names": [{"name_id": number, "name": name} for number, (name, _) in rows],
        "_step_totals": [STEP],
    }


SMALL = (SUM_OF_TWO, 1_500)
CHAIN = (MINUS, 30_000), (SCALED, 20_000), (VECTOR_PRODUCT, 40_000), SMALL


def test_an_array_is_computed_in_each_iteration(run_rule):
    (row,) = run_rule("invariant-array", **iterate(*CHAIN))
    assert (row["operations"], row["kernels"]) == (2, "neg_kernel_cuda, MulFunctor")
    assert row["chain_ns"] == 12 * 50_000
    # It stays once.
    assert row["recoverable_ns"] == 11 * 50_000


@pytest.mark.parametrize(
    "loop",
    [
        # What the chain reads is written in the iteration: by an operation on two arrays, a product, a copy.
        iterate((SUM_OF_TWO, 40_000), *CHAIN),
        iterate((BF16, 40_000), *CHAIN),
        iterate((TO_OTHER_LAYOUT, 40_000), *CHAIN),
        iterate(*CHAIN, (SUM_OF_TWO, 5_001)),
        # The cured program, layers of a model, small arrays, and nothing that sums up.
        iterate((VECTOR_PRODUCT, 40_000), SMALL),
        iterate(*CHAIN, times=7),
        iterate((MINUS, 9_999), (VECTOR_PRODUCT, 40_000)),
        iterate((MINUS, 30_000), (POWER, 30_000)),
    ],
)
def test_other_loops_compute_no_array_again(loop, run_rule):
    assert not run_rule("invariant-array", **loop)


def test_a_loop_in_each_step_is_found_in_a_trace(tmp_path):
    trace = launch_in_turn((MINUS, 30_000), (POWER, 30_000), (VECTOR_PRODUCT, 30_000), SMALL, times=12)
    findings = find(trace, tmp_path, "invariant-array", "fusion")
    finding = findings["invariant-array"]
    assert finding.evidence.startswith("2 operations on one large array each (neg_kernel_cuda, exp_kernel_cuda) run in")
    assert finding.recoverable_ns == pytest.approx(11 * 60_000, rel=0.01)
    assert "once before the loop" in finding.action
    assert finding.does_explain(findings["fusion"])


DOUBLE_FFT = "void regular_fft<(unsigned int)1024, EPT<(unsigned int)8>, unsigned int, double, HostConfig>(T9)"


DOT_PRODUCT = "void cub::detail::reduce::DeviceReduceKernel<cub::detail::reduce::policy_hub<double, unsigned int>>(T2)"


@pytest.mark.parametrize(
    ("name", "is_double"),
    [
        ("cupy_multiply__complex128_complex128_complex128", True),
        ("cupy_true_divide__float64_float_float64", True),
        (DOUBLE_FFT, True),
        (MINUS.replace("lambda(float)", "lambda(double)"), True),
        (SCALED.replace("BUnaryFunctor<float", "BUnaryFunctor<double"), True),
        ("void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<double>>(T3)", True),
        # Casts to FP32, factors of FP64 for arrays of FP32, and kernels of the program itself.
        ("cupy_copy__float64_float32", False),
        ("cupy_multiply__float32_float_float32", False),
        (DOUBLE_FFT.replace("double", "float"), False),
        (MINUS, False),
        (
            "void multi_tensor_apply_kernel<FusedAdamMathFunctor<float, (int)4>, double, double>(T1)",
            False,
        ),
        ("void relax<double>(double *)", False),
        (DOT_PRODUCT, False),
    ],
)
def test_arrays_in_fp64_by_name(name, is_double, run_rule):
    shape = {"name": name, "total_ns": 600_000, "calls": 2, "avg_ns": 300_000, "kernel_time_pct": 60.0}
    rows = run_rule("fp64-arrays", _steady_shapes=[shape], gpu_peaks=PEAKS, memcpys=[INPUT], _step_totals=[STEP])
    assert [(row["recoverable_ns"], row["saving_low_ns"]) for row in rows] == [(300_000, 120_000)] * is_double


@pytest.mark.parametrize(
    ("changes", "ratio", "share"),
    [
        ({}, 2, 0.5),
        ({}, 32, 0.9),
        ({"avg_ns": 9_999}, 2, None),
        ({"kernel_time_pct": 29.9}, 2, None),
    ],
)
def test_arrays_in_fp64_by_time(changes, ratio, share, run_rule):
    peaks = [{"precision": name, "tflop_per_s": rate} for name, rate in (("fp32", 64.0), ("fp64", 64.0 / ratio))]
    shape = {"name": DOUBLE_FFT, "total_ns": 600_000, "calls": 1, "avg_ns": 600_000, "kernel_time_pct": 60.0, **changes}
    rows = run_rule("fp64-arrays", _steady_shapes=[shape], gpu_peaks=peaks, memcpys=[INPUT], _step_totals=[STEP])
    assert [row["recoverable_ns"] for row in rows] == ([share * 600_000] if share else [])


@pytest.mark.parametrize(
    ("name", "calls", "read_bytes", "is_found"),
    [
        # One sum to one number that stays on the GPU is no solver.
        (DOT_PRODUCT, 1, 1024, True),
        (DOT_PRODUCT, 2, 1024, False),
        (DOT_PRODUCT, 1, 8, False),
        ("void dot_kernel<double, (int)128, (int)0>(T3)", 1, 1024, False),
    ],
)
def test_a_solver_needs_fp64(name, calls, read_bytes, is_found, run_rule):
    shapes = [
        {"name": name, "total_ns": 500_000, "calls": calls, "avg_ns": 500_000, "kernel_time_pct": 50.0}
        for name in ("cupy_multiply__float64_float64_float64", name)
    ]
    rows = run_rule(
        "fp64-arrays", _steady_shapes=shapes, gpu_peaks=PEAKS, _step_totals=[STEP],
        memcpys=[{**INPUT, "copy_kind": "D2H", "size_bytes": read_bytes}],
    )  # fmt: skip
    assert len(rows) == is_found


def test_arrays_in_fp64_are_found_in_a_trace_of_cupy(tmp_path):
    trace = launch_in_turn(("cupy_multiply__float64_float64_float64", 100_000), ("cupy_sum", 50_000))
    finding = find(trace, tmp_path, "fp64-arrays")["fp64-arrays"]
    assert "in 4 kernels with FP64 in their names, most in cupy_multiply__float64_float64_float64" in finding.evidence
    assert "dtype=cupy.float32" in finding.action
    assert finding.caveat.startswith("The results need more than the 7 digits of FP32")


def test_real_data_are_transformed_as_complex_numbers(tmp_path):
    transform = DOUBLE_FFT.replace("double", "float")
    to_complex = (
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::"
        "[lambda(c10::complex<float>) (instance 1)], at::native::memory::LoadWithCast<(int)1>>(int, T1)"
    )
    trace = launch_in_turn((to_complex, 40_000), (transform, 60_000), (SCALED, 40_000), (transform, 60_000))
    finding = find(trace, tmp_path)["Real data are transformed as complex numbers"]
    assert finding.evidence.startswith("4 conversions per step of 40 µs from real to complex numbers")
    assert "rfft2" in finding.action
    assert (finding.saving_low_ns, finding.recoverable_ns) == pytest.approx((200_000, 496_000), rel=0.03)


FP32_ATTENTION = "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)"


def test_attention_in_fp32_where_products_have_16_bits(tmp_path):
    trace = launch_in_turn((BF16, 50_000), (CAST, 10_000), (FP32_ATTENTION, 200_000), (CAST, 10_000))
    finding = find(trace, tmp_path)["Attention runs in FP32, matrix products in a smaller type"]
    assert finding.evidence.startswith("4 calls per step of 200 µs of an attention kernel for FP32 (fmha_cutlassF_f32")
    assert "bfloat16" in finding.action
    # With the casts.
    assert (finding.saving_low_ns, finding.recoverable_ns) == pytest.approx((480_000, 840_000), rel=0.01)
