"""Rules about operations that another one replaces, by what is around them; kernels that take all of the time."""

from __future__ import annotations

from functools import partial

import ailments
import pytest
from ailments import BF16, LARGE, MS, NATIVE, PASSES, TIME_STEPS, rows_in_turn, run_steps
from opening import evaluate_rules, open_trace

RULES = ("replaceable-construct", "graph-break", "hot-kernels", "fp32-gemm", "repeated-sequence")
GEMV = (
    "void gemv2T_kernel_val<int, int, float, float, float, float, (int)128, (int)16, (int)4, (int)4, (bool)0, (bool)0, "
    "cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<const float>>>(T13, T6, T6)"
)
NORM = "void at::native::<unnamed>::vectorized_layer_norm_kernel<float, float, (bool)0>(int)"
REDUCE = "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::sum_functor>>(T3)"
COUNT = (
    "void at_cuda_detail::cub::detail::reduce::DeviceReduceSingleTileKernel<policy_hub<int>, at::native::NonZeroOp>(T1)"
)
SELECT = "void at_cuda_detail::cub::detail::select::DeviceSelectSweepKernel<policy_hub<long, bool, int>>(T1)"
GATHER = "void at::native::vectorized_gather_kernel<(int)16, long>(char *, char *, T2 *, int, long, long)"
ADD_ROWS = (
    "void at::native::indexFuncLargeIndex<c10::BFloat16, long, unsigned int, (int)2, (int)2, (int)-2, (bool)1, "
    "at::native::<unnamed>::ReduceAdd>(at::cuda::detail::TensorInfo<T1, T3>)"
)
WINDOW = "cupyx_scipy_ndimage_correlate_2d_reflect_w{}_{}"
SORT = "void cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<cub::detail::radix::policy_hub<{}>>(T1)"
CONVOLVE = "void implicit_convolve_sgemm<float, float, (int)1024, (int)5, (int)5, (int)3, (int)3>(int, int, int)"
BROADCAST = "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
BACKWARD = "void at::native::<unnamed>::cunn_SoftMaxBackward<(int)4>(T1)"
SMALL = {"grid": (4, 1, 1), "block": (128, 1, 1)}


def products():
    def body(loop, _):
        for _ in range(48):
            loop.launch(GEMV, 90_000, **LARGE)
        loop.launch(NORM, 30_000, **LARGE)

    return run_steps(body)


def pairs():
    def body(loop, _):
        for name, runs in ((NATIVE.format("CUDAFunctor_add"), 1_400_000), (NATIVE.format("Pow"), 1_000_000)):
            for _ in range(4):
                loop.launch(name, runs, grid=(2_000_000, 1, 1))
        for _ in range(4):
            loop.launch(REDUCE, 2_000_000, grid=(500_000, 1, 1), block=(512, 1, 1))
        loop.launch(BF16, 400_000, **LARGE)

    return run_steps(body)


def experts():
    def body(loop, _):
        for _ in range(8):
            loop.launch(NATIVE.format("CompareEqFunctor"), 1_000, **SMALL)
            loop.launch(COUNT, 1_500, **SMALL)
            loop.copy("D2H", 4, 1_500, blocking=True)
            loop.launch(SELECT, 2_000, **SMALL)
            loop.python(20_000)
            loop.launch(GATHER, 3_000, **SMALL)
            loop.launch(BF16, 6_000, grid=(96, 1, 1), block=(384, 1, 1))
            loop.launch(ADD_ROWS, 3_000, grid=(1056, 1, 1))

    return run_steps(body)


def launches(*names, runs=500_000):
    def body(loop, _):
        for name in names:
            loop.launch(name, runs, **LARGE)
        loop.launch("finish(float *)", 20_000, **LARGE)

    return run_steps(body)


def training():
    def body(loop, _):
        loop.launch(BROADCAST, 150_000, grid=(1, 1, 1), block=(544, 1, 1))
        for number in range(6):
            loop.launch(NATIVE.format(f"{'ABC'[number % 3]}Functor"), 200_000, **LARGE)
        loop.launch(BACKWARD, 300_000, **LARGE)
        loop.launch(ALL_REDUCE, 100_000, grid=(1, 1, 1), block=(544, 1, 1))

    return run_steps(body)


