"""The oracle against the output of nsys for real traces, against planted truths, and against itself."""

from __future__ import annotations

import csv
import functools
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import traces
from synthetic import Trace

REPOSITORY = Path(__file__).parents[1]
SAMPLES = REPOSITORY / "sample_traces"
TRACES = REPOSITORY.parent / "shared" / "traces"
NSYS_STATS = TRACES / "nsys_stats"
MB = 1_000_000
read = functools.cache(oracle.read)


def list_reported_traces(report: str) -> list[Any]:
    """List the traces for which nsys printed this report, or a skipped case if the traces are missing."""
    names = [path.name.removesuffix(f".{report}.csv") for path in sorted(NSYS_STATS.glob(f"*.{report}.csv"))]
    names = [name for name in names if (TRACES / f"{name}.sqlite").exists()]
    return names or [pytest.param("", marks=pytest.mark.skip(reason="needs the traces that nsys reported on"))]


def read_rows(name: str, report: str) -> list[dict[str, str]]:
    with (NSYS_STATS / f"{name}.{report}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def read_statistics(row: dict[str, str], count: str, prefix: str = "", unit: str = "ns") -> dict[str, float]:
    """Return the statistics of one row of an nsys report."""
    columns = {"avg": "Avg", "median": "Med", "min": "Min", "max": "Max", "stddev": "StdDev"}
    numbers = {key: float(row[f"{prefix}{column} ({unit})"] or 0) for key, column in columns.items()}
    return {"count": float(row[count]), **numbers}


def assert_agrees(
    own_statistics: dict[str, float | None], nsys_statistics: dict[str, float], *, scale: float = 1, decimals: int = 1
) -> None:
    """Compare statistics to the last digit that nsys prints. nsys prints 0 if a deviation is unknown."""
    rounded_statistics = {key: (own_statistics[key] or 0) / (1 if key == "count" else scale) for key in nsys_statistics}
    assert rounded_statistics == pytest.approx(nsys_statistics, abs=0.51 * 10**-decimals, rel=1e-12)


class TestAgainstNsys:
    @pytest.mark.parametrize("name", list_reported_traces("cuda_gpu_kern_sum"))
    def test_kernels(self, name: str) -> None:
        totals = oracle.kernel_totals(read(TRACES / f"{name}.sqlite"))
        report = read_rows(name, "cuda_gpu_kern_sum")
        assert {row["Name"] for row in report} == totals.keys()
        for row in report:
            assert_agrees(
                totals[row["Name"]], {**read_statistics(row, "Instances"), "total": float(row["Total Time (ns)"])}
            )

    @pytest.mark.parametrize("name", list_reported_traces("cuda_gpu_kern_gb_sum"))
    def test_kernels_by_grid_and_block(self, name: str) -> None:
        totals = oracle.kernel_totals_by_shape(read(TRACES / f"{name}.sqlite"))
        report = read_rows(name, "cuda_gpu_kern_gb_sum")
        assert len(report) == len(totals)
        for row in report:
            grid, block = (tuple(map(int, row[key].split())) for key in ("GridXYZ", "BlockXYZ"))
            assert_agrees(totals[row["Name"], grid, block], read_statistics(row, "Instances"))  # type: ignore[index]

    @pytest.mark.parametrize("name", list_reported_traces("cuda_api_sum"))
    def test_api_calls_when_nested_ones_are_added(self, name: str) -> None:
        totals = oracle.api_totals(oracle.api_calls(read(TRACES / f"{name}.sqlite")))
        report = read_rows(name, "cuda_api_sum")
        assert sorted(oracle.plain_name(row["Name"]) for row in report) == sorted(totals)
        for row in report:
            numbers = {**read_statistics(row, "Num Calls"), "total": float(row["Total Time (ns)"])}
            assert_agrees(totals[oracle.plain_name(row["Name"])], numbers)

    @pytest.mark.parametrize("name", list_reported_traces("cuda_gpu_mem_time_sum"))
    def test_time_of_copies_and_memsets(self, name: str) -> None:
        tables = read(TRACES / f"{name}.sqlite")
        for label, total, row in memory_operations(tables, read_rows(name, "cuda_gpu_mem_time_sum")):
            assert_agrees(total["time"], {**read_statistics(row, "Count"), "total": float(row["Total Time (ns)"])})
            assert label in row["Operation"]

    @pytest.mark.parametrize("name", list_reported_traces("cuda_gpu_mem_size_sum"))
    def test_bytes_of_copies_and_memsets(self, name: str) -> None:
        tables = read(TRACES / f"{name}.sqlite")
        for label, total, row in memory_operations(tables, read_rows(name, "cuda_gpu_mem_size_sum")):
            numbers = {**read_statistics(row, "Count", unit="MB"), "total": float(row["Total (MB)"])}
            assert_agrees(total["bytes"], numbers, scale=MB, decimals=3)
            assert label in row["Operation"]

    @pytest.mark.parametrize("name", list_reported_traces("cuda_kern_exec_sum"))
    def test_launches(self, name: str) -> None:
        launches_by_key: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
        for launch in oracle.launches(read(TRACES / f"{name}.sqlite")):
            if launch["call"]:
                key = oracle.pid_of(launch["call"]), launch["thread_id"], launch["kernel"]["deviceId"]
                launches_by_key[*map(str, key), launch["api_name"], launch["name"]].append(launch)
        report = read_rows(name, "cuda_kern_exec_sum")
        assert len(report) == len(launches_by_key)
        for row in report:
            api_name = oracle.plain_name(row["API Name"])
            launches = launches_by_key[row["PID"], row["TID"], row["DevId"], api_name, row["Kernel Name"]]
            # nsys counts a queue time only where the kernel started after the call had returned.
            queued = [launch["queue_ns"] for launch in launches if launch["queue_ns"] >= 0]
            assert_agrees(
                oracle.statistics([launch["api_ns"] for launch in launches]), read_statistics(row, "Count", "A")
            )
            assert_agrees(
                oracle.statistics([launch["kernel_ns"] for launch in launches]), read_statistics(row, "Count", "K")
            )
            assert len(queued) == int(row["QCount"])
            if queued:
                assert_agrees(oracle.statistics(queued), read_statistics(row, "QCount", "Q"))

    @pytest.mark.parametrize("name", list_reported_traces("nvtx_kern_sum"))
    def test_kernels_in_nvtx_ranges(self, name: str) -> None:
        durations: dict[tuple[str, str], list[int]] = defaultdict(list)
        range_starts: dict[tuple[str, str], set[int]] = defaultdict(set)
        for launch, open_ranges in oracle.kernels_in_nvtx(read(TRACES / f"{name}.sqlite")):
            for name_of_range in {row["name"] for row in open_ranges} or {""}:
                durations[name_of_range, launch["name"]].append(launch["kernel_ns"])
            for row in open_ranges:
                range_starts[row["name"], launch["name"]].add(row["start"])
        report = read_rows(name, "nvtx_kern_sum")
        assert len(report) == len(durations)
        for row in report:
            key = row["NVTX Range"].removeprefix(":"), row["Kernel Name"]  # since 2025 the domain comes first
            assert_agrees(oracle.statistics(durations[key]), read_statistics(row, "Kern Inst"))
            assert len(range_starts[key]) == int(row["NVTX Inst"])

    @pytest.mark.parametrize("name", list_reported_traces("nvtx_sum"))
    def test_nvtx_ranges(self, name: str) -> None:
        durations: dict[str, list[int]] = defaultdict(list)
        for row in oracle.nvtx_ranges(read(TRACES / f"{name}.sqlite")):
            durations[row["name"]].append(oracle.duration(row))
        for line in read_rows(name, "nvtx_sum"):
            assert_agrees(
                oracle.statistics(durations.pop(line["Range"].removeprefix(":"))), read_statistics(line, "Instances")
            )
        assert not durations

    @pytest.mark.parametrize(
        "name", [name for name in list_reported_traces("nvtx_gpu_proj_sum") if "graph" not in str(name)]
    )
    def test_nesting_of_nvtx_ranges(self, name: str) -> None:
        levels: dict[str, list[int]] = defaultdict(list)
        for row in oracle.nvtx_nesting(read(TRACES / f"{name}.sqlite")):
            levels[row["name"]].append(row["depth"] - 1)
        for line in read_rows(name, "nvtx_gpu_proj_sum"):
            level = levels[line["Range"].removeprefix(":")]
            assert sum(level) / len(level) == pytest.approx(float(line["Avg Range Lvl"]), abs=0.051)

    @pytest.mark.parametrize("name", list_reported_traces("gpu_time_util.rule"))
    def test_busy_time(self, name: str) -> None:
        tables = oracle.read(TRACES / f"{name}.sqlite")
        tables[oracle.GRAPH] = []  # nsys does not count graphs that were traced as a unit
        busy = oracle.busy_intervals(tables)
        for row in read_rows(name, "gpu_time_util.rule"):
            first = int(row["Start (ns)"])
            last = first + int(row["Duration (ns)"])
            intervals = [(max(start, first), min(end, last)) for start, end in busy[int(row["Device ID"])]]
            share = 100 * sum(max(end - start, 0) for start, end in intervals) / (last - first)
            assert share == pytest.approx(float(row["In-Use (%)"]), abs=0.051)


def memory_operations(
    tables: oracle.Tables, report: list[dict[str, str]]
) -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    """Pair each of our labels and totals with nsys's row."""
    totals = oracle.memcpy_totals(tables)
    if memset := oracle.memset_totals(tables):
        totals["memset"] = memset
    labelled = {row["Operation"].strip("[]").removeprefix("CUDA ").removeprefix("memcpy "): row for row in report}
    assert labelled.keys() == totals.keys()
    return [(label, total, labelled[label]) for label, total in totals.items()]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # One .item() per token: 32 tokens, or 16 in the program that empties the allocator's cache.
        ("decode_eager", {"cudaStreamSynchronize": 32}),
        ("decode_graph_node", {"cudaStreamSynchronize": 32}),
        ("decode_graph_whole", {"cudaStreamSynchronize": 32}),
        ("decode_fresh", {"cudaStreamSynchronize": 16}),
        # 20 steps, each an asynchronous copy with a wait, and a blocking copy.
        ("churn", {"cudaStreamSynchronize": 20, "cudaMemcpy": 20}),
    ],
)
def test_the_sync_points_of_the_samples_are_those_of_their_source(name: str, expected: dict[str, int]) -> None:
    points = oracle.d2h_sync_points(read(SAMPLES / f"{name}.sqlite"))
    assert Counter(point["call"]["name"] for point in points) == expected


