"""Judgments of the catalog of constructs on operations of a step, each with its counter-examples."""

from __future__ import annotations

from functools import partial

import ailments
import pytest
from ailments import BF16, LARGE, MS, NATIVE, run_steps
from opening import open_trace

GEMV = "void gemv2T_kernel_val<int, int, double, double, double, double, (int)128, (int)16, (int)4>(T13, T6, T6)"
SOFTMAX = "void at::native::<unnamed>::cunn_SoftMaxForward<(int)4, float, float, float>(T4 *)"
SEND = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"
ADD, ROOT = NATIVE.format("CUDAFunctor_add"), NATIVE.format("sqrt_kernel_cuda")
BESIDE, SHORT, PARTIAL = (
    "elementwise operation beside another",
    "operation as short as a launch",
    "kernel on a part of the GPU",
)
PCIE = 63e9


@pytest.fixture
def judge(tmp_path):
    """Give a function that returns judgment and its entry of the longest operation with a name in a planted program."""

    def judge_operation(make, name):
        with open_trace(make().write(tmp_path / "trace.sqlite")) as trace:
            rows = trace.dicts(f"FROM step_operations WHERE contains(name, '{name}') ORDER BY total_ns DESC")
            reported = {finding.values.get("construct") for finding in trace.diagnose().findings}
        # What a rule of its own reports is no finding of the catalog as well.
        assert not reported & {BESIDE, SHORT, PARTIAL}
        return rows[0]["judgment"], rows[0]["judged_by"]

    return judge_operation


def copies(*, kind="H2D", size=64 << 20, rate=0.86 * PCIE, memory="pinned", others=20 * MS, steps=10):
    """Copy an array from or to the host, or within the GPU, in each step, beside other work."""

    def body(loop, _):
        loop.copy(kind, size, round(1e9 * size / rate))
        row = loop.trace.rows["CUPTI_ACTIVITY_KIND_MEMCPY"][-1]
        for column in ("srcKind", "dstKind"):
            row[column] = row[column].replace("Pinned", memory.title())
        loop.launch(BF16, others, **LARGE)

    return run_steps(body, steps=steps)


class TestCopies:
    @pytest.mark.parametrize("memory", ["pinned", "pageable"])
    @pytest.mark.parametrize(("kind", "name"), [("H2D", "copy to the GPU"), ("D2H", "copy to the host")])
    def test_at_the_rate_of_the_bus_a_copy_is_efficient(self, kind, name, memory, judge):
        assert judge(partial(copies, kind=kind, memory=memory), f"{kind} copy") == ("efficient", name)

    # 4.5 us are 2.5 us and 1.9 us for 128 KiB, at 70% of the bus.
    @pytest.mark.parametrize(("takes", "judgment"), [(4_500, "efficient"), (9_000, None)])
    def test_a_small_copy_takes_its_fixed_time_as_well(self, takes, judgment, judge):
        make = partial(copies, size=128 << 10, rate=1e9 * (128 << 10) / takes, others=100_000)
        assert judge(make, "H2D copy")[0] == judgment

    @pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
    def test_slow_copies_of_pageable_memory_have_a_replacement(self, rate, judge):
        make = partial(copies, rate=rate * PCIE, memory="pageable")
        assert judge(make, "H2D copy") == ("replaceable", "copy to the GPU")

    @pytest.mark.parametrize(
        "options",
        [
            # Pinned memory in a slot of an older generation, or a slow slot: the trace does not show which.
            {"rate": 0.4 * PCIE},
            {"rate": 0.1 * PCIE},
            # Pageable memory in a slot that may be of an older generation.
            {"rate": 0.38 * PCIE, "memory": "pageable"},
            # Faster than the bus: another link.
            {"rate": 5 * PCIE},
        ],
    )
    def test_other_copies_are_not_judged(self, options, judge):
        assert judge(partial(copies, others=5 * MS, **options), "H2D copy") == (None, None)

    @pytest.mark.parametrize(("rate", "judgment"), [(2.1e12, "efficient"), (0.9e12, None)])
    def test_a_copy_within_the_gpu_reads_and_writes(self, rate, judgment, judge):
        make = partial(copies, kind="D2D", size=1 << 30, rate=rate, others=40 * MS)
        assert judge(make, "other copy")[0] == judgment


def operations(name, runs, *, neighbor=BF16, count=10, shape=LARGE, streams=1):
    """Launch a kernel between others."""

    def body(loop, _):
        for number in range(count):
            loop.launch(neighbor, 30_000, **LARGE)
            loop.launch(name, runs, stream=7 + number % streams if streams > 1 else 7, **shape)
            loop.launch(BF16, 30_000, **LARGE)

    return run_steps(body)