class TestReplacements:
    """Operations that another one replaces; tests/test_rule_limits.py has the conditions of each."""

    def test_products_of_one_size_in_a_row_become_one(self, findings_of):
        finding = findings_of(products)["Matrix-vector products of one size run one after another"]
        assert finding.recoverable_ns > 1.5 * finding.saving_low_ns > 0

    def test_arrays_in_parts_that_are_reduced_and_convolutions(self, findings_of):
        findings = findings_of(partial(ailments.in_turn, pairs, partial(launches, CONVOLVE, runs=5_000_000)))
        assert "Huge arrays are computed, and reduced by an operation of their own" in findings
        assert "FFT" in findings["Convolutions run in FP32 without tensor cores"].action
        # A convolution is no matrix product.
        assert "fp32-gemm" not in findings

    def test_experts_whose_rows_are_searched_become_a_grouped_product(self, diagnose_program):
        first = diagnose_program(experts, "replaceable-construct", "scalar-read-backs", "launch-bound").findings[0]
        assert first.title == "Experts run one after another, and the rows of each are searched"
        assert "grouped_mm" in first.action

    def test_windows_in_two_dimensions_and_integer_keys(self, findings_of):
        # Windows along an axis or of a small size, and floating-point keys, run next to them.
        windows = [WINDOW.format(*size) for size in ((41, 41), (41, 1), (1, 41), (3, 3))]
        keys = [SORT.format(keys) for keys in ("unsigned int, unsigned int, unsigned int", "float, int")]
        findings = findings_of(partial(launches, *windows, *keys * 4))
        window = findings["A large window is applied in two dimensions at once"]
        sort = findings["Integer keys are sorted by all of their bits, or by many"]
        assert (window.values["calls"], window.values["total_ns"]) == (1, 500_000)
        assert (sort.values["calls"], sort.values["total_ns"]) == (4, 2_000_000)

    @pytest.mark.slow  # tests/test_rule_limits.py has its conditions
    def test_a_broadcast_next_to_the_gradients_is_of_buffers(self, findings_of):
        assert "Buffers are broadcast in each step" in findings_of(training)


def iterate(*, mark="Thunk:#hlo_op=while.6,unique_hlo_op_id=34#"):
    """A loop of XLA, whose condition is read back in each iteration."""

    def body(loop, _):
        start = loop.host.now
        for _ in range(40):
            loop.launch("loop_add_fusion", 3_000, **LARGE)
            loop.launch("loop_and_fusion", 1_000, **SMALL)
            loop.copy("D2H", 1, 1_500, blocking=True)
        loop.host.range(mark, start, loop.host.now)

    return run_steps(body)


class TestLoopsOfXla:
    def test_its_flag_is_the_condition_of_a_loop(self, findings_of):
        assert "10 to 50 iterations" in findings_of(iterate)["graph-break"].action

    def test_another_flag_is_a_branch_of_the_program(self, findings_of):
        action = findings_of(partial(iterate, mark="Thunk:#hlo_op=command_buffer_6#"))["graph-break"].action
        assert "iterations" not in action


# Local memory for all threads of the GPU: 132 SMs of 2,048 threads.
LOCAL = 132 * 2048


def spilling(registers=32):
    """Run kernels with local memory: most of the time a kernel that has more than others."""

    def body(loop, _):
        for name, runs, own_registers, local_bytes in (
            ("advance(float *)", 3_000_000, registers, 1_008),
            ("mix(float *)", 8_000, 16, 592),
            ("push(float *)", 8_000, 16, 592 + 16),
            (REDUCE, 8_000, 16, 1_008),
        ):
            loop.launch(name, runs, **LARGE, registers=own_registers, local_total=local_bytes * LOCAL)

    return run_steps(body)


def test_local_memory_beyond_that_of_other_kernels_is_named(tmp_path):
    with open_trace(spilling().write(tmp_path / "trace.sqlite")) as trace:
        rows = trace.sql("SELECT kernel_base_name(name), local_bytes FROM _own_local_memory").rows()
        finding = evaluate_rules(trace, ["hot-kernels"])["hot-kernels"]
    # None of kernels of libraries, and what is more than the least of all.
    assert dict(rows) == {"advance": 416, "push": 16, "mix": 0}
    assert finding.values["local_bytes"] == pytest.approx(416)
    assert "registers that it needs" in finding.action


def slow_threads():
    """Run kernels of 4 million threads, for which 16 bytes each take 14 us on an H200."""

    def body(loop, _):
        for name, runs, changes in (
            ("add_to_one(float *)", 120_000, {}),
            ("move(float *)", 80_000, {}),
            ("step_down(float *)", 50_000, {"block": (1, 256, 1)}),
            ("step_across(float *)", 50_000, {"block": (32, 8, 1)}),
            ("hold(float *)", 120_000, {"registers": 40}),
            ("gather(float *)", 120_000, {"static_shared": 1_024}),
            ("loop_over(float *)", 120_000, {"grid": (2_048, 1, 1)}),
            (REDUCE, 120_000, {}),
        ):
            loop.launch(name, runs, **{"grid": (16_384, 1, 1), "block": (256, 1, 1), "registers": 32, **changes})

    return run_steps(body)


