"""`fusion` on chains of PyTorch and HF: the names of the chains, and the boundaries that they never cross."""

from __future__ import annotations

import pytest
from opening import open_trace
from synthetic import Trace

VECTOR = "void at::native::vectorized_elementwise_kernel<(int)4, at::native::"
BROAD = "void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<at::native::"
REDUCE = "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::"
# The kernel names of PyTorch. x - y is an add with a factor of -1.
KERNELS = {
    "add": f"{BROAD}CUDAFunctor_add<float>>(at::TensorIteratorBase &)>(int, T3)",
    "sub": f"{BROAD}CUDAFunctor_add<float>>(at::TensorIteratorBase &)>(int, T3)",
    "add scalar": f"{VECTOR}CUDAFunctorOnSelf_add<float>, std::array<char *, (unsigned long)2>>(int, T2, T3)",
    "mul": f"{BROAD}BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>>(int, T3)",
    "mul scalar": f"{VECTOR}AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>>(int)",
    "div": f"{BROAD}BinaryFunctor<float, float, float, at::native::binary_internal::DivFunctor<float>>>(int, T3)",
    "pow": f"{VECTOR}<unnamed>::pow_tensor_scalar_kernel_impl<float, float>(at::TensorIteratorBase &, T2)>(int)",
    "mean": f"{REDUCE}MeanOps<float>>>(T3)",
    "var": f"{REDUCE}WelfordOps<float>>>(T3)",
    "rsqrt": f"{VECTOR}rsqrt_kernel_cuda(at::TensorIteratorBase &)>(int, T2, T3)",
    "sqrt": f"{VECTOR}sqrt_kernel_cuda(at::TensorIteratorBase &)>(int, T2, T3)",
    "tanh": f"{VECTOR}tanh_kernel_cuda(at::TensorIteratorBase &)>(int, T2, T3)",
    "relu": "clip_relu(float *)",
    "inductor": "triton_poi_fused_add_mul_5",
    "split-k": "void cublasLt::splitKreduce_kernel<(int)32, (int)16, int, float>(cublasLt::cublasSplitKParams<T6>)",
    "layout": "void cudnn::ops::nchwToNhwcKernel<float, float, float, (bool)0>(cudnn::ops::nchw2nhwc_params_t<T3>)",
}


def make_program(chain, *, between=lambda *_: None, steps=8, blocks=3, api=4_000, think=5_000, runs=2_000):
    """Make steps of blocks: a matrix product and the chain. `between` runs before each kernel of the chain."""
    trace = Trace()
    host = trace.thread()
    for _ in range(steps):
        with host.nvtx("step"):
            for _ in range(blocks):
                host.launch("gemm_up(float *)", api=api, runs=3 * runs).idle(think)
                for index, name in enumerate(chain):
                    between(host, index)
                    host.launch(KERNELS[name], api=api, runs=runs).idle(think)
            host.copy("D2H", 8, blocking=True)
    return trace


def find_candidates(trace, folder):
    with open_trace(trace.write(folder / "trace.sqlite")) as opened_trace:
        return opened_trace.answer("fusion").frame().to_dicts()


def full_candidate(rows, count):
    """Return the candidate with this number of kernels that is in every block."""
    (row,) = [row for row in rows if row["kernel_count"] == count and row["per_step"] == 3]
    return row


# Names of chains -----------------------------------------------------------------------------------------------

LAYER_NORMS = {
    "centred, squared, rsqrt": "mean sub pow mean add rsqrt mul mul add",
    "squared by a product": "mean sub mul mean add rsqrt mul mul add",
    "centred anew": "mean sub pow mean sub add sqrt div mul add",
    "by the deviation": "mean var sub mul add div add",
    "by the variance": "mean var sub add sqrt div mul add",
    "without weights": "mean sub pow mean add rsqrt mul",
}


@pytest.mark.slow
@pytest.mark.parametrize("chain", LAYER_NORMS.values(), ids=LAYER_NORMS)
def test_a_chain_that_centers_by_the_mean_is_a_layer_norm(chain, tmp_path):
    chain = chain.split()
    rows = find_candidates(make_program(chain), tmp_path)
    row = full_candidate(rows, len(chain))
    assert (row["pattern"], row["verdict"]) == ("LayerNorm", "YES")
    assert "layer_norm" in row["remedy"]
    assert "RMSNorm" not in {row["pattern"] for row in rows}
    assert "residual + RMSNorm" not in {row["pattern"] for row in rows}


@pytest.mark.slow
def test_a_layer_norm_after_a_residual(tmp_path):
    chain = ["add", *LAYER_NORMS["centred, squared, rsqrt"].split()]
    assert full_candidate(find_candidates(make_program(chain), tmp_path), 10)["pattern"] == "residual + LayerNorm"


@pytest.mark.parametrize("chain", ["mean add rsqrt mul mul", "var add rsqrt mul mul"])
def test_a_chain_that_does_not_center_is_not_a_layer_norm(chain, tmp_path):
    assert "LayerNorm" not in {row["pattern"] for row in find_candidates(make_program(chain.split()), tmp_path)}


