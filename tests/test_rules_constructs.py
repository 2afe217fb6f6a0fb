"""Rules about constructs: what replaces an operation, and what a launch asks for and does not need."""

from __future__ import annotations

from functools import partial

import ailments
import pytest
from ailments import BF16, LARGE, MS, NATIVE, run_steps
from sweeps import sweep

RULES = (*ailments.FAMILIES["constructs"], "graph-break", "fusion")
COPY = (
    "void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast"
    "<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)>(int)>(T1)"
)
FUSED = "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_35_16x128x128_1x4x1_cga1x1x1_kernel0_0"
JOIN = "void at::native::<unnamed>::CatArrayBatchedCopy<at::native::<unnamed>::OpaqueType<(unsigned int)2>>(T1 *)"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
SORT = "void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<policy_hub<float>>(T1)"
SCAN = "void at::native::tensor_kernel_scan_innermost_dim<float, std::plus<float>>(T1 *)"
SOFTMAX = "void at::native::<unnamed>::cunn_SoftMaxForward<(int)4, float, float, float>(T4 *)"
RANDOM = "void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float, (int)4>(T1)"
ONE_BLOCK = {"grid": (1, 1, 1), "block": (128, 1, 1)}


@pytest.mark.parametrize("name", ailments.FAMILIES["constructs"])
def test_a_rule_fires_on_its_program_and_not_on_cured_ones(name, findings_of):
    ailments.check_rule(name, findings_of)


def test_the_idle_time_in_a_saving_is_stated(findings_of):
    def body(loop, _, pause=20_000):
        for _ in range(6):
            loop.launch("cupy_multiply__float32_float32_float32", 10_000, **LARGE)
            loop.python(pause)

    late, soon = (
        findings_of(partial(run_steps, partial(body, pause=ns)))["replaceable-construct"] for ns in (20_000, 0)
    )
    assert late.recoverable_ns > 60_000 > soon.recoverable_ns
    assert [" right before them" in finding.evidence for finding in (late, soon)] == [True, False]


def memsets():
    def body(loop, _):
        for _ in range(100):
            loop.memset(4096, 1_500)
        loop.launch("scale(float *)", 3_000, **LARGE)

    return run_steps(body)


def decode():
    def body(loop, _):
        for _ in range(4):
            for _ in range(2):
                loop.launch(COPY, 200_000, **LARGE)
            loop.launch(FUSED, 100_000, grid=(1, 32, 32), block=(128, 1, 1))
            loop.launch(BF16, 100_000, **LARGE)

    return run_steps(body)


def tokens(*, growth=1):
    def body(loop, step):
        for _ in range(16):
            for number in range(6):
                loop.launch(NATIVE.format("MulFunctor"), 2_000, grid=(8, 1, 1))
                loop.python(30_000)
                if number < 2:
                    loop.launch(JOIN, 2_000, grid=(64 + growth * step, 1, 1))
            loop.launch(FUSED, 4_000, grid=(1, 4, 4), block=(128, 1, 1))

    return run_steps(body)


def sampling():
    def body(loop, _):
        loop.launch(BF16, 400_000, **LARGE)
        loop.launch(SORT, 300_000, **LARGE)
        loop.launch(SOFTMAX, 50_000, grid=(264, 1, 1), block=(1024, 1, 1))
        loop.launch(SCAN, 200_000, grid=(264, 1, 1), block=(512, 1, 1))
        loop.launch(RANDOM, 20_000, **LARGE)

    return run_steps(body)


def metrics(*, launches=60):
    """A model whose kernels follow in no order that repeats within a step, then metrics."""

    def body(loop, _):
        for number in range(launches):
            loop.launch(NATIVE.format(f"{'ABCDEFG'[number * number * number % 61 % 7]}Functor"), 2_000, grid=(64, 1, 1))
            loop.python(5_000)
        for _ in range(6):
            loop.launch(ALL_REDUCE, 10_000, **ONE_BLOCK)
            loop.copy("D2H", 4, 1_000, blocking=True)
            loop.python(30_000)

    return run_steps(body)


