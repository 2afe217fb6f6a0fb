"""Kernel names become readable and short, and stay distinct."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from nsys_insight.text.kernel_names import fit, fit_all, readable, readable_all

SAMPLES = Path(__file__).parent.parent / "sample_traces"

COPY = (
    "void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<"
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 3)]::operator ()() const::"
    "[lambda() (instance 7)]::operator ()() const::[lambda(float) (instance 1)]>"
    "(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)"
)
ADD = (
    "void at::native::vectorized_elementwise_kernel<(int)8, at::native::CUDAFunctor_add<c10::BFloat16>, "
    "std::array<char *, (unsigned long)3>>(int, T2, T3)"
)
MEAN = (
    "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, "
    "at::native::MeanOps<float, float, float, float>, unsigned int, float, (int)4, (int)4>>(T3)"
)
MUL = (
    "void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<"
    "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
    "at::native::binary_internal::MulFunctor<float>>>(at::TensorIteratorBase &, const T1 &)::"
    "[lambda(int) (instance 1)]>(int, T3)"
)
NVJET = "nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN"


def real_names():
    names = {}
    for trace in ("decode_eager", "decode_graph_node", "churn"):
        with closing(sqlite3.connect(f"file:{SAMPLES / trace}.sqlite?mode=ro&immutable=1", uri=True)) as connection:
            names[trace] = [
                name
                for (name,) in connection.execute(
                    "SELECT DISTINCT value FROM StringIds JOIN CUPTI_ACTIVITY_KIND_KERNEL ON id = demangledName"
                )
            ]
    return names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            COPY,
            (
                "elementwise_kernel<128, 2, gpu_kernel_impl_nocast<"
                "direct_copy_kernel_cuda::lambda#3::lambda#7::lambda(float)>::lambda(int)>"
            ),
        ),
        (ADD, "vectorized_elementwise_kernel<8, CUDAFunctor_add<BFloat16>, array<char*, 3>>"),
        ("saxpy(double *, double *, double, int)", "saxpy"),
        ("void build_GPU2<128, 4>(int*, int*, short*)", "build_GPU2<128, 4>"),
        ("void (anonymous namespace)::softmax<float, false>(float*, int)", "softmax<float, false>"),
        (
            "void at::native::<unnamed>::vectorized_layer_norm_kernel<c10::Half, float, (bool)0>(int, T2, const T1 *)",
            "vectorized_layer_norm_kernel<Half, float, 0>",
        ),
        (
            "void cub::CUB_200600_500_520_NS::DeviceReduceKernel<double *, cuda::std::__4::plus<void>>(T2, T5 *)",
            "cub::DeviceReduceKernel<double*, plus<void>>",
        ),
        (
            # The same lambda as GNU's demangler writes it.
            "void gpu<at::native::copy(at::Tensor&)::{lambda()#3}::operator()() const::{lambda(float)#1}>(int)",
            "gpu<copy::lambda#3::lambda(float)>",
        ),
        (
            "void reduce<sum_functor<float>::operator ()(at::Tensor &)::[lambda(float, float) (instance 1)]>(T1)",
            "reduce<sum_functor<float>::lambda(float, float)>",
        ),
    ],
)
def test_a_demangled_name_loses_its_plumbing_and_keeps_its_meaning(name, expected):
    assert readable(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        NVJET,
        "_Z5saxpyPfS_i",
        "triton_poi_fused__to_copy_add_mul_0",
        "cudaLaunchKernel_v7000",
        "forward(x)",
        "step (warm)3",
        "A * B (x)",
        "aten::linear, op_id = 12",
        "a < b",
        "",
    ],
)
def test_what_is_no_demangled_name_comes_back_as_it_is(name):
    assert readable(name) == name


def test_overloads_keep_the_parameters_that_tell_them_apart():
    names = ["scale(float *, int)", "scale(double *, int)", "add(float *, int)"]
    assert readable_all(names) == {names[0]: names[0], names[1]: names[1], names[2]: "add"}


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        (COPY, "direct_copy_kernel_cuda"),
        (ADD, "CUDAFunctor_add"),
        (MEAN, "MeanOps"),
        (MUL, "MulFunctor"),
        (NVJET, "4x1_v_bz_TNN"),
        (
            "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_gemm_bf16_16x16_128x2_tn_align8>(T1::Params)",
            "tn_align8",
        ),
    ],
)
@pytest.mark.parametrize("width", [38, 40, 60])
def test_the_meaning_survives_at_moderate_widths(name, meaning, width):
    short = fit(readable(name), width)
    assert meaning in short
    assert short[:6] == readable(name)[:6]


def test_with_more_room_the_types_are_shown_too():
    assert [fit(readable(COPY), width) for width in (40, 52, 60)] == [
        "elementwise_ker…direct_copy_kernel_cuda>",
        "elementwise_kernel<…direct_copy_kernel_cuda(float)>",
        "elementwise_kernel<…direct_copy_kernel_cuda#3#7(float)>",
    ]


def test_the_dtype_is_shown_where_only_it_tells_two_names_apart():
    fills = [
        f"vectorized_elementwise_kernel<{vector}, FillFunctor<{dtype}>, array<char*, 1>>"
        for vector, dtype in ((8, "BFloat16"), (2, "long"))
    ]
    assert list(fit_all(fills, 40).values()) == [
        "vectorized_elemen…FillFunctor<BFloat16>>",
        "vectorized_elementwis…FillFunctor<long>>",
    ]


def test_the_first_difference_is_shown_where_nothing_else_tells_two_names_apart():
    names = [f"{'sm90_gemm_' * 6}tile{tile}_{'stages_' * 9}kernel" for tile in ("128x256", "64x256")]
    first, second = fit_all(names, 40).values()
    assert "tile128x256" in first
    assert "tile64x256" in second


@pytest.mark.parametrize("trace", real_names())
@pytest.mark.parametrize("width", [24, 40, 80])
def test_names_of_a_real_trace_stay_distinct_and_fit(trace, width):
    names = real_names()[trace]
    shown = readable_all(names)
    fitted = fit_all(shown.values(), width)
    assert len(set(shown.values())) == len(set(fitted.values())) == len(names)
    assert max(map(len, fitted.values())) <= width


@pytest.mark.parametrize("trace", real_names())
def test_a_readable_name_is_as_readable_as_it_gets(trace):
    for name in real_names()[trace]:
        assert readable(readable(name)) == readable(name)


cxx = st.lists(st.sampled_from(["at::native::", "f", "<", ">", "(", ")", "(int)4", ", ", "void ", "::", "*", " ", "…"]))


@given(st.one_of(st.text(), cxx.map("".join)), st.integers(10, 60))
def test_any_text_fits_the_width_it_is_given(text, width):
    shown = readable(text)
    assert cell_len(fit(shown, width)) <= width
    assert fit(shown, width) == shown or cell_len(shown) > width


@given(st.lists(cxx.map("".join), max_size=5), st.integers(10, 40))
def test_any_set_of_texts_fits_the_width_it_is_given(texts, width):
    assert all(cell_len(short) <= width for short in fit_all(texts, width).values())
