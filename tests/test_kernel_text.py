"""Kernel names become readable and short, and stay distinct."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from nsys_insight.text.kernel_names import fit, fit_all, make_all_readable, make_readable

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


def read_real_names():
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
def test_a_demangled_name_is_shortened_to_its_meaning(name, expected):
    assert make_readable(name) == expected


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
def test_other_names_are_unchanged(name):
    assert make_readable(name) == name


def test_overloads_keep_the_parameters_that_distinguish_them():
    names = ["scale(float *, int)", "scale(double *, int)", "add(float *, int)"]
    assert make_all_readable(names) == {names[0]: names[0], names[1]: names[1], names[2]: "add"}


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
    short = fit(make_readable(name), width)
    assert meaning in short
    assert short[:6] == make_readable(name)[:6]


def test_greater_widths_show_the_types_too():
    assert [fit(make_readable(COPY), width) for width in (40, 52, 60)] == [
        "elementwise_ker…direct_copy_kernel_cuda>",
        "elementwise_kernel<…direct_copy_kernel_cuda(float)>",
        "elementwise_kernel<…direct_copy_kernel_cuda#3#7(float)>",
    ]


def test_the_dtype_is_shown_when_only_it_distinguishes_two_names():
    fills = [
        f"vectorized_elementwise_kernel<{vector}, FillFunctor<{dtype}>, array<char*, 1>>"
        for vector, dtype in ((8, "BFloat16"), (2, "long"))
    ]
    assert list(fit_all(fills, 40).values()) == [
        "vectorized_elemen…FillFunctor<BFloat16>>",
        "vectorized_elementwis…FillFunctor<long>>",
    ]


def test_the_first_difference_is_shown_when_only_it_distinguishes_two_names():
    names = [f"{'sm90_gemm_' * 6}tile{tile}_{'stages_' * 9}kernel" for tile in ("128x256", "64x256")]
    first, second = fit_all(names, 40).values()
    assert "tile128x256" in first
    assert "tile64x256" in second


@pytest.mark.parametrize("trace", read_real_names())
@pytest.mark.parametrize("width", [24, 40, 80])
def test_names_of_a_real_trace_stay_distinct_and_fit(trace, width):
    names = read_real_names()[trace]
    readable = make_all_readable(names)
    short_names = fit_all(readable.values(), width)
    assert len(set(readable.values())) == len(set(short_names.values())) == len(names)
    assert max(map(len, short_names.values())) <= width


@pytest.mark.parametrize("trace", read_real_names())
def test_a_readable_name_does_not_change_again(trace):
    for name in read_real_names()[trace]:
        assert make_readable(make_readable(name)) == make_readable(name)


def test_the_tags_of_numba_are_left_out():
    name = "__main__::add[abi:v2][abi:cw51cXTLSUwv1s_3d](Array<float, (int)1, C, mutable, aligned>, float)"
    assert make_readable(name) == "__main__::add"


cxx_fragments = st.lists(
    st.sampled_from(["at::native::", "f", "<", ">", "(", ")", "(int)4", ", ", "void ", "::", "*", " ", "…"])
)


@given(st.one_of(st.text(), cxx_fragments.map("".join)), st.integers(10, 60))
def test_any_text_fits_the_given_width(text, width):
    readable = make_readable(text)
    assert cell_len(fit(readable, width)) <= width
    assert fit(readable, width) == readable or cell_len(readable) > width


@given(st.lists(cxx_fragments.map("".join), max_size=5), st.integers(10, 40))
def test_any_set_of_texts_fits_the_given_width(texts, width):
    assert all(cell_len(short) <= width for short in fit_all(texts, width).values())
