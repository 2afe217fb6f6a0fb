"""Rules about kernels: precision, attention, optimizer, layouts, sizes, conversions, loss, embedding."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import ailments
import pytest
from ailments import FP32, FP64, LARGE, MS, NATIVE, run_steps
from opening import open_trace, unpack
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


SPLIT = "void cublasLt::splitKreduce_kernel<32, 16, int, double, double, double, double, 1, 0, 0>(T1)"
ON_T4 = partial(run_on, T4, FP32, FP32, "volta_dgemm_64x64_nn", "volta_dgemm_64x64_nn", SPLIT)
ON_GEFORCE = partial(run_on, GEFORCE, FP32, FP32)


def test_an_idle_gpu_is_not_helped_by_faster_kernels(findings_of):
    kernels = (partial(ailments.gemms, FP32), partial(ailments.gemms, FP64), ailments.odd_sizes, ailments.convolutions)

    def work(loop, _):
        loop.python(60 * MS)
        loop.launch("another(float *)", 1_000)

    make = partial(ailments.in_turn, *kernels, ailments.losses, ailments.embeddings, partial(run_steps, work))
    assert not findings_of(make)


class TestPrecision:
    def test_fp32_products_are_counted(self, find):
        finding = find("fp32-gemm", ailments.INFERENCE)
        assert finding.values["gemm_ns"] == 4 * MS
        assert finding.values["calls"] == 4
        assert finding.values["peak_ratio"] == pytest.approx(8)
        assert saving(finding) == (2.4 * MS, 3.6 * MS)
        assert "TF32" in finding.evidence

    @pytest.mark.parametrize(("make", "low", "high"), [(ON_T4, 0.4375, 0.875), (ON_GEFORCE, 0.25, 0.5)])
    def test_a_gpu_without_a_faster_tf32_uses_16_bits(self, make, low, high, find):
        finding = find("fp32-gemm", make)
        assert saving(finding) == (low * 2 * MS, high * 2 * MS)
        assert "TF32" not in finding.evidence + finding.action
        assert "FP16" in finding.evidence

    def test_fp64_products_save_little_on_a_gpu_with_fp64_tensor_cores_unless_in_tf32(self, find):
        finding = find("fp64-gemm", ailments.INFERENCE)
        assert (finding.values["gemm_ns"], finding.values["calls"]) == (4 * MS, 4)
        assert saving(finding) == (0.12 * 4 * MS, 0.95 * 4 * MS)
        assert "TF32" in finding.evidence

    def test_fp64_products_save_much_on_a_gpu_for_graphics(self, find):
        finding = find("fp64-gemm", ON_T4)
        assert saving(finding) == (0.8 * 3 * MS, 0.9 * 3 * MS)
        assert finding.values["peak_ratio"] == pytest.approx(32)
        # One product is split: the reduction of its parts is no other product.
        assert (finding.values["calls"], finding.values["gemm_ns"]) == (2, 3 * MS)


SOFTMAX = "void softmax_warp_forward<float, float, float, 11, false, false>(int)"
# What runs between two products, and has a softmax or looks like one.
NO_ATTENTION = {
    "log-softmax": ["cunn_SoftMaxForward<4, float, LogSoftMaxForwardEpilogue>(int)"],
    "loss": [SOFTMAX, "void nll_loss_forward_reduce_cuda_kernel_2d<float>(int)"],
    "experts": [SOFTMAX, "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)"],
    "far apart": [SOFTMAX, *[NATIVE.format(f"Functor{number}") for number in range(12)]],
    "no softmax": [NATIVE.format("GeluCUDAKernelImpl")],
    "compiled loss": ["triton_red_fused_prepare_softmax_online_0", "triton_red_fused__to_copy_gather_log_mean_neg_1"],
}


def between_products(*, layers=2):
    """Run kernels of 300 µs between two products: those of `NO_ATTENTION`, and at the end a softmax alone."""

    def body(loop, _):
        for names in (*NO_ATTENTION.values(), [SOFTMAX]):
            loop.launch("void vectorized_gather_kernel<16, long>(char *)", 20_000, **LARGE)
            for _ in range(layers):
                loop.launch("void vectorized_layer_norm_kernel<float, float>(int)", 20_000, **LARGE)
                loop.launch("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNN", 200_000, **LARGE)
                for name in names:
                    loop.launch(name, 300_000, **LARGE)
                loop.launch("nvjet_sm90_tst_64x512_64x2_1x2_h_bz_coopB_NNT", 200_000, **LARGE)
            loop.launch("separate(float *)", 90_000, **LARGE)

    return run_steps(body, sync=False, nvtx="step")


class TestAttention:
    def test_the_chain_is_measured_from_product_to_product(self, find):
        finding = find("attention-unfused", ailments.INFERENCE)
        assert finding.values["chain_ns"] == pytest.approx(4 * 1.4 * MS, rel=0.01)
        assert finding.values["gemm_ns"] == pytest.approx(4 * 0.4 * MS, rel=0.01)
        assert finding.values["softmax_ns"] == pytest.approx(4 * 0.7 * MS, rel=0.01)
        assert (finding.values["kernels"], finding.values["layers"]) == (2, 4)
        assert saving(finding) == (3.2 * MS, 5.28 * MS)

    def test_another_softmax_is_no_attention(self, find):
        """Of the sequences between two products, only the softmax alone is attention."""
        values = find("attention-unfused", between_products).values
        assert (values["kernels"], values["layers"], values["softmax_ns"]) == (1, 2, 2 * 300_000)
        assert values["chain_ns"] == pytest.approx(2 * 700_000)


class TestOptimizer:
    def test_its_kernels_are_counted(self, find):
        finding = find("optimizer-per-parameter", ailments.TRAINING)
        # A fused norm of the gradients does not hide them.
        assert finding.values["kernels"] == 100
        assert (finding.values["tensors"], finding.values["kernels_each"]) == (20, 5)
        assert finding.profiled_ns == pytest.approx(0.9 * finding.values["update_ns"])
        # The low bound takes 45% of it, and nsys may have added all of that.
        assert finding.saving_low_ns == 0

    def test_momentum_is_an_optimizer_where_gradients_are_computed(self, find):
        finding = find("optimizer-per-parameter", partial(ailments.momentum, has_backward=True))
        assert "among them Functor_add, MulFunctor" in finding.evidence


class TestConversions:
    def test_conversions_before_products_are_counted(self, find):
        finding = find("weight-casts", ailments.INFERENCE)
        assert finding.values["casts"] == 16
        assert finding.values["products"] == 8
        assert finding.values["cast_ns"] == pytest.approx(16 * 20_000, rel=0.01)
        assert finding.values["launch_pct"] == pytest.approx(100 * 16 / 89, rel=0.01)
        assert "late-host" not in finding.explains
        assert 0.6 * 16 * 20_000 * 0.9 < finding.saving_low_ns < finding.recoverable_ns < 3 * finding.saving_low_ns

    def test_many_of_the_launches_are_their_cause(self, find):
        assert "late-host" in find("weight-casts", ailments.casts).explains


class TestLoss:
    def test_the_log_softmax_is_measured(self, find):
        finding = find("cross-entropy-unfused", ailments.TRAINING)
        assert finding.values["loss_ns"] == MS
        assert finding.values["calls"] == 2
        assert finding.values["loss_pct"] == pytest.approx(100 / 5.98, rel=0.01)
        assert saving(finding) == (0.6 * MS, 1.7 * MS)


class TestEmbedding:
    def test_the_sort_belongs_to_it(self, find):
        finding = find("embedding-sort", ailments.TRAINING)
        assert finding.values["backward_ns"] == 300_000
        assert (finding.values["sort_ns"], finding.values["sorts"]) == (60_000, 1)
        assert saving(finding) == (0.4 * 300_000, 0.75 * 300_000)


# The rule, what the cures saved in ms per step, measured without the profiler, and a word of the cure. The first
# finding may have it from the catalog of constructs, which names the same operation.
SAVINGS = {
    "fp32": ("fp32-gemm", 49.8 - 14.3, "TF32"),
    "adam": ("optimizer-per-parameter", 26.5 - 14.6, "fused=True"),
    "attention": ("attention-unfused", 11.5 - 2.3, "scaled_dot_product_attention"),
}


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(CLINIC.glob("*.sqlite.xz")), ids=lambda path: path.name.split(".")[0])
def test_real_traces_have_the_ailment_and_no_other(path):
    name = path.name.split(".")[0]
    with open_trace(unpack(path)) as trace:
        findings = trace.diagnose().findings
    fired = {entry.name: entry for top in findings for entry in (top, *top.also) if entry.name in RULES}
    assert set(fired) == ({SAVINGS[name][0]} if name in SAVINGS else set())
    if name in SAVINGS:
        rule, saved_ms, cure = SAVINGS[name]
        assert findings[0].name in {rule, "replaceable-construct"}
        assert cure in findings[0].action
        assert fired[rule].saving_low_ns <= saved_ms * MS <= fired[rule].recoverable_ns