# Several of these in each step.
OPERATIONS = partial(ailments.in_turn, ailments.solves, memsets, metrics)
DECODING = partial(ailments.in_turn, decode, sampling)


class TestReplacements:
    """Operations that another one replaces; tests/test_rule_limits.py has the conditions of each."""

    def test_one_solve_after_another_becomes_a_batch(self, findings_of):
        finding = findings_of(OPERATIONS)["Small systems are factorized and solved one after another"]
        assert finding.values["calls"] == 16
        assert finding.values["total_ns"] == 16 * 60_000
        # The triangular solves and the read-backs go with it.
        assert finding.values["included_calls"] == 32
        assert finding.values["included_ns"] == 16 * 9_000
        assert finding.saving_low_ns < finding.recoverable_ns
        # One call takes as long as one factorization, at least.
        assert finding.recoverable_ns >= 16 * 69_000 - 60_000
        # The cure is that of the framework. The read-backs are no branches of the program.
        assert finding.source.startswith("PyTorch documentation, torch.linalg.solve")
        assert finding.does_explain(findings_of(OPERATIONS)["graph-break"])

    def test_memsets_in_a_row_become_one(self, findings_of):
        finding = findings_of(OPERATIONS)["Buffers are cleared one by one"]
        assert (finding.values["calls"], finding.values["size_bytes"]) == (100, 4096)
        # What one memset takes follows from the bytes and the bandwidth: 400 KiB at 4.8 TB/s take 0.1 µs.
        assert 1_500 < finding.values["estimate_low_ns"] < 2_000

    def test_keys_and_values_are_copied(self, findings_of):
        finding = findings_of(DECODING)["Keys and values are copied before each attention call"]
        assert finding.values["total_ns"] == 4 * 2 * 200_000
        assert finding.saving_low_ns == pytest.approx(4 * 0.4 * MS, rel=0.05)
        assert finding.recoverable_ns == pytest.approx(4 * (0.4 + 0.75 * 0.1) * MS, rel=0.05)

    def test_small_reductions_that_are_read_back_are_metrics(self, findings_of):
        finding = findings_of(OPERATIONS)["Metrics are reduced over the ranks and read back one by one"]
        assert finding.values["calls"] == 6
        assert finding.blocks == ("late-host",)

    # Rotary embeddings join halves of the heads, of one size in all steps.
    @pytest.mark.parametrize("growth", [1, *sweep([0])])
    def test_a_growing_cache_becomes_a_static_one(self, growth, findings_of):
        finding = findings_of(partial(tokens, growth=growth)).get("Tokens are decoded eagerly with a cache that grows")
        assert (finding is not None) == (growth > 0)
        assert finding is None or finding.recoverable_ns > 2 * finding.saving_low_ns > 0

    def test_a_sort_of_all_values_before_a_prefix_sum(self, findings_of):
        finding = findings_of(DECODING)["The whole vocabulary is sorted to sample from it"]
        assert finding.values["included_ns"] == 200_000
        assert finding.saving_low_ns == pytest.approx(0.6 * 300_000 + 200_000, rel=0.1)


class TestSharedMemory:
    def test_the_saving_follows_from_the_warps(self, findings_of):
        finding = findings_of(ailments.shared_memory)["shared-memory-blocks"]
        assert (finding.values["blocks_per_sm"], finding.values["blocks_without_shared"]) == (1, 8)
        # 8 of 64 warps: with half of all warps, four times as fast.
        assert finding.recoverable_ns == pytest.approx(0.75 * MS, rel=0.01)
        assert finding.saving_low_ns == pytest.approx(0.25 * MS, rel=0.01)


def test_the_first_finding_is_the_largest_and_what_blocks_it_stands_inside(diagnose_program):
    diagnosis = diagnose_program(partial(metrics, launches=300), "launch-bound", "replaceable-construct")
    first = diagnosis.findings[0]
    assert first.name == "launch-bound"
    assert any(first.is_blocked_by(member) and member.name == "replaceable-construct" for member in first.also)
    assert "   First 6 small all-reduces per step" in diagnosis.text(500)


