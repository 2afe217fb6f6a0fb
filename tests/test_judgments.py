"""Judgments of the catalog of constructs on operations of a step, each with its counter-examples.

`CASES` are rows of operations as the facts describe them, all judged at once. `many_operations` is a program whose
operations are described and judged from a trace.
"""

from __future__ import annotations

import ailments
import duckdb
import pytest
from ailments import BF16, LARGE, MS, NATIVE, run_steps
from opening import evaluate_rules, open_trace

from nsys_insight.facts import step_operations
from nsys_insight.facts.context import DEFAULT_OPTIONS, Context
from nsys_insight.model.construct_catalog import list_columns, write_macros
from nsys_insight.sql.quoting import literal

GEMV = "void gemv2T_kernel_val<int, int, double, double, double, double, (int)128, (int)16, (int)4>(T13, T6, T6)"
SOFTMAX = "void at::native::<unnamed>::cunn_SoftMaxForward<(int)4, float, float, float>(T4 *)"
SEND = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"
ADD, ROOT = NATIVE.format("CUDAFunctor_add"), NATIVE.format("sqrt_kernel_cuda")
FUSIBLE, SHORT, PARTIAL = (
    "elementwise operation beside another",
    "operation as short as a launch",
    "kernel on a part of the GPU",
)
PCIE, MEMORY = 63e9, 4.8e12
SMALL = {"grid": (16, 1, 1), "block": (128, 1, 1)}
MIGRATION = {"size_bytes": 2 << 20, "calls": 20, "rate": 0.85 * PCIE}


def kernel(construct, avg_ns, *, calls=10, step_ns=MS, neighbors="matrix product", **changes):
    """Give the row of a kernel between others."""
    busy_pct = 100 * calls * avg_ns / step_ns
    return {
        "kind": "kernel", "name": construct, "construct": construct, "calls": calls, "avg_ns": avg_ns,
        "total_ns": calls * avg_ns, "busy_pct": busy_pct, "step_pct": busy_pct, "before": neighbors,
        "after": "matrix product", "blocks_count": 4096, "waves_per_sm": 4.0, "sm_count": 132, "streams": 1,
        "in_graph_pct": 0.0, "idle_before_ns": 0.0, "step_ns": step_ns, **changes,
    }  # fmt: skip


def copy(name="H2D copy", size_bytes=64 << 20, *, rate=0.86 * PCIE, avg_ns=None, calls=1, step_pct=10.0, **changes):
    """Give the row of a copy at a rate."""
    avg_ns = avg_ns or 1e9 * size_bytes / rate
    return {
        "kind": "copy", "name": name, "size_bytes": size_bytes, "calls": calls, "avg_ns": avg_ns,
        "total_ns": calls * avg_ns, "bytes_per_s": 1e9 * size_bytes / avg_ns, "step_pct": step_pct, "pageable_pct": 0.0,
        "host_bytes_per_s": PCIE, "memory_bytes_per_s": MEMORY, "has_steps": True, "devices": 1, "in_graph_pct": 0.0,
        **changes,
    }  # fmt: skip