def test_kernels_whose_threads_hold_little_and_take_long_are_named(tmp_path):
    with open_trace(slow_threads().write(tmp_path / "trace.sqlite")) as trace:
        rows = trace.sql("SELECT kernel_base_name(name), round(times, 1), narrow_block FROM _slow_threads").rows()
        finding = evaluate_rules(trace, ["hot-kernels"])["hot-kernels"]
    assert set(map(tuple, rows)) == {("add_to_one", 8.6, None), ("step_down", 3.6, "1x256")}
    assert "takes 9 times as long as reading and writing 16 bytes per thread would take" in finding.evidence
    assert "neighboring threads access neighboring elements" in finding.action


def test_an_array_that_is_indexed_at_run_time_is_no_spill(tmp_path):
    with open_trace(spilling(registers=31).write(tmp_path / "trace.sqlite")) as trace:
        finding = evaluate_rules(trace, ["hot-kernels"])["hot-kernels"]
    assert "arrays that are indexed at run time" in finding.evidence
    assert "registers are spilled, or" not in finding.evidence
    assert "Let the arrays of a thread of advance lie in registers" in finding.action


class TestRepetitions:
    def test_rows_of_one_block_become_one_launch(self, diagnose_program):
        first = diagnose_program(rows_in_turn, "repeated-sequence", "many-launches").findings[0]
        assert first.code == "NSI107"
        assert "one of 100 equal sequences" in first.evidence
        assert "one more grid dimension" in first.action
        # All but one of 100 launches go.
        assert 0 < first.saving_low_ns < first.recoverable_ns

    def test_rows_on_a_busy_gpu_that_is_mostly_empty(self, findings_of):
        finding = findings_of(partial(ailments.transforms, runs=40_000, host_ns=1_000))["repeated-sequence"]
        assert finding.values["filled_pct"] == pytest.approx(100 / 132)

    def test_time_steps_are_launched_as_a_graph(self, diagnose_program):
        first = diagnose_program(TIME_STEPS, "launch-bound", "repeated-step").findings[0]
        assert first.code in ("NSI101", "NSI102")
        (step,) = (finding for finding in first.also if finding.code == "NSI108")
        assert "pull, kick, drift" in step.evidence
        assert "as time steps do" in step.evidence

    def test_passes_over_the_same_data_may_be_one_pass(self, diagnose_program):
        first = diagnose_program(PASSES, "hot-kernels", "repeated-step").findings[0]
        assert first.code == "NSI401"
        assert "in one pass over it" in first.action
        assert "NSI108" in {finding.code for finding in first.also}

    def test_a_loop_of_xla_may_be_a_map(self, findings_of):
        mark = "Thunk:#hlo_op=while.6,unique_hlo_op_id=34#"
        make = partial(rows_in_turn, names=("loop_add_fusion",), grid=(4, 1, 1), runs=6_000, host_ns=1_000, mark=mark)
        finding = findings_of(make)["repeated-sequence"]
        assert "jax.vmap" in finding.action
        assert finding.saving_low_ns == 0

    @pytest.mark.parametrize(("mark", "is_known"), [("Thunk:#hlo_op=while.6#", True), ("recurrence", False)])
    def test_a_loop_of_xla_is_known_without_steps(self, mark, is_known, findings_of):
        finding = findings_of(partial(recur_over_time, mark)).get("repeated-sequence")
        assert (finding is not None) == is_known
        if finding:
            assert "associative_scan" in finding.action
            assert "200 iterations" in finding.evidence
            assert finding.recoverable_ns == 199 * 8_000


def recur_over_time(mark):
    """Run the time steps of a layer in one loop, after a product that takes most of the GPU's time: no steps repeat."""

    def body(loop, _):
        loop.launch(BF16, 3 * MS, **LARGE)
        loop.sync()
        start = loop.host.now
        for _ in range(200):
            loop.launch("loop_multiply_fusion", 2_000, **SMALL)
            loop.launch("loop_dynamic_update_slice_fusion", 1_000, **SMALL)
        loop.host.range(mark, start, loop.host.now)

    return run_steps(body, steps=1)


def library_ranges():
    """Sort twice in each of the steps: the library marks its calls."""

    def body(loop, _):
        loop.launch("fill(float *)", 50_000, **LARGE)
        for _ in range(2):
            start = loop.host.now
            loop.launch(SORT.format("float"), 400_000, **LARGE)
            loop.host.range("cub::DeviceRadixSort", start, loop.host.now, domain="CCCL")

    return run_steps(body)


def test_the_ranges_of_a_library_are_no_steps(tmp_path):
    with open_trace(library_ranges().write(tmp_path / "trace.sqlite")) as trace:
        ((method, count),) = trace.sql("SELECT method, step_count FROM step_method").rows()
    assert (method, count) == ("sequence", 10)
