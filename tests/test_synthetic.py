"""Synthetic traces have the tables of real exports, and contain exactly the planted events."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import oracle
import pytest
from hypothesis import given, settings
from rank_traces import describe_payloads
from strategies import traces
from synthetic import Trace
from synthetic_file import NVTX_DOMAIN
from synthetic_schema import ENUMS, TABLES, VERSIONS

REPOSITORY = Path(__file__).parents[1]
SHARED = REPOSITORY.parent / "shared"
SHARED_NAMES = "traces/decode_metrics.25 traces/churn.23 traces/decode_eager.25 foreign/saxpy_mpi.a100.nsys2022_2"
# Tables of an export with empty tables that are there only if their data was to be traced.
UNTRACED = re.compile("MPI|FILE_ACCESS|CONTEXT_SWITCH|NIC|NETWORK")
REAL = [
    *sorted((REPOSITORY / "sample_traces").glob("*.sqlite")),
    *(real for name in SHARED_NAMES.split() if (real := SHARED / f"{name}.sqlite").exists()),
]

# Tables that only some programs have.
_SPARSE_TABLES = (
    "MPI_", "OPENMP_", "CUDNN_", "CUBLAS_", "CUPTI_ACTIVITY_KIND_OPENACC", "CUDA_GRAPH_NODE", "NET_", "NIC_",
    "TARGET_INFO_N", "GPU_CONTEXT", "GPU_VIDEO", "NVVIDEO_", "ENUM_VIDEO", "OSRT_FILE", "ENUM_OSRT_FILE",
)  # fmt: skip


def make_full_trace() -> Trace:
    """Make a trace with a row in every table."""
    trace = Trace().diagnostic("CUDA injection initialized successfully.", severity="Info")
    trace.overhead("CUPTI Buffer flush", 10, 20).gpu_metric("SMs Active [Throughput %]", time=5, value=80)
    describe_payloads(trace)
    host = trace.thread()
    with host.nvtx("step", domain="app"):
        host.launch("void ns::gemm<float>(float *)", driver="cuLaunchKernel")
        host.copy("H2D", 64, blocking=True, source="pageable").memset(8).malloc(128).free().record(1)
        host.graph_launch(graph_ns=500).graph_launch(kernels=[("a", 1)]).sync("event", event=1).osrt("poll")
    host.page_faults(start=host.now).page_faults(start=host.now, runs=10, device=0)
    with host.call_stack(("main", "/app/main")):
        host.call("cudaGetDevice")
    host.sample(host.now, ("main", "/app/main")).off_cpu(host.now, host.now + 10)
    trace.chain("OSRT_CALLCHAINS", 1, [("poll", "/lib/libc.so.6")])
    for table in TABLES:
        if table.startswith(_SPARSE_TABLES) and not trace.rows[table]:
            required = re.findall(r"(\w+)!", TABLES[table])
            trace.row(table, **{column: "f" if column.endswith("nameId") else 1 for column in required})
    return trace


def read_columns(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return name, type, NOT NULL and key of each column of each table."""
    db = sqlite3.connect(path)
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")]
    columns = {name: [(c[1], c[2], c[3], c[5]) for c in db.execute(f'PRAGMA table_info("{name}")')] for name in names}
    db.close()
    return columns


def read_version(path: Path) -> str:
    """Return the version of nsys that wrote an export: its first two numbers."""
    tables = oracle.read(path)
    rows = [*tables["META_DATA_EXPORT"], *tables["EXPORT_META_DATA"]]
    version = next(row["value"] for row in rows if row["name"] == "EXPORT_PRODUCT_VERSION")
    return ".".join(version.split(".")[:2])


def run_query(path: Path, sql: str) -> list[Any]:
    db = sqlite3.connect(path)
    db.text_factory = bytes
    rows = db.execute(sql).fetchall()
    db.close()
    return rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.sqlite"