class TestRepetition:
    def test_the_repetitions_of_a_step_are_counted(self, findings_of):
        finding = findings_of(ailments.transforms)["repeated-sequence"]
        assert (finding.values["repeats"], finding.values["operations"]) == (40, 3)
        # 40 repetitions of three kernels of 6 µs, one every 24 µs.
        assert finding.values["period_ns"] == pytest.approx(72_000, rel=0.05)
        # Kernels of one block: 40 blocks run at the same time.
        assert finding.recoverable_ns == pytest.approx(39 * 72_000, rel=0.05)

    def test_launch_overhead_stands_below_it(self, diagnose_program):
        first = diagnose_program(ailments.transforms, "repeated-sequence", "launch-bound").findings[0]
        assert first.name == "repeated-sequence"
        assert "launch-bound" in {member.name for member in first.also}


NATIVE_COPY = ("void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<float>>(int)", 500_000)
MERGE_SORT = "void at_cuda_detail::cub::detail::merge_sort::DeviceMergeSortMergeKernel<policy_hub<long>>(T1)"
COALESCE = "void at::native::apply::coalesceValuesKernel<float, float>(long *, long *, T1 *, T1 *, long, long, long)"
PERMUTATION = "void <unnamed>::randperm_handle_duplicate_keys_kernel<int>(T1 *, T2 *, T1, int, at::PhiloxCudaState)"
FROZEN_NORM = (
    "void at::native::elementwise_kernel<at::native::<unnamed>::batch_norm_elementwise_backward_eval(int)>(T1)"
)
TRAINED_NORM = (
    "void at::native::batch_norm_backward_elemt_channels_last_kernel<(int)4, float, float, float>(const T1 *)"
)
TRIANGLE = "void at::native::triu_tril_kernel<float, int, (bool)0, (int)4, (bool)0>(T1)"
ROWS = "void at::native::<unnamed>::sum_and_scatter<float, long>(const T2 *, T1 *, long)"
ADAM = (
    "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::FusedOptimizerTensorListMetadata"
    "<(int)4>, at::native::<unnamed>::FusedAdamMathFunctor<float, (int)4>>(T1)"
)
FILL = "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, std::array<char *>>(int)"
SEED = "void generate_seed_pseudo<rng_config<curandStateXORWOW, (curandOrdering)101>>(unsigned long long)"


def step_of(*kernels, host_ns=0):
    def body(loop, _):
        loop.python(host_ns)
        for name, duration_ns in kernels:
            loop.launch(name, duration_ns, **LARGE)

    return run_steps(body)


AILING_STEPS = {
    "A sparse matrix is sorted and its equal entries are added in each step": [
        (MERGE_SORT, 300_000),
        (COALESCE, 400_000),
        NATIVE_COPY,
    ],
    "A permutation of many elements is drawn in each step": [(SORT, 900_000), (PERMUTATION, 50_000), NATIVE_COPY],
    "Gradients are computed through batch normalizations whose statistics are frozen": [
        (FROZEN_NORM, 200_000),
        NATIVE_COPY,
        (FROZEN_NORM, 200_000),
    ],
    "A causal mask is made and handed to fused attention": [(TRIANGLE, 40_000), (FUSED, 900_000), NATIVE_COPY],
}
ROWS_AND_ADAM = ((ROWS, 40_000), (FILL, 300_000), (ADAM, 900_000), (ADAM, 900_000), NATIVE_COPY)


def test_what_replaces_the_operation(findings_of):
    """One step has all of these operations, and a normalization that is trained."""
    steps = [partial(step_of, *kernels) for kernels in AILING_STEPS.values()]
    findings = findings_of(partial(ailments.in_turn, *steps, partial(step_of, (TRAINED_NORM, 200_000))))
    assert AILING_STEPS.keys() == {title for title in findings if " " in title}
    assert all(findings[title].saving_low_ns <= findings[title].recoverable_ns for title in AILING_STEPS)
    norms = findings["Gradients are computed through batch normalizations whose statistics are frozen"]
    assert norms.values["calls"] == 2


