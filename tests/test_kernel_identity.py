"""The pairing of the kernels of two runs."""

from __future__ import annotations

import pytest

from nsys_insight.compare.kernel_identity import RunKernel as Kernel
from nsys_insight.compare.kernel_identity import match_kernels, normalize_name

ADD = "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>, std::array<char *, (unsigned long)3>>(int, T2, T3)"  # noqa: E501
ADD_8 = ADD.replace("(int)4", "(int)8").replace("float", "c10::BFloat16")
FILL = ADD.replace("CUDAFunctor_add", "FillFunctor")


@pytest.mark.parametrize(
    ("name", "other_name"),
    [
        ("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN", "nvjet_sm90_tst_16x64_64x16_2x1_v_bz_TNN"),
        (ADD, ADD_8),
        ("void gemm<float, 128, 64>(float *)", "void gemm<__half, 64, 64>(__half *)"),
        ("triton_poi_fused_add_mul_12", "triton_poi_fused_add_mul_3"),
        # Hashes of a file's path (nvcc), of a kernel's source (Warp), and of the compiler's options (Numba).
        (
            "_ZN36_GLOBAL__N__1d15e978_4_k_cu_5916767c6hiddenEPf",
            "_ZN36_GLOBAL__N__9b819bd6_4_k_cu_5916767c6hiddenEPf",
        ),
        # NVRTC's process ID and a hash of the time.
        (
            "_ZN41_GLOBAL__N__00000000_4_a_cu_6ce607d4_91006hiddenEPf",
            "_ZN41_GLOBAL__N__00000000_4_a_cu_22dc5fc6_91636hiddenEPf",
        ),
        ("add_b9c8473e_cuda_kernel_forward", "add_4c21d32e_cuda_kernel_forward"),
        # Of the values of a Mojo function's parameters.
        (
            "m_scale_SIMD_DType_int_16A6AcB6A6AcBuAsAgAeBeBoA6A_53b4dad5811f6c5d",
            "m_scale_SIMD_DType_int_16A6AcB6A6AcBuAsAgAeBeBoA6A_af26f5e961cff9ea",
        ),
        (
            "__main__::add[abi:v1][abi:cw51cXTOR3W3Cw](Array<float, (int)1, C, mutable, aligned>, float)",
            "__main__::add[abi:v3][abi:cw51cXTMVuW1Ai_3d](Array<float, (int)1, C, mutable, aligned>, float)",
        ),
    ],
)
def test_tiles_types_and_numbers_are_not_part_of_the_identity(name, other_name):
    assert normalize_name(name) == normalize_name(other_name)


@pytest.mark.parametrize(
    ("name", "other_name"),
    [
        (ADD, FILL),
        ("norm", "gemm"),
        ("add_b9c8473e_cuda_kernel_forward", "add_b9c8473e_cuda_kernel_backward"),
        ("triton_poi_fused_add_mul_1", "triton_poi_fused_add_1"),
        ("sgemm_nn", "sgemm_nt"),
    ],
)
def test_the_operation_is_part_of_the_identity(name, other_name):
    assert normalize_name(name) != normalize_name(other_name)


def make_kernels(**calls):
    return {name: Kernel(name.rstrip("0123456789_x"), count) for name, count in calls.items()}


def list_pairs(matches):
    return {(match.before, match.after, match.paired_by) for match in matches}


def test_equal_names_with_equal_counts_are_paired():
    matches = match_kernels(make_kernels(gemm_8x8=2, gemm_16x8=5), make_kernels(gemm_8x8=2, gemm_16x8=5))
    assert list_pairs(matches) == {(("gemm_8x8",), ("gemm_8x8",), "name"), (("gemm_16x8",), ("gemm_16x8",), "name")}


def test_calls_that_moved_to_another_tile_are_one_row():
    matches = match_kernels(
        make_kernels(gemm_8x8=10, gemm_16x8=5, norm=1), make_kernels(gemm_8x8=3, gemm_32x8=12, norm=1)
    )
    assert list_pairs(matches) == {
        (("norm",), ("norm",), "name"),
        (("gemm_16x8", "gemm_8x8"), ("gemm_32x8", "gemm_8x8"), "identity"),
    }


def test_a_kernel_that_runs_less_often_is_paired_by_name():
    assert list_pairs(match_kernels(make_kernels(norm=10), make_kernels(norm=9))) == {(("norm",), ("norm",), "name")}


def test_another_name_at_the_same_position_is_a_guess():
    matches = match_kernels(
        {"embed": Kernel("embedding", 1), "slow_norm": Kernel("norm", 1), "head": Kernel("gemm", 1)},
        {"embed": Kernel("embedding", 1), "rapid_rms": Kernel("norm", 1), "head": Kernel("gemm", 1)},
        (["embed", "slow_norm", "head"], ["embed", "rapid_rms", "head"]),
    )
    assert (("slow_norm",), ("rapid_rms",), "guess") in list_pairs(matches)


def test_a_fused_chain_is_paired_with_its_replacement():
    before = {"embed": Kernel("embedding", 1)} | {name: Kernel("elementwise", 2) for name in ("scale", "shift", "relu")}
    after = {"embed": Kernel("embedding", 1), "fused": Kernel("other", 2)}
    chain = ["scale", "shift", "relu"]
    matches = match_kernels(before, after, (["embed", *chain, "embed", *chain], ["embed", "fused", "embed", "fused"]))
    assert (("scale", "shift", "relu"), ("fused",), "guess") in list_pairs(matches)


def test_kernels_without_a_partner_are_new_or_removed():
    before = {"a": Kernel("gemm", 1), "old": Kernel("copy/cast", 1), "b": Kernel("gemm", 1)}
    after = {"a": Kernel("gemm", 1), "b": Kernel("gemm", 1), "young": Kernel("sort/topk", 1)}
    matches = match_kernels(before, after, (["old", "a", "b"], ["a", "b", "young"]))
    assert {(("old",), (), None), ((), ("young",), None)} <= list_pairs(matches)


def test_programs_without_a_common_kernel_have_no_pairs():
    matches = match_kernels(make_kernels(norm=1), make_kernels(saxpy=1), (["norm"], ["saxpy"]))
    assert list_pairs(matches) == {(("norm",), (), None), ((), ("saxpy",), None)}


def test_every_name_is_in_one_match():
    before, after = make_kernels(a=1, b=2, c_1=3, d=4), make_kernels(a=1, b=3, c_2=3, e=4)
    matches = match_kernels(before, after, (list(before), list(after)))
    assert sorted(name for match in matches for name in match.before) == sorted(before)
    assert sorted(name for match in matches for name in match.after) == sorted(after)
