"""Work that a program can leave out: copies of joined tensors, weights and layers that are computed again."""

from __future__ import annotations

import ailments
import pytest
from ailments import BF16, LARGE, MS, NATIVE, run_steps
from opening import evaluate_rules, open_trace
from synthetic import Trace

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


@pytest.mark.parametrize(
    "trace",
    [
        # Small tensors, such as the halves of a rotary embedding.
        decode(4_000),
        # The gradient of a split tensor.
        decode(200_000, (ATTENTION_GRADIENT, 200_000)),
        launch_in_turn((BF16, MS), (JOIN, 20_000)),
    ],
)
def test_other_concatenations_are_no_finding(trace, tmp_path):
    assert find(trace, tmp_path).keys().isdisjoint({JOINED, JOINED_BEFORE_ATTENTION})


def test_large_tensors_are_joined(tmp_path):
    finding = find(launch_in_turn((BF16, 100_000), (JOIN, 200_000)), tmp_path)[JOINED]
    assert finding.action.startswith("Allocate the joined tensor once. If it grows")
    assert "none of them grows" in finding.caveat


def test_large_arrays_of_cupy_are_joined(tmp_path):
    trace = launch_in_turn(("cupy_multiply__float32_float32_float32", 50_000), (CUPY_JOIN, 200_000))
    finding = find(trace, tmp_path)["Large arrays are joined, which copies all of them"]
    assert finding.evidence.startswith("4 concatenations per step of 200 µs")


def synthesize(*added):
    return launch_in_turn((WEIGHT.format("fwd"), 3_000), (CONVOLUTION, 6_000), *added)


def test_weights_are_normalized_in_inference(tmp_path):
    finding = find(synthesize(), tmp_path)[NORMALIZED]
    assert finding.evidence.startswith("4 weights per step are computed from their direction and length (weight_norm_")
    assert "remove_parametrizations" in finding.action
    assert {"repeated-sequence", "late-host"} <= set(finding.explains)


@pytest.mark.parametrize(
    "other",
    [
        WEIGHT.format("bwd"),
        "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::TensorListMetadata<(int)4>>(T1)",
    ],
)
def test_weights_change_in_training(other, tmp_path):
    assert NORMALIZED not in find(synthesize((other, 3_000)), tmp_path)


LAYERS = ((GATHER, 500_000), (BF16, 200_000), (ACTIVATION, 200_000), (MAXIMUM, 100_000))


def test_rows_are_gathered_before_layers(tmp_path):
    finding = find(launch_in_turn(*LAYERS), tmp_path)[GATHERED]
    assert finding.saving_low_ns == 0
    assert finding.recoverable_ns == pytest.approx(0.9 * (4 * 400_000 + 20_000), rel=0.01)
    assert finding.caveat.startswith("each row is gathered once")
    assert "self.pool(x)[neighbors]" in finding.action


@pytest.mark.parametrize(
    "kernels",
    [
        # An embedding; a gather and no layer after it; the tokens of experts; training.
        ((GATHER, 5_000), *LAYERS[1:]),
        (LAYERS[0], LAYERS[3], LAYERS[1], LAYERS[2]),
        (*LAYERS, ("void at::native::sbtopk::gatherTopK<float, unsigned int, (int)2, (bool)0>(T1)", 5_000)),
        (*LAYERS, (NATIVE.format("threshold_backward_kernel"), 100_000)),
    ],
)
def test_other_gathers_are_no_finding(kernels, tmp_path):
    assert GATHERED not in find(launch_in_turn(*kernels), tmp_path)


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


def test_half_of_the_layers_are_computed_again(tmp_path):
    finding = find(train(recomputed=3), tmp_path, "recomputation")["recomputation"]
    assert finding.recoverable_ns == pytest.approx(3 * 410_000, rel=0.01)


@pytest.mark.parametrize(
    "program",
    [
        {},
        {"evaluations": 2, "rounds": 2},
        # Which thread launches the backward pass is what tells the two apart.
        {"recomputed": 6, "backward_thread": False},
    ],
)
def test_usual_training_computes_nothing_again(program, tmp_path):
    assert not find(train(**program), tmp_path, "recomputation")


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