class TestFile:
    @pytest.mark.parametrize("real", REAL, ids=lambda real: real.name)
    def test_its_tables_are_those_of_the_real_export(self, real: Path, path: Path) -> None:
        version = read_version(real)
        synthetic = read_columns(
            make_full_trace().write(path, version, lazy=False, without_tables=missing_tables(version))
        )
        exported = read_columns(real)
        common = synthetic.keys() & exported.keys()
        assert {name: synthetic[name] for name in common} == {name: exported[name] for name in common}
        assert common >= {"StringIds", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "TARGET_INFO_GPU"}
        if version == "2022.2":  # this real export also has empty tables, but none of what was not to be traced
            assert common == {
                name
                for name in synthetic
                if not re.search("MPI|FILE_ACCESS|CONTEXT_SWITCH|NIC|NET|VIDEO_ENGINE|JPEG", name)
            }

    @pytest.mark.parametrize("real", REAL, ids=lambda real: real.name)
    def test_its_enums_are_those_of_the_real_export(self, real: Path) -> None:
        exported = oracle.read(real)
        enums = [name for name in ENUMS if exported[name]]
        for name in enums:
            assert ENUMS[name].items() <= {row["id"]: row["label"] for row in exported[name]}.items()
        assert bool(enums) == VERSIONS[read_version(real)].has_enums

    def test_it_has_every_table_when_every_table_has_rows(self, path: Path) -> None:
        assert set(read_columns(make_full_trace().write(path))) == {*TABLES, *ENUMS}

    def test_a_table_without_rows_does_not_exist(self, path: Path) -> None:
        Trace().thread().trace.write(path)
        assert "CUPTI_ACTIVITY_KIND_KERNEL" not in read_columns(path)

    def test_an_export_that_is_not_lazy_has_empty_tables(self, path: Path) -> None:
        Trace().write(path, lazy=False)
        assert run_query(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL") == [(0,)]

    def test_it_is_the_same_each_time(self, path: Path) -> None:
        assert make_full_trace().write(path).read_bytes() == make_full_trace().write(path).read_bytes()

    def test_shuffling_changes_ids_and_order_only(self, path: Path) -> None:
        trace = make_full_trace()
        plain, shuffled = (oracle.read(trace.write(path, shuffle=seed)) for seed in (None, 1))
        starts = [[row["start"] for row in tables["CUPTI_ACTIVITY_KIND_RUNTIME"]] for tables in (plain, shuffled)]
        assert starts[0] != starts[1]
        assert oracle.strings(plain) != oracle.strings(shuffled)
        assert trace.write(path, shuffle=1).read_bytes() != trace.write(path, shuffle=2).read_bytes()
        for table in TABLES:
            assert sorted_rows(plain, table) == sorted_rows(shuffled, table)

    def test_tables_and_columns_can_be_missing_or_have_another_name(self, path: Path) -> None:
        misspelt = {"ENUM_CUDA_KERNEL_LAUNCH_TYPE": "ENUM_CUDA_KRENEL_LAUNCH_TYPE"}
        missing = {"greenContextId", "CUPTI_ACTIVITY_KIND_KERNEL.graphNodeId"}
        make_full_trace().write(path, without_tables={"PROCESSES"}, without_columns=missing, renamed_tables=misspelt)
        tables = read_columns(path)
        assert "PROCESSES" not in tables
        assert "ENUM_CUDA_KERNEL_LAUNCH_TYPE" not in tables
        assert "ENUM_CUDA_KRENEL_LAUNCH_TYPE" in tables
        column_names = {table: {column[0] for column in columns} for table, columns in tables.items()}
        assert not any("greenContextId" in columns for columns in column_names.values())
        assert "graphNodeId" not in column_names["CUPTI_ACTIVITY_KIND_KERNEL"]
        assert "graphNodeId" in column_names["CUPTI_ACTIVITY_KIND_MEMCPY"]


class TestVersions:
    @pytest.mark.parametrize("version", ["2023.4", "2022.2"])
    def test_rows_without_a_table_in_that_version_are_refused(self, version: str, path: Path) -> None:
        trace = Trace()
        trace.thread().graph_launch(graph_ns=10)
        with pytest.raises(ValueError, match=f"nsys {version} has no CUPTI_ACTIVITY_KIND_GRAPH_TRACE"):
            trace.write(path, version)
        trace.write(path, version, without_tables={"CUPTI_ACTIVITY_KIND_GRAPH_TRACE"})

    @pytest.mark.parametrize(
        ("version", "table"),
        [("2022.2", "EXPORT_META_DATA"), ("2023.4", "META_DATA_EXPORT"), ("2025.3", "META_DATA_EXPORT")],
    )
    def test_each_version_states_its_number(self, version: str, table: str, path: Path) -> None:
        Trace().write(path, version)
        versions = run_query(path, f"SELECT value FROM {table} WHERE name = 'EXPORT_PRODUCT_VERSION'")
        assert versions == [(VERSIONS[version].product.encode(),)]

    @pytest.mark.parametrize(
        ("version", "numbers"), [("2022.2", [3, 1, 2]), ("2023.4", [3, 1, 2]), ("2025.3", [2, 4, 1])]
    )
    def test_waits_are_numbered_as_in_real_traces_of_that_version(
        self, version: str, numbers: list[int], path: Path
    ) -> None:
        trace = Trace()
        trace.thread().sync("stream").sync("device").record(1).sync("event", event=1)
        trace.write(path, version)
        types = run_query(path, "SELECT syncType FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION ORDER BY start")
        assert [number for (number,) in types] == numbers

    def test_2022_records_each_runtime_call_twice(self, path: Path) -> None:
        trace = Trace()
        trace.thread().launch("k", start=1_000, api=100, driver="cuLaunchKernel")
        trace.write(path, "2022.2")
        rows = run_query(
            path,
            "SELECT start, end, eventClass, correlationId, value FROM CUPTI_ACTIVITY_KIND_RUNTIME "
            "JOIN StringIds ON id = nameId ORDER BY eventClass",
        )
        assert rows == [
            (1_000, 1_100, 0, 1, b"cudaLaunchKernel_v7000"),
            (1_025, 1_075, 1, 2, b"cuLaunchKernel"),
            (999, 1_101, 67, 1, b"cudaLaunchKernel"),
        ]


class TestPlantedOddities:
    def test_text_that_is_not_utf8(self, path: Path) -> None:
        trace = Trace().gpu(0, name=b"H\xff200")
        trace.thread().launch(b"kern\xe9l", api_name=b"cuda\xff").range(b"st\xe9p", 0, 1)
        trace.write(path)
        assert run_query(path, "SELECT typeof(name), name FROM TARGET_INFO_GPU") == [(b"text", b"H\xff200")]
        assert run_query(path, "SELECT typeof(text), text FROM NVTX_EVENTS") == [(b"text", b"st\xe9p")]
        kernel_names = (
            "SELECT typeof(value), value FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName"
        )
        assert run_query(path, kernel_names) == [(b"text", b"kern\xe9l")]

    def test_nulls_and_fractions_where_numbers_are_expected(self, path: Path) -> None:
        trace = Trace()
        trace.thread().launch("k")
        trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"][0].update(correlationId=None, end=8_000.5)
        trace.row("CUPTI_ACTIVITY_KIND_RUNTIME", start=1, end=0, nameId="cudaFree", globalTid=None)
        trace.write(path)
        assert run_query(path, "SELECT correlationId, end FROM CUPTI_ACTIVITY_KIND_KERNEL") == [(None, 8_000.5)]
        assert run_query(path, "SELECT globalTid, returnValue FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE end = 0") == [
            (None, 0)
        ]

    def test_every_trace_has_an_environment_with_a_secret(self, path: Path) -> None:
        Trace().write(path)
        assert Trace.SECRET.encode() in path.read_bytes()


class TestClock:
    def test_a_kernel_starts_after_its_queue_time(self) -> None:
        assert kernel_times(Trace().thread(now=50).launch("k", api=100, queue=20, runs=7)) == [(170, 177)]

    def test_by_default_a_kernel_waits_only_for_its_stream(self) -> None:
        host = Trace().thread().launch("long", start=0, api=10, runs=10_000)
        host.launch("next", api=10, runs=1).launch("beside", api=10, runs=1, stream=13)
        assert kernel_times(host) == [(1_010, 11_010), (11_010, 11_011), (1_030, 1_031)]

    def test_a_blocking_copy_returns_when_it_is_done_and_an_asynchronous_one_at_once(self) -> None:
        host = Trace().thread().copy("D2H", 1, api=10, queue=5, runs=100, blocking=True)
        assert host.now == 115
        assert host.copy("D2H", 1, api=10, queue=5, runs=100).now == 125

    def test_a_wait_lasts_until_the_work_is_done(self) -> None:
        host = Trace().thread().launch("k", api=10, queue=0, runs=5_000).sync("stream")
        assert host.now == 5_010 + 500
        assert host.record(1).launch("k", queue=0, runs=9_000).sync("event", event=1, waits=None).now < 13_000

    def test_a_graphs_kernels_follow_each_other_under_one_call(self) -> None:
        host = Trace().thread().graph_launch(kernels=[("a", 10), ("b", 20)], api=100, queue=50, gap=5)
        assert kernel_times(host) == [(150, 160), (165, 185)]
        rows = host.trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"]
        assert {row["correlationId"] for row in rows} == {1}
        assert len({row["graphNodeId"] for row in rows}) == 2

    def test_ids_are_counted_per_process_and_can_start_elsewhere(self) -> None:
        trace = Trace()
        for host in (trace.thread(pid=1, tid=1), trace.thread(pid=1, tid=2), trace.thread(pid=2)):
            host.call("cudaFree_v3020")
        trace.thread(pid=3, first_correlation=900).call("cudaFree_v3020")
        assert [row["correlationId"] for row in trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"]] == [1, 2, 1, 900]

    def test_domains_are_named_once_per_process(self) -> None:
        trace = Trace()
        for host in (trace.thread(pid=1), trace.thread(pid=1, tid=2), trace.thread(pid=2)):
            host.range("a", 0, 1, domain="NCCL").range("b", 2, 3, domain="NCCL").range("c", 4, 5)
        kinds = [row["eventType"] for row in trace.rows["NVTX_EVENTS"]]
        assert kinds.count(NVTX_DOMAIN) == 2
        assert {row["domainId"] for row in trace.rows["NVTX_EVENTS"]} == {0, 1}


@settings(max_examples=60)
@given(traces())
def test_random_traces_are_unambiguous(trace: Trace) -> None:
    """Calls of a thread do not touch, ranges of a thread nest, and no kernel ends before it starts."""
    calls = [row for row in trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"] if row["eventClass"] == 0]
    for a, b in thread_pairs(calls):
        assert a["end"] < b["start"] or b["end"] < a["start"]
    for a, b in thread_pairs([row for row in trace.rows["NVTX_EVENTS"] if row["eventType"] == 59]):
        (a_start, a_end), (b_start, b_end) = sorted((row["start"], row["end"] or 10**12) for row in (a, b))
        assert a_end < b_start or (a_start < b_start and b_end <= a_end)
    assert all(row["start"] <= row["end"] for row in trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"])


def thread_pairs(rows: list[Any]) -> list[tuple[Any, Any]]:
    """List pairs of different rows of one thread."""
    return [(a, b) for a in rows for b in rows if a is not b and a["globalTid"] == b["globalTid"]]


def kernel_times(host: Any) -> list[tuple[int, int]]:
    return [(row["start"], row["end"]) for row in host.trace.rows["CUPTI_ACTIVITY_KIND_KERNEL"]]


def missing_tables(version: str) -> set[str]:
    """Return the tables that a version of nsys does not have."""
    return {name for name in TABLES if not VERSIONS[version].has(name)}


def sorted_rows(tables: oracle.Tables, name: str) -> list[str]:
    """Return the sorted rows of a table, with strings instead of their ids."""
    strings = oracle.strings(tables)
    ids = {"nameId", "textId", "demangledName", "shortName", "mangledName"}
    if name.endswith("CALLCHAINS"):
        ids = {"symbol", "module"}
    rows = [
        {key: strings.get(value, value) if key in ids else value for key, value in row.items()} for row in tables[name]
    ]
    if name == "StringIds":
        rows = [{"value": row["value"]} for row in rows]
    return sorted(map(str, rows))
