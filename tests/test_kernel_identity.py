"""Which kernels of two runs are the same."""

from __future__ import annotations

import pytest

from nsys_insight.compare.kernel_identity import KernelOfRun as Kernel
from nsys_insight.compare.kernel_identity import identity, match

ADD = "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>, std::array<char *, (unsigned long)3>>(int, T2, T3)"  # noqa: E501
ADD_8 = ADD.replace("(int)4", "(int)8").replace("float", "c10::BFloat16")
FILL = ADD.replace("CUDAFunctor_add", "FillFunctor")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN", "nvjet_sm90_tst_16x64_64x16_2x1_v_bz_TNN"),
        (ADD, ADD_8),
        ("void gemm<float, 128, 64>(float *)", "void gemm<__half, 64, 64>(__half *)"),
        ("triton_poi_fused_add_mul_12", "triton_poi_fused_add_mul_3"),
    ],
)
def test_tiles_types_and_numbers_are_not_the_identity(one, other):
    assert identity(one) == identity(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [(ADD, FILL), ("norm", "gemm"), ("triton_poi_fused_add_mul_1", "triton_poi_fused_add_1"), ("sgemm_nn", "sgemm_nt")],
)
def test_what_a_kernel_does_is(one, other):
    assert identity(one) != identity(other)


def kernels(**calls):
    return {name: Kernel(name.rstrip("0123456789_x"), count) for name, count in calls.items()}


def pairs(matches):
    return {(found.before, found.after, found.how) for found in matches}


def test_names_that_run_as_often_are_paired_as_they_are():
    found = match(kernels(gemm_8x8=2, gemm_16x8=5), kernels(gemm_8x8=2, gemm_16x8=5))
    assert pairs(found) == {(("gemm_8x8",), ("gemm_8x8",), "name"), (("gemm_16x8",), ("gemm_16x8",), "name")}


def test_calls_that_moved_to_another_tile_are_one_row():
    found = match(kernels(gemm_8x8=10, gemm_16x8=5, norm=1), kernels(gemm_8x8=3, gemm_32x8=12, norm=1))
    assert pairs(found) == {
        (("norm",), ("norm",), "name"),
        (("gemm_16x8", "gemm_8x8"), ("gemm_32x8", "gemm_8x8"), "identity"),
    }


def test_a_kernel_that_runs_less_often_is_still_itself():
    assert pairs(match(kernels(norm=10), kernels(norm=9))) == {(("norm",), ("norm",), "name")}


def test_another_name_at_the_same_place_is_a_guess():
    found = match(
        {"embed": Kernel("embedding", 1), "slow_norm": Kernel("norm", 1), "head": Kernel("gemm", 1)},
        {"embed": Kernel("embedding", 1), "rapid_rms": Kernel("norm", 1), "head": Kernel("gemm", 1)},
        (["embed", "slow_norm", "head"], ["embed", "rapid_rms", "head"]),
    )
    assert (("slow_norm",), ("rapid_rms",), "guess") in pairs(found)


def test_a_fused_chain_is_paired_with_what_took_its_place():
    before = {"embed": Kernel("embedding", 1)} | {name: Kernel("elementwise", 2) for name in ("scale", "shift", "relu")}
    after = {"embed": Kernel("embedding", 1), "fused": Kernel("other", 2)}
    chain = ["scale", "shift", "relu"]
    found = match(before, after, (["embed", *chain, "embed", *chain], ["embed", "fused", "embed", "fused"]))
    assert (("scale", "shift", "relu"), ("fused",), "guess") in pairs(found)


def test_what_stands_nowhere_near_is_new_or_gone():
    before = {"a": Kernel("gemm", 1), "old": Kernel("copy/cast", 1), "b": Kernel("gemm", 1)}
    after = {"a": Kernel("gemm", 1), "b": Kernel("gemm", 1), "young": Kernel("sort/topk", 1)}
    found = match(before, after, (["old", "a", "b"], ["a", "b", "young"]))
    assert {(("old",), (), None), ((), ("young",), None)} <= pairs(found)


def test_programs_without_a_kernel_in_common_have_no_places():
    found = match(kernels(norm=1), kernels(saxpy=1), (["norm"], ["saxpy"]))
    assert pairs(found) == {(("norm",), (), None), ((), ("saxpy",), None)}


def test_every_name_is_in_one_match():
    before, after = kernels(a=1, b=2, c_1=3, d=4), kernels(a=1, b=3, c_2=3, e=4)
    found = match(before, after, (list(before), list(after)))
    assert sorted(name for one in found for name in one.before) == sorted(before)
    assert sorted(name for one in found for name in one.after) == sorted(after)
