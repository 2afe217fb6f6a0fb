"""Properties read from kernel names of nsys and ncu: implementation, architecture, tile, stages."""

from __future__ import annotations

import pytest

from nsys_insight.ingest.ncu import store
from nsys_insight.ingest.ncu.pages import Launch
from nsys_insight.ncu.data import NcuData

CUTLASS_3 = (
    "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cutlass::gemm::kernel::GemmUniversal<"
    "cutlass::gemm::GroupProblemShape<cute::tuple<int, int, int>>, cutlass::gemm::collective::CollectiveMma<"
    "cutlass::gemm::MainloopSm90ArrayTmaGmmaWarpSpecialized<(int)4, cute::tuple<cute::C<(int)2>, cute::C<(int)1>,"
    " cute::C<(int)1>>, cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative>, cute::tuple<cute::C<(int)128>,"
    " cute::C<(int)256>, cute::C<(int)64>>, cutlass::bfloat16_t, cute::TiledMMA<cute::MMA_Atom<"
    "cute::SM90::GMMA::MMA_64x256x16_F32BF16BF16_SS<(cute::SM90::GMMA::Major)0>>>>>>>(T1::Params)"
)
# name, implementation, architecture, tile, stages, kind of arithmetic
NAMES = [
    ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_tn", "library", 80, "128x64", 6, "tensorop"),
    ("ampere_sgemm_128x64_tn", "library", 80, "128x64", None, "simt"),
    ("turing_h1688gemm_256x128_ldg8_stages_32x1_nn", "library", 75, "256x128", 1, None),
    ("volta_sgemm_128x64_nn", "library", 70, "128x64", None, "simt"),
    ("nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", "library", 90, "256x128", 4, None),
    ("nvjet_sm90_qqtst_128x128_128x6_2x1_v_bz_coopA_algo2_TNT", "library", 90, "128x128", 6, None),
    (("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel"
     "__5x_cublas"), "library", 80, "64x64x8", 3, "simt"),
    (("sm90_xmma_gemm_f64f64_f64f64_f64_nn_n_tilesize128x64x32_stage3_warpsize4x2x1_tensor16x8x16_execute_kernel"
     "__5x_cublas"), "library", 90, "128x64x32", 3, "tensorop"),
    ("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(T1::Params)",
     "cutlass", 80, "256x128", 4, "simt"),
    ("void cutlass::Kernel2<cutlass_75_tensorop_s1688gemm_f16_128x128_nn_align1>(T1::Params)",
     "cutlass", 75, "128x128", None, "tensorop"),
    (("cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64_2x1x1_0_tnt_align8_warpspecialized"
     "_cooperative_epi_tma"), "cutlass", 90, "128x128x64", None, "tensorop"),
    (CUTLASS_3, "cutlass", 90, "128x256x64", 4, "tensorop"),
    ("fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::half_t>::Params)",
     "cutlass", 80, "64x64", None, None),
    ("triton_poi_fused_add_gelu_0", "inductor", None, None, None, None),
    ("triton_red_fused_sum_1", "inductor", None, None, None, None),
    ("triton_per_fused__softmax_2", "inductor", None, None, None, None),
    ("_matmul", "triton", None, None, None, None),
    ("void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>>(int, T2, T3)",
     "pytorch", None, None, None, None),
    # ncu leaves out the first namespace.
    ("void native::reduce_kernel<512, 1, native::ReduceOp<float, native::ArgMaxOps<float>, unsigned int, long, 4>>(T3)",
     "pytorch", None, None, None, None),
    ("void native::_assert_async_cuda_kernel<bool>(const T1 *, native::Msg)", "pytorch", None, None, None, None),
    ("void mbtopk::fill<unsigned int, unsigned int>(T1 *, T1, T2)", "pytorch", None, None, None, None),
    (("void radix_sort::DeviceRadixSortOnesweepKernel<radix::policy_hub<float, cub::OpaqueType<8>, unsigned long long>"
     "::Policy1000, 0, float>(T1 *)"), "library", None, None, None, None),
    ("void cusparse::csrmm_alg2_kernel<(bool)0, (bool)0, long>(T4, T4)", "library", None, None, None, None),
    ("rowsum(const float *, float *, int)", "native", None, None, None, None),
]  # fmt: skip


@pytest.fixture(scope="module")
def kernel_rows(tmp_path_factory):
    launches = [
        Launch("r", number, 1, "app", name, 1, 7, 0, "9.0", (1, 1, 1), (32, 1, 1), {})
        for number, (name, *_) in enumerate(NAMES)
    ]
    with NcuData(store.write(launches, tmp_path_factory.mktemp("ncu") / "names.ncu.duckdb")) as ncu_data:
        return ncu_data.rows("FROM ncu_kernels ORDER BY launch")


@pytest.mark.parametrize("number", range(len(NAMES)), ids=lambda number: NAMES[number][0][:40])
def test_name_properties(kernel_rows, number):
    row = kernel_rows[number]
    name, *expected = NAMES[number]
    columns = ("implementation", "name_arch", "name_tile", "name_stages", "name_math")
    assert [row["kernel"], *(row[column] for column in columns)] == [name, *expected]
