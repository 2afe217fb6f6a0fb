"""Rules about kernels: precision, attention, optimizer, layouts, sizes, conversions, loss, embedding."""

from __future__ import annotations

import lzma
from functools import partial
from pathlib import Path

import ailments
import pytest
from ailments import BF16, CONVERSION, FP32, FP64, LARGE, MS, NATIVE, run_steps
from opening import open_trace
from planted import Loop, planted
from synthetic import Trace

RULES = ailments.FAMILIES["kernels"]
CLINIC = Path(__file__).parents[2] / "shared" / "clinic"
T4 = (("name", "Tesla T4"), ("computeMajor", 7), ("computeMinor", 5), ("smMajor", 7), ("smMinor", 5))
GEFORCE = (
    ("name", "NVIDIA GeForce RTX 3090"),
    ("computeMajor", 8),
    ("computeMinor", 6),
    ("smMajor", 8),
    ("smMinor", 6),
)


@pytest.fixture
def find(findings_of):
    """Give a function that returns one finding of a planted program, or None."""
    return lambda name, make: findings_of(make).get(name)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_fires_on_its_program_and_not_on_cured_ones(name, findings_of):
    ailments.check_rule(name, findings_of)


def saving(finding):
    return pytest.approx(finding.saving_low_ns, rel=0.02), pytest.approx(finding.recoverable_ns, rel=0.02)


def run_on(gpu, *names):
    """Launch kernels of 1 ms on a GPU."""
    loop = Loop(Trace().gpu(**dict(gpu)))
    for _ in range(10):
        loop.step()
        for name in names:
            loop.launch(name, MS, **LARGE)
        loop.sync()
    return planted(loop.trace, loop)


class TestPrecision:
    def test_fp32_products_are_counted(self, find):
        finding = find("fp32-gemm", partial(ailments.gemms, FP32))
        assert finding.values["gemm_ns"] == 4 * MS
        assert finding.values["calls"] == 4
        assert finding.values["peak_ratio"] == pytest.approx(8)
        assert saving(finding) == (2.4 * MS, 3.6 * MS)
        assert "TF32" in finding.evidence

    @pytest.mark.parametrize(("gpu", "low", "high"), [(T4, 0.4375, 0.875), (GEFORCE, 0.25, 0.5)])
    def test_a_gpu_without_a_faster_tf32_uses_16_bits(self, gpu, low, high, find):
        finding = find("fp32-gemm", partial(run_on, gpu, FP32, FP32))
        assert saving(finding) == (low * 2 * MS, high * 2 * MS)
        assert "TF32" not in finding.evidence + finding.action
        assert "FP16" in finding.evidence

    @pytest.mark.parametrize(("name", "kernel"), [("fp32-gemm", FP32), ("fp64-gemm", FP64)])
    def test_an_idle_gpu_is_not_helped_by_faster_products(self, name, kernel, find):
        def body(loop, _):
            loop.launch(kernel, MS, **LARGE)
            loop.python(4 * MS)

        assert find(name, partial(run_steps, body)) is None

    def test_fp64_products_save_little_on_a_gpu_with_fp64_tensor_cores_unless_in_tf32(self, find):
        finding = find("fp64-gemm", partial(ailments.gemms, FP64))
        assert (finding.values["gemm_ns"], finding.values["calls"]) == (4 * MS, 4)
        assert saving(finding) == (0.12 * 4 * MS, 0.95 * 4 * MS)
        assert "TF32" in finding.evidence

    def test_fp64_products_save_much_on_a_gpu_for_graphics(self, find):
        finding = find("fp64-gemm", partial(run_on, T4, "volta_dgemm_64x64_nn", "volta_dgemm_64x64_nn"))
        assert saving(finding) == (0.8 * 2 * MS, 0.9 * 2 * MS)
        assert finding.values["peak_ratio"] == pytest.approx(32)

    def test_a_product_with_a_vector_is_bounded_by_its_bytes(self, find):
        name = "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, double, double, double>(T1)"
        finding = find("fp64-gemm", partial(ailments.gemms, name))
        assert saving(finding) == (0.3 * 4 * MS, 0.5 * 4 * MS)
        assert finding.place == "gemvx::kernel"
        assert "peak" not in finding.evidence

    def test_a_split_product_counts_once(self, find):
        reduction = "void cublasLt::splitKreduce_kernel<32, 16, int, double, double, double, double, 1, 0, 0>(T1)"
        finding = find("fp64-gemm", partial(run_on, T4, "volta_dgemm_64x64_nn", reduction))
        assert (finding.values["calls"], finding.values["gemm_ns"]) == (1, 2 * MS)


def between_products(*names, layers=4):
    """Run kernels of 300 µs between two products, and a product elsewhere."""

    def body(loop, _):
        loop.launch("void vectorized_gather_kernel<16, long>(char *)", 20_000, **LARGE)
        for _ in range(layers):
            loop.launch("void vectorized_layer_norm_kernel<float, float>(int)", 20_000, **LARGE)
            loop.launch("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNN", 200_000, **LARGE)
            for name in names:
                loop.launch(name, 300_000, **LARGE)
            loop.launch("nvjet_sm90_tst_64x512_64x2_1x2_h_bz_coopB_NNT", 200_000, **LARGE)
        loop.launch("nvjet_sm90_tst_192x64_64x4_1x2_h_bz_coopA_TNT", 90_000, **LARGE)

    return run_steps(body, sync=False)