class TestElementwise:
    @pytest.mark.parametrize("runs", [2_000, 8_000, 50_000])
    def test_beside_another_one_it_can_be_fused(self, runs, judge):
        assert judge(partial(operations, ROOT, runs, neighbor=ADD), "sqrt") == ("replaceable", BESIDE)

    @pytest.mark.parametrize(("runs", "judgment"), [(8_000, None), (50_000, "efficient")])
    def test_between_matrix_products_it_cannot(self, runs, judgment, judge):
        assert judge(partial(operations, ROOT, runs), "sqrt")[0] == judgment


class TestShortOperations:
    def test_a_kernel_of_a_library_is_as_short_as_a_launch(self, judge):
        assert judge(partial(operations, SOFTMAX, 2_000), "SoftMax") == ("replaceable", SHORT)

    @pytest.mark.parametrize(
        ("name", "runs"),
        [
            (SOFTMAX, 4_000),
            # It waits for other ranks, whatever it takes.
            (SEND, 2_000),
            # Nobody knows what it does.
            ("advance(float *)", 2_000),
        ],
    )
    def test_longer_ones_communication_and_unknown_kernels_are_not(self, name, runs, judge):
        assert judge(partial(operations, name, runs), name[:12]) == (None, None)

    def test_one_of_them_in_a_long_step_does_not_matter(self, judge):
        assert judge(partial(operations, SOFTMAX, 2_000, count=1), "SoftMax")[0] == "replaceable"
        assert judge(partial(one_short, SOFTMAX), "SoftMax") == (None, None)


def one_short(name):
    return run_steps(lambda loop, _: (loop.launch(name, 2_000, **LARGE), loop.launch(BF16, 2 * MS, **LARGE)))


class TestPartOfTheGpu:
    def test_few_blocks_leave_most_sms_empty(self, judge):
        make = partial(operations, SOFTMAX, 8_000, shape={"grid": (16, 1, 1), "block": (128, 1, 1)})
        assert judge(make, "SoftMax") == ("replaceable", PARTIAL)

    @pytest.mark.parametrize(
        "options",
        [
            {"shape": {"grid": (100, 1, 1), "block": (128, 1, 1)}},
            # Others may run beside it.
            {"shape": {"grid": (16, 1, 1), "block": (128, 1, 1)}, "streams": 2},
        ],
    )
    def test_most_sms_or_several_streams_are_not_judged(self, options, judge):
        assert judge(partial(operations, SOFTMAX, 4_000, **options), "SoftMax") == (None, None)

    def test_communication_takes_as_many_blocks_as_it_needs(self, judge):
        make = partial(operations, SEND, 8_000, shape={"grid": (16, 1, 1), "block": (128, 1, 1)})
        assert judge(make, "SendRecv") == (None, None)


class TestOtherEntries:
    def test_what_a_replacement_includes_is_replaced_with_it(self, judge):
        assert judge(ailments.solves, ailments.TRIANGULAR[:20]) == ("replaceable", "LU factorization")
        # A batch of full size stays, and so do its triangular solves.
        assert judge(partial(ailments.solves, systems=1), ailments.TRIANGULAR[:20])[1] != "LU factorization"

    def test_matrix_vector_products_between_others_are_efficient(self, judge):
        assert judge(partial(operations, GEMV, 50_000, neighbor=ADD), "gemv2T")[0] == "efficient"
        assert judge(products_in_a_row, "gemv2T")[0] != "efficient"


def products_in_a_row():
    def body(loop, _):
        for _ in range(12):
            loop.launch(GEMV, 50_000, **LARGE)
        loop.launch(BF16, 5 * MS, **LARGE)

    return run_steps(body)


def graph_beside_products():
    def body(loop, _):
        loop.graph(graph_ns=300_000)
        loop.launch(BF16, 100_000, **LARGE)

    return run_steps(body)


def test_a_graph_that_is_one_operation_is_not_named(tmp_path):
    with open_trace(graph_beside_products().write(tmp_path / "trace.sqlite")) as trace:
        (row,) = trace.dicts("FROM construct_coverage")
    assert (row["graph_pct"], row["named_pct"]) == (pytest.approx(75), pytest.approx(25))
    assert (row["neither_pct"], row["judged_pct"]) == (pytest.approx(0), pytest.approx(100))


def test_the_report_says_what_replaces_a_kind_and_leaves_the_saving_to_the_rule(tmp_path):
    with open_trace(operations(SOFTMAX, 2_000).write(tmp_path / "trace.sqlite")) as trace:
        (row,) = (row for row in trace.answer("constructs").dicts() if row["name"] == "softmax")
    assert row["judgment"] == "replaceable"
    assert row["replaced_by"].startswith("Do more in one operation")
    assert (row["saving_low_ns"], row["saving_ns"]) == (None, None)