# Planted truths ------------------------------------------------------------------------------------------------------


@pytest.fixture
def write_and_read_tables(tmp_path: Path) -> Any:
    """Write a trace and read it back."""

    def write_and_read(trace: Trace, **options: Any) -> oracle.Tables:
        return oracle.read(trace.write(tmp_path / "trace.sqlite", **options))

    return write_and_read


class TestStatistics:
    def test_an_even_number_of_values(self) -> None:
        statistics = oracle.statistics([4, 1, 3, 2])
        assert statistics == {
            "count": 4, "total": 10, "avg": 2.5, "median": 2.5, "min": 1, "max": 4,
            "stddev": pytest.approx((5 / 3) ** 0.5), "p95": pytest.approx(3.85), "p99": pytest.approx(3.97),
        }  # fmt: skip

    def test_the_deviation_of_one_value_is_unknown(self) -> None:
        assert oracle.statistics([7])["stddev"] is None


@pytest.mark.parametrize(
    "name",
    ["cudaMemcpyAsync", "cudaMemcpyAsync_v3020", "cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync_v2_ptds"],
)
def test_plain_names_of_api_calls(name: str) -> None:
    assert oracle.plain_name(name) == "cudaMemcpyAsync"


def test_only_the_outermost_calls_are_added(write_and_read_tables: Any) -> None:
    trace = Trace()
    host = trace.thread()
    host.launch("k", api=100, driver="cuLaunchKernel").call("cudaGetDevice_v3020", takes=10)
    host.call("cuCtxGetCurrent", start=0, takes=0)  # begins with the launch call and is inside it
    tables = write_and_read_tables(trace)
    assert set(oracle.api_totals(oracle.outer_api_calls(tables))) == {"cudaLaunchKernel", "cudaGetDevice"}
    assert set(oracle.api_totals(oracle.api_calls(tables))) > {"cuLaunchKernel", "cuCtxGetCurrent"}
    assert oracle.counts(tables)["launch_calls"] == 1


