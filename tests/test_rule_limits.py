"""The limits of rules: what a rule's query reads, as small tables, and the rows that it returns.

A table has only the columns that the query reads, and a rule takes milliseconds. That the rule fires on a trace is
tested in tests/test_rules_*.py and tests/test_diagnosis.py.
"""

from __future__ import annotations

import duckdb
import pytest
from ailments import BF16, FP64, TF32

from nsys_insight.diagnose.findings import read_finding_rules
from nsys_insight.model.views import create_macros
from nsys_insight.sql.quoting import literal

RULES = {rule.name: rule for rule in read_finding_rules()}
# A step of 1 ms on a busy GPU.
STEP = {
    "units": 1, "wall_ns": 1e6, "busy_ns": 9e5, "kernel_ns": 9e5, "idle_ns": 1e5, "launch_calls": 10, "has_steps": True,
}  # fmt: skip
LIMITS = {"high_limit_ns": 1e6, "low_limit_ns": 1e6}
H100 = {"clock_hz": 1.98e9, "sm_count": 132}
PEAKS = [{"gpu": "NVIDIA H100", "precision": name, "tflop_per_s": rate} for name, rate in
         (("fp32", 67.0), ("tf32", 495.0), ("fp16", 990.0))]  # fmt: skip


@pytest.fixture(scope="module")
def run_rule():
    """Give a function that runs a rule's query on tables, each a list of rows, and returns its rows.

    The family of a kernel that has none is that of its name.
    """
    with duckdb.connect() as connection:
        create_macros(connection)

        def run(name, **tables):
            connection.begin()
            try:
                for table, rows in {"_step_limits": [LIMITS], **tables}.items():
                    selects = (
                        f"SELECT {', '.join(f'{literal(cell)} AS {column}' for column, cell in row.items())}"
                        for row in rows
                    )
                    connection.execute(f"CREATE TABLE {table} AS {' UNION ALL BY NAME '.join(selects)}")
                if "_steady_shapes" in tables and "family" not in tables["_steady_shapes"][0]:
                    connection.execute("ALTER TABLE _steady_shapes ADD COLUMN family VARCHAR")
                    connection.execute("UPDATE _steady_shapes SET family = kernel_family(name)")
                result = connection.sql(RULES[name].statement())
                return [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]
            finally:
                connection.rollback()

        yield run


def shape(name="total(float *)", *, blocks=4096, threads=256, avg_ns=600_000, **changes):
    """Give a row of `_steady_shapes`: one call of a kernel that takes most of the step."""
    return {
        "name": name, "grid": f"{blocks}x1x1", "block": f"{threads}x1x1", "calls": 1, "total_ns": avg_ns,
        "avg_ns": avg_ns, "kernel_time_pct": 60.0, **changes,
    }  # fmt: skip


class TestSmallBlocks:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            # Empty lanes of warps are lost.
            ({"threads": 16}, {"lane_pct": 50.0, "recoverable_ns": 300_000, "is_start_bound": False}),
            ({"threads": 33}, {"lane_pct": 100 * 33 / 64, "recoverable_ns": 600_000 * 31 / 64}),
            ({"threads": 100}, {"lane_pct": 100 * 100 / 128, "recoverable_ns": 600_000 * 28 / 128}),
            # 1.67 blocks per nanosecond, as an H100 starts them: they take as long as their start.
            ({"threads": 16, "blocks": 1_000_000}, {"blocks_per_us": 1667, "recoverable_ns": 600_000 * 15 / 16}),
            ({"threads": 32, "blocks": 1_000_000}, {"is_start_bound": True, "recoverable_ns": 600_000 * 7 / 8}),
            ({"threads": 64, "blocks": 1_000_000}, {"is_start_bound": True, "recoverable_ns": 600_000 * 3 / 4}),
            ({"threads": 128, "blocks": 1_000_000}, None),
            # Full warps alone, one block, short kernels, kernels with little time, and those of libraries.
            ({"threads": 32}, None),
            ({"threads": 128}, None),
            ({"threads": 16, "blocks": 1}, None),
            ({"threads": 16, "avg_ns": 9_999}, None),
            ({"threads": 16, "kernel_time_pct": 4.9}, None),
            ({"threads": 20, "name": "void gemv2T_kernel_val<int, int, float>(T1)"}, None),
            # In full blocks, fewer than 128 threads for each of 132 SMs would leave SMs empty.
            ({"threads": 16, "blocks": 1055}, None),
            ({"threads": 16, "blocks": 1056}, {"recoverable_ns": 300_000}),
        ],
    )
    def test_a_shape(self, changes, expected, run_rule):
        names = [{"name": "total(float *)", "provenance": "hand-written"}]
        rows = run_rule("small-blocks", _steady_shapes=[shape(**changes)], kernel_names=names, gpus=[H100],
                        _step_totals=[STEP])  # fmt: skip
        assert [{name: pytest.approx(row[name]) for name in expected} for row in rows] == (
            [expected] if expected else []
        )

    def test_a_gpu_that_the_trace_does_not_describe(self, run_rule):
        shapes, unknown = [shape(threads=16, blocks=1_000_000)], {"clock_hz": None, "sm_count": None}
        names = [{"name": "other", "provenance": "cuBLAS"}]
        rows = run_rule("small-blocks", _steady_shapes=shapes, kernel_names=names, gpus=[unknown], _step_totals=[STEP])
        assert [(row["is_start_bound"], row["recoverable_ns"]) for row in rows] == [(False, 300_000)]


