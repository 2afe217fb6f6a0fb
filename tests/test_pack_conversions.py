"""`conversions`: casts, layout changes, copies and products on CUDA cores, and the kernels that ask for them."""

from __future__ import annotations

from pathlib import Path

import oracle
import pytest
from opening import open_trace
from synthetic import Trace

SAMPLES = Path(__file__).parents[1] / "sample_traces"
CAST = "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(at::TensorIterator&)>"
COPY = "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>"
PRODUCT = "nvjet_sm90_tst_128x64_64x5_1x2_h_bz_TNN"


def ask(path, **scope):
    with open_trace(path, **scope) as session:
        answer = session.answer("conversions")
        return answer.frame().to_dicts(), answer.notes


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.sqlite"


def test_a_kernel_is_classified_by_its_name(path):
    work_by_name = {
        CAST: "cast",
        "void at::native::unrolled_elementwise_kernel<direct_copy_kernel_cuda, LoadWithCast<1>>": "cast",
        "cupy_copy__float64_float32": "cast",
        "cupy_copy__float32_float32": "copy",
        COPY: "copy",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 4, 64, 64>": "copy",
        "void cudnn::engines_precompiled::nchwToNhwcKernel<__half, __half, float, 0, 1, 1>": "layout",
        "input_transpose_kernel": "layout",
        "ampere_sgemm_128x64_nn": "cuda cores",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(T1::Params)": "cuda cores",
        # These compute: fused work, tensor cores, a convolution in a layout, and an addition that casts.
        "triton_poi_fused_add_clone_permute_select_3": None,
        "input_transpose_fusion_3": None,
        PRODUCT: None,
        "sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_execute_kernel": None,
        "sm80_xmma_gemm_tf32f32_tf32f32_f32_tn_n_tilesize128x128x32_stage3_execute_kernel": None,
        "void at::native::unrolled_elementwise_kernel<CUDAFunctor_add<float>, LoadWithCast<2>>": None,
    }
    trace = Trace()
    host = trace.thread()
    for name in work_by_name:
        host.launch(name)
    rows, _ = ask(trace.write(path))
    assert {row["name"]: row["work"] for row in rows} == {name: work for name, work in work_by_name.items() if work}


def test_the_kernel_that_asks_is_the_next_one_on_the_stream_that_computes(path):
    trace = Trace()
    host = trace.thread()
    for number in range(3):
        with host.nvtx(f"layer {number}"):
            host.launch("norm").launch(CAST).launch(CAST).launch("other", stream=9).launch(PRODUCT)
    (row,), notes = ask(trace.write(path))
    assert (row["prior_name"], row["next_name"], row["range_name"], row["calls"]) == ("norm", PRODUCT, "layer #", 6)
    assert notes[0].startswith("cast ")


def test_shares_are_those_of_a_loop_over_the_kernels():
    kernels = oracle.read(SAMPLES / "decode_eager.sqlite")
    strings = oracle.strings(kernels)
    durations = [
        (strings[row["demangledName"]], row["end"] - row["start"]) for row in kernels["CUPTI_ACTIVITY_KIND_KERNEL"]
    ]
    expected = sum(
        time
        for name, time in durations
        if "bfloat16_copy_kernel" in name or ("direct_copy_kernel" in name and "LoadWithCast" in name)
    )
    rows, _ = ask(SAMPLES / "decode_eager.sqlite")
    assert sum(row["total_ns"] for row in rows if row["work"] == "cast") == expected > 0
    assert sum(row["kernel_time_pct"] for row in rows if row["work"] == "cast") == pytest.approx(
        100 * expected / sum(time for _, time in durations)
    )