def test_the_driver_call_is_the_inner_of_two_calls_at_the_same_time(write_and_read_tables: Any) -> None:
    trace = Trace()
    trace.thread().call("cuMemAlloc_v2", start=5, takes=10).call("cudaMalloc_v3020", start=5, takes=10)
    assert [call["name"] for call in oracle.outer_api_calls(write_and_read_tables(trace))] == ["cudaMalloc"]


def test_memory_kinds_are_read_by_the_numbers_of_their_own_file(write_and_read_tables: Any) -> None:
    trace = Trace()
    trace.thread().copy("D2H", 100, runs=10, target="pageable").copy("D2H", 300, runs=30, target="pageable")
    cupti = {0: "Unknown", 1: "Pageable", 2: "Pinned", 3: "Device"}
    tables = write_and_read_tables(trace, enums={"ENUM_CUDA_MEM_KIND": cupti})
    total = oracle.memcpy_totals_by_memory(tables)["Device-to-Host", "Device", "Pageable"]
    assert (total["time"]["total"], total["bytes"]["total"]) == (40, 400)


class TestTime:
    def test_overlapping_work_is_busy_once_and_a_gap_is_measured_from_the_latest_end(
        self, write_and_read_tables: Any
    ) -> None:
        trace = Trace()
        host = trace.thread()
        host.kernel("long", start=0, runs=100).kernel("short", start=10, runs=20, stream=13)
        host.kernel("touching", start=100, runs=0).kernel("next", start=150, runs=50).graph_launch(
            graph_ns=10, start=0, queue=200
        )
        tables = write_and_read_tables(trace)
        assert oracle.busy_ns(tables) == {0: 160}
        assert oracle.idle_gaps(tables) == {0: [(100, 150), (200, 10_200)]}

    def test_two_processes_that_call_it_device_0_use_different_gpus(self, write_and_read_tables: Any) -> None:
        trace = Trace()
        trace.thread(pid=100, gpus=(0,)).kernel("k", start=0, runs=10)
        trace.thread(pid=200, gpus=(1,)).kernel("k", start=5, runs=10)
        assert oracle.busy_ns(write_and_read_tables(trace)) == {0: 10, 1: 10}

    def test_the_wall_spans_calls_and_device_work_and_nothing_else(self, write_and_read_tables: Any) -> None:
        trace = Trace().diagnostic("started", time=-10_000)
        trace.thread(now=-50).launch("k", api=10, queue=100, runs=40)
        assert oracle.wall(write_and_read_tables(trace)) == (-50, 100)

    def test_a_wait_without_a_call_does_not_belong_to_the_wall(self, write_and_read_tables: Any) -> None:
        trace = Trace()
        trace.thread().launch("k", api=10, queue=100, runs=40).sync("device", start=1_000, waits=1_000)
        assert oracle.wall(write_and_read_tables(trace, without_tables={oracle.RUNTIME})) == (110, 150)

    def test_a_trace_without_cuda_has_no_wall(self, write_and_read_tables: Any) -> None:
        assert oracle.wall(write_and_read_tables(Trace())) is None