@pytest.mark.parametrize(
    ("name", "is_named"),
    [
        ("total(float *)", True),
        ("spin_kernel(long)", False),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", False),
    ],
)
@pytest.mark.parametrize(("blocks", "is_few"), [(13, True), (14, False)])
def test_a_kernel_in_few_blocks(name, is_named, blocks, is_few, run_rule):
    """The limit is a tenth of 132 SMs. Kernels that wait need not have more blocks."""
    launch = {"name_id": 1, "grid_x": blocks, "grid_y": 1, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1,
              "blocks_count": blocks, "sm_count": 132, "total_ns": 600_000}  # fmt: skip
    rows = run_rule("one-block", _steady_shapes=[shape(name, blocks=blocks)], launch_shapes=[launch],
                    kernel_names=[{"name": name, "name_id": 1}], _step_totals=[STEP],
                    _unified_memory_events=[{"name": "another", "in_kernel_ns": 1}])  # fmt: skip
    assert [row["blocks"] for row in rows] == ([blocks] if is_named and is_few else [])


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("ampere_sgemm_128x64_tn", 1),
        ("volta_scudnn_128x64_relu_interior_nn_v1", None),  # a convolution
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)", None),  # on tensor cores
        ("volta_fp16_sgemm_fp16_128x64_nn", None),
        ("batched_sgemm_m48_n9_k9(const float *, const float *, float *)", None),  # of no known library
        ("void my_sgemm<float>(T1 *, int)", None),
        ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x3_nn", None),
        ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16>(T1)", None),
        (BF16, None),
        (TF32, None),
    ],
)
def test_products_in_fp32_by_name(name, calls, run_rule):
    rows = run_rule("fp32-gemm", _steady_shapes=[shape(name)], gpu_peaks=PEAKS, _step_totals=[STEP])
    assert [row["calls"] for row in rows] == ([calls] if calls else [])


@pytest.mark.parametrize(("pct", "count"), [(9.9, 0), (10.0, 1)])
def test_products_in_fp32_with_little_time(pct, count, run_rule):
    shapes = [shape("ampere_sgemm_128x64_tn", kernel_time_pct=pct)]
    assert len(run_rule("fp32-gemm", _steady_shapes=shapes, gpu_peaks=PEAKS, _step_totals=[STEP])) == count


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1>(T1)", 0.5, 0.88),
        ("void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_128x256_64x3_nn_align2>(T1)", 0.35, 0.7),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_32x3_nn_align1>(T1)", 0.35, 0.7),
        ("volta_fp16_sgemm_fp16_128x64_nn", 0.5, 0.88),
        # Full loads.
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_64x3_nn_align8>(T1)", None, None),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>(T1)", None, None),
        (FP64, None, None),
        (TF32, None, None),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_32x3_nn_align16>(T1)", None, None),
    ],
)
def test_products_with_narrow_loads_by_name(name, low, high, run_rule):
    (row,) = run_rule("gemm-odd-sizes", _steady_shapes=[shape(name)], _step_totals=[STEP]) or [{}]
    saving = (row.get("saving_low_ns"), row.get("recoverable_ns"))
    assert saving == ((pytest.approx(low * 600_000), pytest.approx(high * 600_000)) if low else (None, None))