@pytest.mark.slow  # tests/test_rule_limits.py has its conditions
def test_all_rows_of_an_embedding_table_are_updated(findings_of):
    finding = findings_of(partial(step_of, *ROWS_AND_ADAM))["replaceable-construct"]
    assert finding.title == "The optimizer updates all rows of an embedding table"


def test_a_generator_that_is_made_in_each_step_of_an_idle_gpu_is_found(findings_of):
    finding = findings_of(lambda: step_of((SEED, 150_000), ("walk(float *)", 20_000), host_ns=300_000))[
        "replaceable-construct"
    ]
    assert finding.title == "The states of the random generator are set up again in each step"
    # The host may take as long without it.
    assert finding.saving_low_ns == 0


SCALE = "void axpy_kernel_val<float, float>(cublasAxpyParamsVal<T1, T1, T2>)"


@pytest.mark.parametrize(
    "make",
    [
        ailments.basis,
        # The host reads each dot product back, and passes it to the update.
        partial(ailments.basis, reads=True, updates=(SCALE,)),
        partial(ailments.basis, updates=(NATIVE.format("MulFunctor"), NATIVE.format("CUDAFunctor_add"))),
    ],
    ids=["on the GPU", "read back", "two updates"],
)
def test_dot_products_and_updates_by_one_vector_each_are_found(make, findings_of):
    finding = findings_of(make)["vectors-one-by-one"]
    # What the host waits for may be the end of a step.
    assert (finding.values.get("repeats"), finding.values.get("step_repeats")) in {(64, None), (None, 640)}
    assert 0 < finding.saving_low_ns < finding.recoverable_ns
    # The general rule about sequences is about the same launches.
    assert "repeated-sequence" in finding.explains


TRANSFORM = "void regular_fft<(unsigned int)2048, EPT<(unsigned int)16>, (unsigned int)4>(kernel_arguments_t<T9>)"
SHIFTED = "Arrays are shifted around Fourier transforms, by copies of their parts"
GENERATOR = "void gen_sequenced<curandStateXORWOW, float2, normal_args_st, &curand_normal_scaled2>(T1 *, T2 *)"
IN_MEMORY = "Large arrays are filled with random numbers, which a later kernel reads"


def waves(*, parts=4):
    """Multiply in the Fourier space. Before and after each transform, `parts` copies run."""
    copies = [("cupy_copy__complex64_complex64", 20_000)] * parts
    transform = [*copies, (TRANSFORM, 100_000), (TRANSFORM, 70_000), *copies]
    return step_of(*transform, ("cupy_multiply__complex64_complex64_complex64", 90_000), *transform)


def test_shifts_around_transforms_are_found(findings_of):
    finding = findings_of(waves)[SHIFTED]
    assert (finding.values["calls"], finding.values["total_ns"]) == (16, 320_000)
    assert finding.saving_low_ns == pytest.approx(160_000, rel=0.05)
    assert finding.recoverable_ns >= 320_000


@pytest.mark.parametrize("parts", [0, 1], ids=["cured", "padded"])
def test_other_copies_around_transforms_are_no_shifts(parts, findings_of):
    assert SHIFTED not in findings_of(partial(waves, parts=parts))


def test_random_numbers_that_a_kernel_reads_are_found(findings_of):
    drift, sort = ("drift(Particles, const float *)", 260_000), (SORT, 260_000)
    finding = findings_of(partial(step_of, (GENERATOR, 760_000), drift))[IN_MEMORY]
    assert (finding.saving_low_ns, finding.recoverable_ns) == (380_000, 760_000)
    for kernels in ([drift], [(GENERATOR, 760_000), sort], [(GENERATOR, 9_000), drift]):
        assert IN_MEMORY not in findings_of(partial(step_of, *kernels))


def test_launches_of_a_fused_optimizer_and_long_kernels_of_a_compiler_are_no_chains(findings_of):
    optimizer = partial(step_of, (BF16, 100_000), *[(ADAM, 200_000)] * 8)
    chain = partial(step_of, *[(f"loop_add_fusion_{number}", 100_000) for number in range(4)])
    findings = findings_of(partial(ailments.in_turn, optimizer, chain))
    assert "fusion" not in findings