class TestLaunches:
    def test_ids_that_repeat_in_another_process_are_not_mixed_up(self, write_and_read_tables: Any) -> None:
        trace = Trace()
        trace.thread(pid=100).launch("a", api=10, queue=1)
        trace.thread(pid=200).launch("b", api=20, queue=-2)
        pairs = {
            pair["name"]: (pair["api_ns"], pair["queue_ns"]) for pair in oracle.launches(write_and_read_tables(trace))
        }
        assert pairs == {"a": (10, 1), "b": (20, -2)}

    def test_missing_correlation_ids_do_not_match(self, write_and_read_tables: Any) -> None:
        trace = Trace()
        trace.thread().launch("k")
        for table in (oracle.KERNEL, oracle.RUNTIME):
            trace.rows[table][0]["correlationId"] = None
        assert [pair["call"] for pair in oracle.launches(write_and_read_tables(trace))] == [None]

    def test_the_kernels_of_a_graph_share_a_call_and_are_not_multiplied(self, write_and_read_tables: Any) -> None:
        trace = Trace()
        host = trace.thread()
        host.graph_launch(kernels=[("a", 10), ("b", 20), ("c", 30)]).graph_launch(graph_ns=100)
        host.kernel("lonely", start=0).call("cudaLaunchKernel_v7000")
        tables = write_and_read_tables(trace)
        assert [pair["api_name"] for pair in oracle.launches(tables)] == ["cudaGraphLaunch"] * 3 + [None]
        assert oracle.launch_coverage(tables) == {
            "kernels": 4, "kernels_with_call": 3, "launch_calls": 3, "launch_calls_with_work": 2,
        }  # fmt: skip
        counts = oracle.counts(tables)
        assert (counts["kernels"], counts["launch_calls"], counts["graph_launch_calls"]) == (4, 1, 2)
        assert counts["whole_graph_runs"] == 1