@pytest.mark.slow
def test_an_rms_norm_is_recognized_with_and_without_a_residual(tmp_path):
    chain = ["pow", "mean", "add", "rsqrt", "mul", "mul"]
    assert full_candidate(find_candidates(make_program(chain), tmp_path), 6)["pattern"] == "RMSNorm"
    assert (
        full_candidate(find_candidates(make_program(["add", *chain]), tmp_path), 7)["pattern"] == "residual + RMSNorm"
    )


GELUS = {
    "HF's new": ["mul scalar", "pow", "mul scalar", "add", "mul scalar", "tanh", "add scalar", "mul"],
    "HF's fast": ["mul scalar", "mul scalar", "mul scalar", "mul", "add scalar", "mul", "tanh", "add scalar", "mul"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("chain", GELUS.values(), ids=GELUS)
def test_the_complete_tanh_gelu_is_recognized(chain, tmp_path):
    row = full_candidate(find_candidates(make_program(chain), tmp_path), len(chain))
    assert (row["pattern"], row["verdict"]) == ("GELU in pieces", "YES")


@pytest.mark.slow
def test_a_gelu_without_its_half_is_another_function(tmp_path):
    chain = GELUS["HF's new"][1:]
    assert "GELU in pieces" not in {row["pattern"] for row in find_candidates(make_program(chain), tmp_path)}


# Boundaries of chains --------------------------------------------------------------------------------------------


def joined_chains(rows):
    """Return the chains that may be fused and have both kinds of kernels."""
    return [row for row in rows if row["verdict"] != "NO" and {"add", "tanh"} <= set(row["chain"].split(" → "))]


CHAIN = ["mul", "add", "tanh", "mul"]


@pytest.mark.slow
def test_a_chain_within_one_thread_and_range_is_found(tmp_path):
    assert joined_chains(find_candidates(make_program(CHAIN), tmp_path))


@pytest.mark.slow
def test_never_across_host_threads(tmp_path):
    trace = Trace()
    host, other = trace.thread(), trace.thread(tid=101)
    for _ in range(8):
        with host.nvtx("step"):
            for _ in range(3):
                host.launch("gemm_up(float *)", runs=6_000).idle(5_000)
                for name in CHAIN[:2]:
                    host.launch(KERNELS[name], runs=2_000).idle(5_000)
                other.now = host.now
                for name in CHAIN[2:]:
                    other.launch(KERNELS[name], runs=2_000).idle(5_000)
                host.now = other.now
            host.copy("D2H", 8, blocking=True)
    rows = find_candidates(trace, tmp_path)
    assert joined_chains(rows) == []
    assert "different host threads launch them" in {row["reason"] for row in rows}


def make_ranges(names, *, blocks=1):
    """Make steps with ranges that launch two kernels each."""
    trace = Trace()
    host = trace.thread()
    for number in range(8):
        with host.nvtx(f"step {number}"):
            for block in range(blocks):
                host.launch("gemm_up(float *)", runs=6_000).idle(5_000)
                for name, chain in zip(names, (CHAIN[:2], CHAIN[2:]), strict=True):
                    with host.nvtx(name.replace("#", str(block))):
                        for kernel in chain:
                            host.launch(KERNELS[kernel], runs=2_000).idle(5_000)
            host.copy("D2H", 8, blocking=True)
    return trace


@pytest.mark.slow
@pytest.mark.parametrize("names", [("forward", "backward"), ("backward", "optimizer")])
def test_never_across_the_phases_of_a_step(names, tmp_path):
    rows = find_candidates(make_ranges(names, blocks=2), tmp_path)
    assert joined_chains(rows) == []
    assert f"they are in different NVTX ranges ({names[0]}, {names[1]})" in {row["reason"] for row in rows}


@pytest.mark.slow
@pytest.mark.parametrize("names", [("layer_#", "layer_1#"), ("aten::mul, seq = 1", "aten::tanh, seq = 2")])
def test_layers_and_operators_do_not_separate_chains(names, tmp_path):
    assert joined_chains(find_candidates(make_ranges(names, blocks=2), tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["inductor", "split-k", "layout"])
def test_never_through_the_kernels_of_a_compiler_or_a_library(kernel, tmp_path):
    rows = find_candidates(make_program(["mul", "add", kernel, "tanh", "mul"]), tmp_path)
    assert joined_chains(rows) == []
    assert not any(KERNELS[kernel] in row["chain"] or "inductor" in row["chain"] for row in rows)


@pytest.mark.slow
def test_never_across_cpu_work(tmp_path):
    rows = find_candidates(
        make_program(CHAIN, between=lambda host, index: host.idle(300_000) if index == 2 else None), tmp_path
    )
    assert joined_chains(rows) == []
    assert "0.3 ms of CPU time are between them" in {row["reason"] for row in rows}


@pytest.mark.slow
def test_the_low_bound_does_not_include_cpu_time_between_two_launches(tmp_path):
    # The certain saving of host time is three launch calls of 4 µs, in each of three blocks.
    row = full_candidate(find_candidates(make_program(CHAIN, think=50_000), tmp_path), 4)
    assert row["host_low_ns"] <= 3 * 3 * 4_000
    assert row["saved_low_ns"] <= 3 * 3 * 4_000
    assert row["saved_high_ns"] >= 3 * 3 * 54_000 - 1