SOFTMAX = "void softmax_warp_forward<float, float, float, 11, false, false>(int)"


class TestAttention:
    def test_the_chain_is_measured_from_product_to_product(self, find):
        finding = find("attention-unfused", ailments.attention)
        assert finding.values["chain_ns"] == pytest.approx(4 * 1.4 * MS, rel=0.01)
        assert finding.values["gemm_ns"] == pytest.approx(4 * 0.4 * MS, rel=0.01)
        assert finding.values["softmax_ns"] == pytest.approx(4 * 0.7 * MS, rel=0.01)
        assert (finding.values["kernels"], finding.values["layers"]) == (2, 4)
        assert saving(finding) == (3.2 * MS, 5.28 * MS)

    @pytest.mark.parametrize(
        "names",
        [
            [
                "cunn_SoftMaxForward<4, float, LogSoftMaxForwardEpilogue>(int)",
                "nll_loss_forward_reduce_cuda_kernel_2d(int)",
            ],
            [SOFTMAX, "void nll_loss_forward_reduce_cuda_kernel_2d<float>(int)"],
            [SOFTMAX, "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)"],
            [SOFTMAX, *[NATIVE.format(f"Functor{number}") for number in range(12)]],
            [NATIVE.format("GeluCUDAKernelImpl")],
            ["triton_red_fused_prepare_softmax_online_0", "triton_red_fused__to_copy_gather_log_mean_neg_1"],
        ],
        ids=["log-softmax", "loss", "experts", "far apart", "no softmax", "compiled loss"],
    )
    def test_another_softmax_is_no_attention(self, names, find):
        assert find("attention-unfused", partial(between_products, *names)) is None

    def test_the_same_kernels_with_a_softmax_alone_are(self, find):
        assert find("attention-unfused", partial(between_products, SOFTMAX)).values["kernels"] == 1


class TestOptimizer:
    def test_its_kernels_are_counted(self, find):
        finding = find("optimizer-per-parameter", ailments.optimizer)
        assert finding.values["kernels"] == 100
        assert (finding.values["tensors"], finding.values["kernels_each"]) == (20, 5)
        assert finding.profiled_ns == pytest.approx(0.9 * finding.values["update_ns"])
        # The low bound takes 45% of it, and nsys may have added all of that.
        assert finding.saving_low_ns == 0

    @pytest.mark.parametrize(("has_backward", "is_found"), [(True, True), (False, False)])
    def test_momentum_is_an_optimizer_where_gradients_are_computed(self, has_backward, is_found, find):
        def body(loop, _):
            loop.launch(BF16, 400_000, **LARGE)
            if has_backward:
                loop.launch("void softmax_warp_backward<float, float, float, 4, true, false>(int)", 5_000, **LARGE)
            for _ in range(20):
                for operation in ("BinaryFunctor<float, MulFunctor<float>>", "CUDAFunctor_add<float>"):
                    loop.launch(NATIVE.format(operation), 2_000)
                    loop.python(8_000)

        finding = find("optimizer-per-parameter", partial(run_steps, body))
        assert (finding is not None) == is_found
        assert finding is None or "among them Functor_add, MulFunctor" in finding.evidence

    def test_a_fused_norm_of_the_gradients_does_not_hide_it(self, find):
        def body(loop, _):
            loop.launch(BF16, 400_000, **LARGE)
            loop.launch("void multi_tensor_apply_kernel<TensorListMetadata<1>, LpNormFunctor<float>>(T1)", 20_000)
            for _ in range(20):
                for operation in ("mul", "lerp_scalar", "addcmul_cuda", "sqrt_kernel", "addcdiv_cuda"):
                    loop.launch(NATIVE.format(operation), 2_000)
                    loop.python(8_000)

        assert find("optimizer-per-parameter", partial(run_steps, body)).values["kernels"] == 100


class TestLayout:
    def test_batch_normalization_gets_faster_too(self, find):
        def body(loop, _):
            for _ in range(4):
                loop.launch("void cudnn::ops::nchwToNhwcKernel<__half, __half, float>(T3)", 100_000, **LARGE)
                loop.launch("sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc", 400_000, **LARGE)
                loop.launch("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 128, true>(T1)", 300_000, **LARGE)

        finding = find("layout-conversion", partial(run_steps, body))
        assert finding.values["conversion_ns"] == 400_000
        assert finding.values["calls"] == 4
        assert finding.values["norm_ns"] == 1_200_000
        assert saving(finding) == (500_000, MS)