COPY_WITHIN = "copy within the GPU or between GPUs"
PAGEABLE = {"pageable_pct": 100.0}
# Rows of a program, and the judgment of the first one with the entry of the catalog that has it.
CASES = {
    "a copy at the rate of the bus": ([copy()], ("efficient", "copy to the GPU")),
    "from pageable memory": ([copy(**PAGEABLE)], ("efficient", "copy to the GPU")),
    "to the host": ([copy("D2H copy")], ("efficient", "copy to the host")),
    "to pageable memory": ([copy("D2H copy", **PAGEABLE)], ("efficient", "copy to the host")),
    # A small copy takes its fixed time as well: 2.5 us, and 3 us for 128 KiB at 70% of the bus.
    "a small copy": ([copy(size_bytes=128 << 10, avg_ns=5_400)], ("efficient", "copy to the GPU")),
    "a slow small copy": ([copy(size_bytes=128 << 10, avg_ns=5_500)], None),
    "a short one": ([copy(size_bytes=128 << 10, avg_ns=5_500, step_pct=0.9)], ("efficient", "copy to the GPU")),
    # Pageable memory: slower than an older slot could be, or faster and still slow.
    "0.1 of the bus": ([copy(rate=0.1 * PCIE, **PAGEABLE)], ("replaceable", "copy to the GPU")),
    "0.34 of the bus": ([copy(rate=0.34 * PCIE, **PAGEABLE)], ("replaceable", "copy to the GPU")),
    "0.43 of the bus": ([copy(rate=0.43 * PCIE, **PAGEABLE)], ("replaceable", "copy to the GPU")),
    "0.59 of the bus": ([copy(rate=0.59 * PCIE, **PAGEABLE)], ("replaceable", "copy to the GPU")),
    # The slot may be of an older generation.
    "0.36 of the bus": ([copy(rate=0.36 * PCIE, **PAGEABLE)], None),
    "0.41 of the bus": ([copy(rate=0.41 * PCIE, **PAGEABLE)], None),
    # Pinned memory in a slot of an older generation, or a slow slot: the trace does not show which.
    "0.4 of the bus, pinned": ([copy(rate=0.4 * PCIE)], None),
    "0.1 of the bus, pinned": ([copy(rate=0.1 * PCIE)], None),
    # Faster than the bus: another link.
    "5 times the bus": ([copy(rate=5 * PCIE)], None),
    # A copy within the GPU reads and writes.
    "within the GPU": ([copy("other copy", rate=2.1e12, step_pct=4)], ("efficient", COPY_WITHIN)),
    "slowly": ([copy("other copy", rate=0.9e12, step_pct=4)], None),
    # Migrations are judged by their cause and rate.
    "a prefetch": ([copy("migration", **MIGRATION, faulted_pct=0)], ("efficient", "migration of managed memory")),
    "a slow one": ([copy("migration", **MIGRATION | {"rate": 0.3 * PCIE}, faulted_pct=0)], None),
    "page faults": ([copy("migration", **MIGRATION, faulted_pct=50)], ("replaceable", "migration of managed memory")),
    "a few of them": ([copy("migration", **MIGRATION | {"calls": 7}, faulted_pct=50)], None),
    # Next to another elementwise operation, one can be fused.
    **{
        f"a fusible one of {runs} ns": (
            [kernel("PyTorch elementwise operation", runs, neighbors="PyTorch elementwise operation")],
            ("replaceable", FUSIBLE),
        )
        for runs in (2_000, 8_000, 50_000)
    },
    "between products": ([kernel("PyTorch elementwise operation", 19_000)], None),
    "a long one": ([kernel("PyTorch elementwise operation", 20_000)], ("efficient", "PyTorch elementwise operation")),
    "as short as a launch": ([kernel("softmax", 2_900)], ("replaceable", SHORT)),
    "longer": ([kernel("softmax", 3_000)], None),
    # Its time contains the wait for other ranks.
    "communication": ([kernel("NCCL send and receive", 2_000)], None),
    "no entry has its name": ([kernel(None, 2_000)], None),
    "one of them": ([kernel("softmax", 2_000, calls=1, step_ns=MS // 3)], ("replaceable", SHORT)),
    "in a long step": ([kernel("softmax", 2_000, calls=1)], None),
    # Few blocks leave most SMs empty.
    "65 blocks": ([kernel("softmax", 4_000, blocks_count=65)], ("replaceable", PARTIAL)),
    "66 blocks": ([kernel("softmax", 4_000, blocks_count=66)], None),
    # Other kernels may run at the same time.
    "two streams": ([kernel("softmax", 4_000, blocks_count=16, streams=2)], None),
    "as many as it needs": ([kernel("NCCL send and receive", 8_000, blocks_count=16)], None),
    # What a replacement includes is replaced with it. A batch of full size stays, and so do its triangular solves.
    "solves in turn": (
        [kernel("triangular solve", 8_000), kernel("LU factorization", 60_000, blocks_count=48)],
        ("replaceable", "LU factorization"),
    ),
    "a batch": ([kernel("triangular solve", 8_000), kernel("LU factorization", 60_000, calls=7)], None),
    "a vector": ([kernel("matrix-vector product", 50_000)], ("efficient", "matrix-vector product")),
    "vectors in a row": ([kernel("matrix-vector product", 50_000, neighbors="matrix-vector product")], None),
}  # fmt: skip


class GivenOperations(Context):
    """What the producer gets: the operations of the test. It computes no savings."""

    def runner(self, folder):
        run = super().runner(folder)
        return lambda name, **values: None if name in {"unnamed", "replaced"} else run(name, **values)


@pytest.fixture(scope="module")
def judgments():
    """Judge all cases at once: each is the process with its number."""
    computed = "domain library shapes construct_calls construct_ns construct_pct counts times judgment judged_by"
    columns = [column for column in list_columns() if column.split()[0] not in computed.split()]
    rows = [
        {"process_id": number, "device_id": 0, "row_number": 100 * number + place, **row}
        for number, (operations, _) in enumerate(CASES.values())
        for place, row in enumerate(operations)
    ]
    selects = (f"SELECT {', '.join(f'{literal(cell)} AS {name}' for name, cell in row.items())}" for row in rows)
    with duckdb.connect() as connection:
        connection.execute("; ".join(write_macros()))
        connection.execute(f"""
            CREATE SCHEMA facts;
            CREATE TABLE facts.step_operations ({", ".join(list_columns())});
            CREATE TABLE internal.unnamed_operations (row_number BIGINT, base_name VARCHAR, {", ".join(columns)});
            INSERT INTO internal.unnamed_operations BY NAME {" UNION ALL BY NAME ".join(selects)}""")
        step_operations.fill(GivenOperations(connection, DEFAULT_OPTIONS, [""], [""], [], [], lambda *_: None))
        rows = connection.execute("SELECT process_id, judgment, judged_by FROM facts.step_operations").fetchall()
    # The first row of a process is the last one here, and stays.
    return {number: (judgment, judged_by) for number, judgment, judged_by in reversed(rows)}


@pytest.mark.parametrize("name", CASES)
def test_an_operation_is_judged(name, judgments):
    number, (_, expected) = list(CASES).index(name), CASES[name]
    assert judgments[number] == (expected or (None, None))


def many_operations():
    """Launch kernels, copy and migrate. Operations of one kind have sizes of their own."""

    def copy_memory(loop, kind, size, rate, memory):
        loop.copy(kind, size, round(1e9 * size / rate))
        row = loop.trace.rows["CUPTI_ACTIVITY_KIND_MEMCPY"][-1]
        for column in ("srcKind", "dstKind"):
            row[column] = row[column].replace("Pinned", memory)

    def migrate(loop, size, cause):
        takes = round(1e9 * size / (0.85 * PCIE))
        for number in range(20):
            start = loop.host.now + 100_000 + number * takes
            loop.host.migrate("UM H2D", size, start=start, runs=takes, cause=cause)

    def body(loop, number):
        copy_memory(loop, "H2D", 64 << 20, 0.86 * PCIE, "Pinned")
        copy_memory(loop, "H2D", 16 << 20, 0.3 * PCIE, "Pageable")
        copy_memory(loop, "D2H", 64 << 20, 0.86 * PCIE, "Pageable")
        copy_memory(loop, "D2D", 64 << 20, 0.9e12, "Pinned")
        for name, runs, neighbor, shape in (
            (ROOT, 8_000, ADD, LARGE), (SOFTMAX, 2_000, BF16, LARGE), (SOFTMAX, 8_000, BF16, SMALL),
            (SEND, 2_000, BF16, LARGE), (SEND, 8_000, BF16, SMALL), ("advance(float *)", 2_000, BF16, LARGE),
            (GEMV, 50_000, BF16, LARGE),
        ):  # fmt: skip
            for _ in range(10):
                loop.launch(neighbor, 30_000, **LARGE)
                loop.launch(name, runs, **shape)
                loop.launch(BF16, 30_000, **LARGE)
        for size, cause in ((2 << 20, "User prefetch"), (1 << 20, "Page fault"), (1 << 19, "Speculative prefecth")):
            loop.sync()
            migrate(loop, size, cause)
            loop.launch(BF16, MS, **LARGE)
        solve(loop, number)

    solve = ailments.solves().body
    return run_steps(body, steps=5, nvtx="step")


def test_operations_of_a_trace_are_described_and_judged(tmp_path):
    with open_trace(many_operations().write(tmp_path / "trace.sqlite")) as trace:
        rows = trace.dicts("FROM step_operations WHERE kind IN ('kernel', 'copy')")
        reported = evaluate_rules(trace, ["replaceable-construct"]).values()
        (line,) = (row for row in trace.answer("constructs").dicts() if row["name"] == "PyTorch elementwise operation")
    judged = {
        (row["name"], row["size_bytes"] or row["blocks_count"]): (row["judgment"], row["judged_by"]) for row in rows
    }
    expected = {
        ("H2D copy", 64 << 20): ("efficient", "copy to the GPU"),
        ("H2D copy", 16 << 20): ("replaceable", "copy to the GPU"),
        ("D2H copy", 64 << 20): ("efficient", "copy to the host"),
        ("other copy", 64 << 20): ("efficient", COPY_WITHIN),
        (ROOT, 4096): ("replaceable", FUSIBLE),
        (SOFTMAX, 4096): ("replaceable", SHORT),
        (SOFTMAX, 16): ("replaceable", PARTIAL),
        (SEND, 4096): (None, None),
        (SEND, 16): (None, None),
        ("advance(float *)", 4096): (None, None),
        (GEMV, 4096): ("efficient", "matrix-vector product"),
        ("migration", 2 << 20): ("efficient", "migration of managed memory"),
        ("migration", 1 << 20): ("replaceable", "migration of managed memory"),
        ("migration", 1 << 19): ("replaceable", "migration of managed memory"),
        (ailments.TRIANGULAR, 2): ("replaceable", "LU factorization"),
    }
    assert {key: judged[key] for key in expected} == expected
    # What a rule of its own reports is no finding of the catalog as well.
    assert {finding.family for finding in reported} == {"construct: LU factorization"}
    assert line["replaced_by"].startswith("Fuse them with their neighbors")
    assert (line["saving_low_ns"], line["saving_ns"]) == (None, None)


def graph_and_products():
    def body(loop, _):
        loop.graph(graph_ns=300_000)
        loop.launch(BF16, 100_000, **LARGE)

    return run_steps(body)


def test_a_graph_that_is_one_operation_is_not_named(tmp_path):
    with open_trace(graph_and_products().write(tmp_path / "trace.sqlite")) as trace:
        (row,) = trace.dicts("FROM construct_coverage")
    assert (row["graph_pct"], row["named_pct"]) == (pytest.approx(75), pytest.approx(25))
    assert (row["neither_pct"], row["judged_pct"]) == (pytest.approx(0), pytest.approx(100))