class TestNvtx:
    def test_a_kernel_belongs_to_the_ranges_open_on_its_thread_when_the_call_began(
        self, write_and_read_tables: Any
    ) -> None:
        trace = Trace()
        host, other = trace.thread(tid=1), trace.thread(tid=2)
        host.range("step", 0, 100).range("layer", 10, 50).range("request", 20, None, style="start/end")
        other.range("elsewhere", 0, 1_000)
        for start_ns in (5, 15, 50, 99, 100):
            host.launch("k", start=start_ns, api=500, runs=start_ns)
        range_names = [
            [row["name"] for row in open_ranges]
            for _, open_ranges in oracle.kernels_in_nvtx(write_and_read_tables(trace))
        ]
        request = ["request"]
        assert range_names == [["step"], ["layer", "step"], [*request, "step"], [*request, "step"], request]

    def test_own_time_is_the_innermost_ranges(self, write_and_read_tables: Any) -> None:
        trace = Trace()
        host = trace.thread()
        with host.nvtx("step"):
            host.launch("a", runs=10)
            with host.nvtx("layer", registered=True):
                host.launch("b", runs=200)
                with host.nvtx("layer"):
                    host.launch("c", runs=3_000)
        assert oracle.nvtx_gpu_time(write_and_read_tables(trace)) == {
            "step": {"ranges": 1, "kernels": 3, "total_ns": 3_210, "own_kernels": 1, "own_ns": 10},
            "layer": {"ranges": 2, "kernels": 2, "total_ns": 3_200, "own_kernels": 2, "own_ns": 3_200},
        }

    def test_depth_and_path_are_the_threads_own(self, write_and_read_tables: Any) -> None:
        trace = Trace()
        host = trace.thread(tid=1).range("step", 0, None).range("layer", 0, 50, domain="model").range("next", 50, 60)
        trace.thread(tid=2).range("step", 10, 20)
        assert host.tid == 1
        nested = oracle.nvtx_nesting(write_and_read_tables(trace))
        assert [(row["domain"], row["depth"], row["path"]) for row in nested] == [
            ("", 1, ["step"]), ("model", 2, ["step", "layer"]), ("", 2, ["step", "next"]), ("", 1, ["step"]),
        ]  # fmt: skip

    def test_ranges_of_two_domains_may_cross(self, write_and_read_tables: Any) -> None:
        trace = Trace()
        trace.thread().range("a", 0, 10, domain="x").range("b", 5, 15, domain="y").range("c", 12, 13)
        paths = [row["path"] for row in oracle.nvtx_nesting(write_and_read_tables(trace))]
        assert paths == [["a"], ["b"], ["b", "c"]]