class TestConversions:
    def test_conversions_before_products_are_counted(self, find):
        finding = find("weight-casts", ailments.casts)
        assert finding.values["casts"] == 16
        assert finding.values["products"] == 8
        assert finding.values["cast_ns"] == pytest.approx(16 * 20_000, rel=0.01)
        assert finding.values["launch_pct"] == pytest.approx(100 * 16 / 33, rel=0.01)
        assert 0.6 * 16 * 20_000 * 0.9 < finding.saving_low_ns < finding.recoverable_ns < 3 * finding.saving_low_ns

    @pytest.mark.parametrize(("activations", "is_cause"), [(0, True), (4, False)])
    def test_many_of_the_launches_are_their_cause(self, activations, is_cause, find):
        def body(loop, _):
            for _ in range(4):
                for _ in range(2):
                    loop.launch(CONVERSION, 20_000, **LARGE)
                loop.launch(BF16, 60_000, **LARGE)
                for _ in range(activations):
                    loop.launch(NATIVE.format("GeluCUDAKernelImpl"), 10_000, **LARGE)

        assert ("late-host" in find("weight-casts", partial(run_steps, body)).explains) == is_cause

    def test_conversions_elsewhere_are_not(self, find):
        def body(loop, _):
            for _ in range(8):
                loop.launch(CONVERSION, 20_000, **LARGE)
                loop.launch(CONVERSION, 20_000, **LARGE)
                loop.launch(NATIVE.format("MulFunctor"), 20_000, **LARGE)
                loop.launch(BF16, 60_000, **LARGE)

        assert find("weight-casts", partial(run_steps, body)) is None


class TestLoss:
    def test_the_log_softmax_is_measured(self, find):
        finding = find("cross-entropy-unfused", ailments.losses)
        assert finding.values["loss_ns"] == MS
        assert finding.values["calls"] == 2
        assert finding.values["loss_pct"] == pytest.approx(100 / 3.02, rel=0.01)
        assert saving(finding) == (0.6 * MS, 1.7 * MS)

    def test_a_log_softmax_without_a_loss_is_needed_itself(self, find):
        def body(loop, _):
            loop.launch(BF16, 2 * MS, **LARGE)
            loop.launch("void cunn_SoftMaxForward<4, float, LogSoftMaxForwardEpilogue>(int)", MS, **LARGE)

        assert find("cross-entropy-unfused", partial(run_steps, body)) is None

    def write_out(self, passes, *, rows=2_000):
        def body(loop, _):
            loop.launch(BF16, 2 * MS, **LARGE)
            loop.launch(NATIVE.format("exp_kernel_cuda(TensorIteratorBase &)"), 500_000, **LARGE)
            loop.launch(NATIVE.format("log_kernel_cuda(TensorIteratorBase &)"), rows)
            loop.launch("void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)", rows)
            for _ in range(passes - 1):
                loop.launch(NATIVE.format("neg_kernel_cuda(TensorIteratorBase &)"), 500_000, **LARGE)

        return run_steps(body)

    def test_a_loss_that_is_written_out_is_all_passes_over_the_matrix(self, find):
        finding = find("cross-entropy-unfused", partial(self.write_out, 12))
        assert finding.values["loss_ns"] == 6 * MS
        assert finding.values["calls"] == 12
        assert saving(finding) == (3 * MS, 5.5 * MS)
        assert "log-softmax" not in finding.evidence

    @pytest.mark.parametrize("case", [{"passes": 4}, {"passes": 12, "rows": 400_000}])
    def test_other_chains_with_an_exponential_are_no_loss(self, case, find):
        assert find("cross-entropy-unfused", partial(self.write_out, **case)) is None


class TestEmbedding:
    def test_the_sort_belongs_to_it(self, find):
        finding = find("embedding-sort", ailments.embeddings)
        assert finding.values["backward_ns"] == 300_000
        assert (finding.values["sort_ns"], finding.values["sorts"]) == (60_000, 1)
        assert saving(finding) == (0.4 * 300_000, 0.75 * 300_000)

    def test_other_sorts_do_not(self, find):
        finding = find("embedding-sort", partial(ailments.embeddings, other_sorts=3))
        assert finding.values["backward_ns"] == 240_000
        assert "sort" not in finding.evidence


# What the cures saved in ms per step, measured without the profiler.
SAVINGS = {
    "fp32": ("fp32-gemm", 49.8 - 14.3),
    "adam": ("optimizer-per-parameter", 26.5 - 14.6),
    "attention": ("attention-unfused", 11.5 - 2.3),
}


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(CLINIC.glob("*.sqlite.xz")), ids=lambda path: path.name.split(".")[0])
def test_real_traces_have_the_ailment_and_no_other(path, tmp_path):
    name = path.name.split(".")[0]
    trace_path = tmp_path / f"{name}.sqlite"
    trace_path.write_bytes(lzma.decompress(path.read_bytes()))
    with open_trace(trace_path) as trace:
        findings = trace.diagnose().findings
    fired = {entry.name: entry for top in findings for entry in (top, *top.also) if entry.name in RULES}
    assert set(fired) == ({SAVINGS[name][0]} if name in SAVINGS else set())
    if name in SAVINGS:
        rule, saved_ms = SAVINGS[name]
        assert findings[0].name == rule
        assert fired[rule].saving_low_ns <= saved_ms * MS <= fired[rule].recoverable_ns
