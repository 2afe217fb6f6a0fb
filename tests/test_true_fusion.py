"""What `fusion` says of chains as PyTorch and HF write them: what each is called, and across what it never goes."""

from __future__ import annotations

import pytest
from opening import open_trace
from synthetic import Trace

VECTOR = "void at::native::vectorized_elementwise_kernel<(int)4, at::native::"
BROAD = "void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<at::native::"
# How PyTorch calls what it runs: x - y is an add with a factor of -1.
KERNELS = {
    "add": f"{BROAD}CUDAFunctor_add<float>>(at::TensorIteratorBase &)>(int, T3)",
    "sub": f"{BROAD}CUDAFunctor_add<float>>(at::TensorIteratorBase &)>(int, T3)",
    "add scalar": f"{VECTOR}CUDAFunctorOnSelf_add<float>, std::array<char *, (unsigned long)2>>(int, T2, T3)",
    "mul": f"{BROAD}BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>>(int, T3)",
    "mul scalar": f"{VECTOR}AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>>(int)",
    "div": f"{BROAD}BinaryFunctor<float, float, float, at::native::binary_internal::DivFunctor<float>>>(int, T3)",
    "pow": f"{VECTOR}<unnamed>::pow_tensor_scalar_kernel_impl<float, float>(at::TensorIteratorBase &, T2)>(int)",
    "mean": "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::MeanOps<float>>>(T3)",
    "var": "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::WelfordOps<float>>>(T3)",
    "rsqrt": f"{VECTOR}rsqrt_kernel_cuda(at::TensorIteratorBase &)>(int, T2, T3)",
    "sqrt": f"{VECTOR}sqrt_kernel_cuda(at::TensorIteratorBase &)>(int, T2, T3)",
    "tanh": f"{VECTOR}tanh_kernel_cuda(at::TensorIteratorBase &)>(int, T2, T3)",
    "relu": "clip_relu(float *)",
    "inductor": "triton_poi_fused_add_mul_5",
    "split-k": "void cublasLt::splitKreduce_kernel<(int)32, (int)16, int, float>(cublasLt::cublasSplitKParams<T6>)",
    "layout": "void cudnn::ops::nchwToNhwcKernel<float, float, float, (bool)0>(cudnn::ops::nchw2nhwc_params_t<T3>)",
}


def program(chain, *, between=lambda host, at: None, steps=8, blocks=3, api=4_000, think=5_000, runs=2_000):
    """Steps of blocks of a product and the chain; `between` happens before the chain's kernel number `at`."""
    trace = Trace()
    host = trace.thread()
    for _ in range(steps):
        with host.nvtx("step"):
            for _ in range(blocks):
                host.launch("gemm_up(float *)", api=api, runs=3 * runs).idle(think)
                for at, name in enumerate(chain):
                    between(host, at)
                    host.launch(KERNELS[name], api=api, runs=runs).idle(think)
            host.copy("D2H", 8, blocking=True)
    return trace


def found(trace, folder):
    with open_trace(trace.write(folder / "trace.sqlite")) as opened:
        return opened.answer("fusion").frame().to_dicts()


def whole(rows, count):
    """The candidate of so many kernels, in every block."""
    (row,) = [row for row in rows if row["kernel_count"] == count and row["per_step"] == 3]
    return row


# What a chain is called -----------------------------------------------------------------------------------------------

LAYER_NORMS = {
    "centred, squared, rsqrt": "mean sub pow mean add rsqrt mul mul add",
    "squared by a product": "mean sub mul mean add rsqrt mul mul add",
    "centred anew": "mean sub pow mean sub add sqrt div mul add",
    "by the deviation": "mean var sub mul add div add",
    "by the variance": "mean var sub add sqrt div mul add",
    "without weights": "mean sub pow mean add rsqrt mul",
}


@pytest.mark.parametrize("chain", LAYER_NORMS.values(), ids=LAYER_NORMS)
def test_what_centres_by_the_mean_is_a_layer_norm(chain, tmp_path):
    chain = chain.split()
    rows = found(program(chain), tmp_path)
    row = whole(rows, len(chain))
    assert (row["pattern"], row["verdict"]) == ("LayerNorm", "YES")
    assert "layer_norm" in row["remedy"]
    assert "RMSNorm" not in {row["pattern"] for row in rows}
    assert "residual + RMSNorm" not in {row["pattern"] for row in rows}


def test_a_layer_norm_after_a_residual(tmp_path):
    chain = ["add", *LAYER_NORMS["centred, squared, rsqrt"].split()]
    assert whole(found(program(chain), tmp_path), 10)["pattern"] == "residual + LayerNorm"


@pytest.mark.parametrize("chain", ["mean add rsqrt mul mul", "var add rsqrt mul mul"])
def test_what_does_not_centre_is_no_layer_norm(chain, tmp_path):
    assert "LayerNorm" not in {row["pattern"] for row in found(program(chain.split()), tmp_path)}


def test_an_rms_norm_is_still_one_with_and_without_a_residual(tmp_path):
    chain = "pow mean add rsqrt mul mul".split()
    assert whole(found(program(chain), tmp_path), 6)["pattern"] == "RMSNorm"
    assert whole(found(program(["add", *chain]), tmp_path), 7)["pattern"] == "residual + RMSNorm"


GELUS = {
    "HF's new": ["mul scalar", "pow", "mul scalar", "add", "mul scalar", "tanh", "add scalar", "mul"],
    "HF's fast": ["mul scalar", "mul scalar", "mul scalar", "mul", "add scalar", "mul", "tanh", "add scalar", "mul"],
}  # fmt: skip


@pytest.mark.parametrize("chain", GELUS.values(), ids=GELUS)
def test_the_tanh_gelu_is_known_whole(chain, tmp_path):
    row = whole(found(program(chain), tmp_path), len(chain))
    assert (row["pattern"], row["verdict"]) == ("GELU in pieces", "YES")


def test_a_gelu_without_its_half_is_another_function(tmp_path):
    chain = GELUS["HF's new"][1:]
    assert "GELU in pieces" not in {row["pattern"] for row in found(program(chain), tmp_path)}