class TestSyncPoints:
    """Each case has the calls of a thread, and the bytes that each sync point copies."""

    @pytest.mark.parametrize(
        ("run_calls", "expected"),
        [
            (lambda host: host.copy("D2H", 4, blocking=True).sync("stream"), [4]),
            (lambda host: host.copy("H2D", 4, blocking=True).copy("D2D", 8).sync("device"), []),
            (lambda host: host.copy("D2H", 4), []),
            (lambda host: host.copy("D2H", 4, target="pageable"), []),
            (lambda host: host.copy("D2H", 4).copy("D2H", 8).sync("stream").sync("stream"), [12]),
            (lambda host: host.copy("D2H", 4, stream=13).sync("stream", stream=7), []),
            (lambda host: host.copy("D2H", 4, stream=13).sync("device"), [4]),
            (lambda host: host.copy("D2H", 4, device=1).sync("device", device=0), []),
            (lambda host: host.copy("D2H", 4).record(1).sync("event", event=1), [4]),
            (lambda host: host.record(1).copy("D2H", 4).sync("event", event=1), []),
            (lambda host: host.copy("D2H", 4).record(1, stream=13).sync("event", event=1), []),
            (lambda host: host.sync("stream").copy("D2H", 4), []),
        ],
    )
    def test_sync_points_of_one_thread(self, run_calls: Any, expected: list[int], write_and_read_tables: Any) -> None:
        trace = Trace()
        run_calls(trace.thread())
        assert [point["bytes"] for point in oracle.d2h_sync_points(write_and_read_tables(trace))] == expected

    def test_another_threads_wait_does_not_count(self, write_and_read_tables: Any) -> None:
        trace = Trace()
        trace.thread(tid=1).copy("D2H", 4)
        trace.thread(tid=2, now=20_000).sync("stream")
        assert oracle.d2h_sync_points(write_and_read_tables(trace)) == []

    def test_a_wait_for_an_unknown_stream_or_event_waits_for_all(self, write_and_read_tables: Any) -> None:
        unknown_wait, unknown_event = Trace(), Trace()
        unknown_wait.thread().copy("D2H", 4, stream=13).sync("stream", stream=7)
        unknown_event.thread().copy("D2H", 4, stream=13).record(1, stream=7).sync("event", event=1)
        for trace, lost in ((unknown_wait, oracle.SYNC), (unknown_event, "CUPTI_ACTIVITY_KIND_CUDA_EVENT")):
            assert oracle.d2h_sync_points(write_and_read_tables(trace)) == []
            tables = write_and_read_tables(trace, without_tables={lost})
            assert [point["bytes"] for point in oracle.d2h_sync_points(tables)] == [4]


def test_allocations_by_call_and_by_event(write_and_read_tables: Any) -> None:
    trace = Trace()
    host = trace.thread().malloc(100).malloc(50).free()
    host.malloc(7, memory="pinned", api_name="cudaHostAlloc_v3020")
    assert oracle.allocations(write_and_read_tables(trace)) == {
        "calls": {"cudaMalloc": 2, "cudaHostAlloc": 1},
        "free_calls": {"cudaFree": 1},
        "events": {("Allocation", "Device"): 2, ("Allocation", "Pinned"): 1, ("Deallocation", "Device"): 1},
        "bytes": {("Allocation", "Device"): 150, ("Allocation", "Pinned"): 7, ("Deallocation", "Device"): 50},
    }


# Properties ----------------------------------------------------------------------------------------------------------


def list_answers(trace: Trace, **options: Any) -> dict[str, Any]:
    """Return all answers that must not depend on how a trace is stored, nor on when it was made."""
    with TemporaryDirectory() as folder:
        tables = oracle.read(trace.write(Path(folder) / "trace.sqlite", **options))
    start, end = oracle.wall(tables) or (0, 0)
    return {
        "kernels": oracle.kernel_totals(tables),
        "short names": oracle.kernel_totals(tables, "shortName"),
        "shapes": oracle.kernel_totals_by_shape(tables),
        "calls": oracle.api_totals(oracle.outer_api_calls(tables)),
        "copies": oracle.memcpy_totals_by_memory(tables),
        "counts": oracle.counts(tables),
        "coverage": oracle.launch_coverage(tables),
        "launches": sorted(repr((p["name"], p["api_name"], p["queue_ns"])) for p in oracle.launches(tables)),
        "allocations": oracle.allocations(tables),
        "busy": oracle.busy_ns(tables),
        "gaps": {gpu: sorted(b - a for a, b in gaps) for gpu, gaps in oracle.idle_gaps(tables).items()},
        "wall": end - start,
        "ranges": oracle.nvtx_gpu_time(tables),
        "paths": sorted(row["path"] for row in oracle.nvtx_nesting(tables)),
        "sync points": sorted(point["bytes"] for point in oracle.d2h_sync_points(tables)),
    }


@given(traces(), st.integers(-(10**9), 10**9))
def test_a_shift_in_time_does_not_matter(trace: Trace, ns: int) -> None:
    assert list_answers(trace.shifted(ns)) == list_answers(trace)


@given(traces(), st.integers())
def test_the_order_of_rows_does_not_matter(trace: Trace, seed: int) -> None:
    assert list_answers(trace, shuffle=seed) == list_answers(trace)


@given(traces(graph_level=False), st.sampled_from(["2022.2", "2023.4"]))
def test_the_version_of_nsys_does_not_matter(trace: Trace, version: str) -> None:
    assert list_answers(trace, version=version) == list_answers(trace)


@given(traces())
def test_parts_add_up(trace: Trace) -> None:
    with TemporaryDirectory() as folder:
        tables = oracle.read(trace.write(Path(folder) / "trace.sqlite"))
    busy, gaps = oracle.busy_intervals(tables), oracle.idle_gaps(tables)
    for gpu, intervals in busy.items():
        assert oracle.busy_ns(tables)[gpu] + sum(b - a for a, b in gaps[gpu]) == intervals[-1][1] - intervals[0][0]
    durations = [launch["kernel_ns"] for launch, open_ranges in oracle.kernels_in_nvtx(tables) if open_ranges]
    assert sum(total["own_ns"] for total in oracle.nvtx_gpu_time(tables).values()) == sum(durations)
    assert len(oracle.launches(tables)) == oracle.counts(tables)["kernels"]


@given(traces(open_ranges=False))
def test_a_doubled_trace_has_double_counts(trace: Trace) -> None:
    single_answers, doubled_answers = list_answers(trace), list_answers(trace.twice())
    for part in ("counts", "coverage", "busy"):
        assert doubled_answers[part] == {key: 2 * value for key, value in single_answers[part].items()}
    assert doubled_answers["launches"] == sorted(2 * single_answers["launches"])
    assert doubled_answers["ranges"] == {
        name: {k: 2 * v for k, v in row.items()} for name, row in single_answers["ranges"].items()
    }
