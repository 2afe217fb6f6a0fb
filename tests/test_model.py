"""How the views of the model read peculiarities of nsys: ids, enums, renamed columns, odd times, odd text."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path

import oracle
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opening import open_trace
from real_traces import SAMPLE_NAMES
from strategies import traces
from synthetic import Trace
from synthetic_schema import ENUMS

import nsys_insight
from nsys_insight.ingest import gpus
from nsys_insight.model import views
from nsys_insight.session.model import empty_model
from nsys_insight.sql.quoting import literal

SAMPLES = Path(__file__).parents[1] / "sample_traces"


# Rows of these views combine several events, and always have a duration.
DISJOINT = {"wall", "gpu_busy", "_gpu_busy_parts", "gpu_gaps", "longest_gaps", "_explained_gaps"}


def ask(path, query, **options):
    with nsys_insight.open(path, **options) as trace:
        return trace.sql(query).rows()


def edit(path, *statements):
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)
    return path


class TestLaunches:
    def test_correlation_ids_repeat_across_processes(self, tmp_path):
        trace = Trace()
        trace.thread(pid=1, tid=1).launch("a", start=0, api=1_000, queue=50)
        trace.thread(pid=2, tid=2).launch("b", start=500, api=2_000, queue=70)
        path = trace.write(tmp_path / "trace.sqlite")
        assert ask(path, "SELECT count(DISTINCT correlation_id) FROM kernels") == [(1,)]
        columns = "process_id, thread_id, name, api_duration_ns, queue_ns"
        assert ask(path, f"SELECT {columns} FROM launches JOIN strings USING (name_id) ORDER BY 1") == [
            (1, 1, "a", 1_000, 50),
            (2, 2, "b", 2_000, 70),
        ]

    @pytest.mark.parametrize("name", SAMPLE_NAMES)
    def test_each_kernel_occurs_once_with_its_own_call(self, name):
        path = SAMPLES / f"{name}.sqlite"
        expected = [
            (pair["kernel"]["start"], pair["kernel_ns"], pair["api_name"], pair["api_ns"], pair["queue_ns"])
            for pair in oracle.launches(oracle.read(path))
        ]
        rows = ask(path, "SELECT start_ns, duration_ns, api_name, api_duration_ns, queue_ns FROM launches")
        assert sorted(rows) == sorted(expected)

    def test_the_kernels_of_a_graph_launch_share_one_call_and_are_not_multiplied(self, tmp_path):
        trace = Trace()
        trace.thread().graph_launch(kernels=[("a", 10), ("b", 20), ("c", 30)]).graph_launch(kernels=[("a", 10)])
        path = trace.write(tmp_path / "trace.sqlite")
        assert ask(path, "SELECT count(*), count(DISTINCT api_start_ns), sum(duration_ns)::INT FROM launches") == [
            (4, 2, 70)
        ]
        assert ask(path, "SELECT DISTINCT call_group FROM launches") == [("graph launch",)]
        assert ask(path, "SELECT count(*) FROM graph_launches") == [(0,)]

    @pytest.mark.slow
    @pytest.mark.parametrize("use_cache", [False, True])
    @pytest.mark.parametrize("driver_first", [False, True])
    def test_of_calls_that_share_an_id_the_outer_one_launched_the_kernel(self, driver_first, use_cache, tmp_path):
        trace = Trace()
        host = trace.thread()
        with host.nvtx("step"):
            host.launch("a", api=1_000, queue=50, runs=10, driver="cuLaunchKernel").copy("D2H", 4, blocking=True)
            host.launch("b", api=2_000, queue=70, runs=20)
        calls = trace.rows[oracle.RUNTIME]
        calls[1]["correlationId"] = calls[0]["correlationId"]
        calls.append({**calls[2], "start": calls[2]["start"] + 10, "end": calls[2]["end"] - 10, "nameId": "cuMemcpy"})
        if driver_first:
            calls.reverse()
        path = trace.write(tmp_path / "trace.sqlite")
        columns = "name, api_name, api_duration_ns, queue_ns"
        rows = ask(path, f"SELECT {columns} FROM launches JOIN strings USING (name_id) ORDER BY 1", use_cache=use_cache)
        assert rows == [("a", "cudaLaunchKernel", 1_000, 50), ("b", "cudaLaunchKernel", 2_000, 70)]
        assert ask(path, "SELECT name FROM outer_api_calls ORDER BY start_ns", use_cache=use_cache) == [
            ("cudaLaunchKernel",), ("cudaMemcpy",), ("cudaLaunchKernel",)
        ]  # fmt: skip
        with nsys_insight.open(path, use_cache=use_cache) as open_file:
            assert open_file.nvtx().select("kernels", "gpu_ns").rows() == [(2, 1_030)]
            assert open_file.syncs().select("name", "calls").rows() == [("cudaMemcpy", 1)]
            assert "all with their launch call" in str(open_file.info().to_dicts())
        scoped_trace = nsys_insight.open(path, use_cache=use_cache).scope(nvtx="step")
        assert scoped_trace.top()["calls"].sum() == 2

    def test_a_call_without_a_kernel_and_a_kernel_without_a_call(self, tmp_path):
        trace = Trace()
        trace.thread().call("cudaLaunchKernel_v7000").kernel("stray", start=9_000).launch("k", start=20_000)
        path = trace.write(tmp_path / "trace.sqlite")
        assert ask(path, "SELECT count(*), count(api_name) FROM launches") == [(2, 1)]
        assert ask(path, "SELECT count(*) FROM api_calls WHERE call_group = 'launch'") == [(2,)]


# These are not the numbers that nsys uses, so that hard-coded numbers give wrong words.
RENUMBERED = {name: {key + 20: label for key, label in labels.items()} for name, labels in ENUMS.items()}


class TestEnums:
    @pytest.fixture
    def trace(self):
        trace = Trace()
        host = trace.thread().copy("H2D", 8, source="pageable").copy("D2H", 8).copy("P2P", 8).malloc(8).free()
        host.launch("k", launch_type="Coop Single Device")
        return trace

    @staticmethod
    def assert_words(path):
        assert ask(path, "SELECT copy_kind, source_memory, target_memory FROM memcpys ORDER BY start_ns") == [
            ("H2D", "pageable", "device"), ("D2H", "device", "pinned"), ("P2P", "device", "device"),
        ]  # fmt: skip
        assert ask(path, "SELECT operation, memory FROM memory_events ORDER BY start_ns") == [
            ("allocation", "device"), ("deallocation", "device"),
        ]  # fmt: skip
        assert ask(path, "SELECT launch_type FROM kernels") == [("coop single device",)]

    def test_the_enum_tables_of_the_file_are_used(self, trace, tmp_path):
        self.assert_words(trace.write(tmp_path / "trace.sqlite", enums=RENUMBERED))

    def test_a_misspelt_enum_table_is_read(self, trace, tmp_path):
        renamed = {"ENUM_CUDA_KERNEL_LAUNCH_TYPE": "ENUM_CUDA_KRENEL_LAUNCH_TYPE"}
        self.assert_words(trace.write(tmp_path / "trace.sqlite", renamed_tables=renamed, enums=RENUMBERED))

    def test_without_enum_tables_the_documented_numbers_are_used(self, trace, tmp_path):
        self.assert_words(trace.write(tmp_path / "trace.sqlite", without_tables=list(ENUMS)))

    def test_an_unknown_number_is_shown_unchanged(self, trace, tmp_path):
        path = trace.write(tmp_path / "trace.sqlite")
        edit(path, "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET copyKind = 99, srcKind = 98")
        assert set(ask(path, "SELECT copy_kind, source_memory FROM memcpys")) == {("kind 99", "memory 98")}


class TestRenamedColumns:
    @pytest.mark.parametrize("version", ["2025.3", "2023.4", "2022.2"])
    def test_every_version_has_the_kind_of_wait_with_and_without_its_call(self, version, tmp_path):
        trace = Trace()
        trace.thread().launch("k").record(3).sync("stream").sync("event", event=3).sync("device")
        path = trace.write(tmp_path / "trace.sqlite", version=version)
        query = "SELECT sync_type FROM syncs ORDER BY start_ns"
        assert ask(path, query) == [("stream",), ("event",), ("context",)]
        edit(path, "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME")
        assert ask(path, query) == [("stream",), ("event",), ("context",)]

    def test_a_schema_version_that_is_not_a_number_is_unknown(self, tmp_path):
        trace = Trace()
        trace.thread().launch("k").sync("stream")
        path = trace.write(tmp_path / "trace.sqlite")
        edit(path, "UPDATE META_DATA_EXPORT SET value = 'beta' WHERE name LIKE 'EXPORT_SCHEMA_VERSION_M%'")
        assert ask(path, "SELECT sync_type FROM syncs") == [("stream",)]

    @pytest.mark.parametrize("version", ["2025.3", "2023.4", "2022.2"])
    def test_the_version_of_nsys_is_found_under_both_names_of_its_table(self, version, tmp_path):
        trace = Trace()
        trace.thread().launch("k")
        path = trace.write(tmp_path / "trace.sqlite", version=version)
        ((version_text,),) = ask(path, "SELECT value FROM capture WHERE name = 'EXPORT_PRODUCT_VERSION'")
        assert version_text.startswith(version)

    @pytest.mark.parametrize("bus", ["0000:3B:00.0", 59])
    def test_the_bus_of_a_gpu_is_a_number_or_a_text(self, bus, tmp_path):
        trace = Trace()
        trace.thread().launch("k")
        path = edit(
            trace.write(tmp_path / "trace.sqlite", without_tables=["TARGET_INFO_GPU"]),
            "CREATE TABLE TARGET_INFO_CUDA_GPU (deviceId INT, pciBusId)",
            f"INSERT INTO TARGET_INFO_CUDA_GPU VALUES (0, {bus!r})",
        )
        assert ask(path, "SELECT pci_bus FROM gpus") == [(str(bus),)]

    def test_gpus_are_found_in_the_table_of_2020(self, tmp_path):
        trace = Trace()
        trace.thread().launch("k")
        path = edit(
            trace.write(tmp_path / "trace.sqlite", without_tables=["TARGET_INFO_GPU"]),
            "CREATE TABLE TARGET_INFO_CUDA_GPU (deviceId INT, name TEXT, numMultiprocessors INT, globalMemorySize INT)",
            "INSERT INTO TARGET_INFO_CUDA_GPU VALUES (0, 'Quadro RTX 6000', 72, 25396838400)",
        )
        query = "SELECT gpu_id, name, sm_count, memory_bytes, memory_bytes_per_s FROM gpus"
        assert ask(path, query) == [(0, "Quadro RTX 6000", 72, 25396838400, None)]

    def test_two_processes_may_call_two_gpus_device_0(self, tmp_path):
        trace = Trace()
        trace.thread(pid=1, gpus=[3]).launch("k", start=0, api=10, queue=0, runs=100)
        trace.thread(pid=2, gpus=[5]).launch("k", start=0, api=10, queue=0, runs=300)
        path = trace.write(tmp_path / "trace.sqlite")
        assert ask(path, "SELECT gpu_id, duration_ns FROM gpu_busy ORDER BY 1") == [(3, 100), (5, 300)]


@st.composite
def stacks_of_domains(draw):
    """Draw traces of one thread with ranges of up to three domains, at times that often coincide."""
    trace = Trace()
    host = trace.thread()
    for domain in draw(st.sampled_from([(None,), (None, "x"), (None, "x", "y")])):
        now, open_ranges = draw(st.integers(0, 3)), []
        for name, gap in draw(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 2)), max_size=8)):
            now += gap
            if name is not None:
                open_ranges.append((name, now))
            elif open_ranges:
                host.range(*open_ranges.pop(), now, domain=domain)
        unclosed = draw(st.integers(0, len(open_ranges)))  # an open range keeps the enclosing ranges open
        for level, (name, start) in enumerate(open_ranges):
            host.range(name, start, None if level < unclosed else now + len(open_ranges) - level, domain=domain)
    return trace


class TestNvtxDomains:
    @pytest.mark.slow
    @settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(trace=stacks_of_domains())
    def test_nesting_and_innermost_ranges_equal_plain_loops(self, trace, tmp_path):
        path = trace.write(tmp_path / "trace.sqlite")
        tables = oracle.read(path)
        nested_ranges = oracle.nvtx_nesting(tables)
        columns = "start_ns, end_ns, domain, name, depth, path"
        with nsys_insight.open(path, use_cache=False) as open_file:
            rows = open_file.sql(f"SELECT {columns} FROM nvtx_nesting").rows()
            names_by_time = dict(
                open_file.sql(
                    "SELECT p.start_ns, n.name FROM nvtx_places AS p LEFT JOIN nvtx_nesting AS n USING (range_id)"
                ).rows()
            )
        expected = [
            (row["start"], row["end"], row["domain"], row["name"], row["depth"], "/".join(row["path"]))
            for row in nested_ranges
        ]
        assert sorted(map(str, rows)) == sorted(map(str, expected))
        ranges, current_name = oracle.nvtx_ranges(tables), None
        for instant in range(40):
            current_name = names_by_time.get(instant, current_name)
            open_ranges = oracle.open_at(ranges, trace.rows["NVTX_EVENTS"][0]["globalTid"], instant) if ranges else []
            assert current_name == (open_ranges[0]["name"] if open_ranges else None), instant

    def test_a_path_crosses_domains_and_has_only_ranges_that_enclose_the_full_range(self, tmp_path):
        trace = Trace()
        trace.thread().range("step", 0, 100).range("all_reduce", 10, 40, domain="NCCL").range("copy", 20, 30).range(
            "request", 50, 150, domain="server"
        ).range("late", 90, 100).range("next", 100, 140).range("scan", 110, 120, domain="CUB")
        path = trace.write(tmp_path / "trace.sqlite")
        assert ask(path, "SELECT path FROM nvtx_nesting ORDER BY start_ns") == [
            ("step",), ("step/all_reduce",), ("step/all_reduce/copy",), ("request",), ("request/late",),
            ("request/next",), ("request/next/scan",),
        ]  # fmt: skip
        scoped_trace = nsys_insight.open(path).scope(nvtx="request/next")
        assert scoped_trace.sql("SELECT name FROM nvtx_ranges ORDER BY 1").rows() == [("next",), ("scan",)]


class TestOddTimes:
    @pytest.mark.slow
    @settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(trace=traces())
    def test_busy_and_gaps_equal_plain_loops(self, trace, tmp_path):
        path = trace.write(tmp_path / "trace.sqlite")
        tables = oracle.read(path)
        for view, expected in (("gpu_busy", oracle.busy_intervals(tables)), ("gpu_gaps", oracle.idle_gaps(tables))):
            spans = [(gpu, *span) for gpu, spans in sorted(expected.items()) for span in spans]
            assert ask(path, f"SELECT gpu_id, start_ns, end_ns FROM {view} ORDER BY ALL", use_cache=False) == spans

    @pytest.mark.slow
    def test_negative_swapped_empty_and_nested_times(self, tmp_path):
        trace = Trace()
        host = trace.thread()
        host.kernel("long", start=-1_000, runs=1_500).kernel("inside", start=-500, runs=100, stream=13)
        host.kernel("backwards", start=800, runs=-300).kernel("instant", start=900, runs=0).kernel(
            "last", start=1_000, runs=10
        )
        path = trace.write(tmp_path / "trace.sqlite")
        # The gap before 800 begins where the long kernel ends, at 500, not where the one before in time does, at -400.
        gaps = "SELECT start_ns, end_ns FROM gpu_gaps ORDER BY 1"
        assert ask(path, gaps) == [(500, 800), (800, 900), (900, 1_000)]
        assert ask(path, "SELECT sum(duration_ns)::INT FROM gpu_busy") == [(1_510,)]
        assert ask(path, "SELECT start_ns, end_ns FROM wall") == [(-1_000, 1_010)]

    @pytest.mark.slow
    @pytest.mark.parametrize("graph_ns", [None, 500])
    def test_an_event_that_ends_before_it_starts_has_no_duration_and_its_recorded_times(self, graph_ns, tmp_path):
        trace = Trace()
        host = (
            trace.thread()
            .launch("k")
            .copy("H2D", 4)
            .memset(4)
            .sync("stream")
            .osrt("poll")
            .graph_launch(graph_ns=graph_ns)
        )
        trace.overhead("CUPTI Buffer flush", 10, 20, host)
        host.range("step", 0, host.now).range("open", 1, None)
        swapped_rows = [
            row
            for rows in trace.rows.values()
            for row in rows
            if row.get("end") is not None and row["end"] > row["start"]
        ]
        for row in swapped_rows:
            row["start"], row["end"] = row["end"], row["start"]
        path = trace.write(tmp_path / "trace.sqlite")
        timed_views = []
        with open_trace(path) as open_file:
            for view in views.documented_views():
                columns = {*open_file.sql(f"FROM {view} LIMIT 0").columns}
                if view not in DISJOINT and columns >= {"start_ns", "end_ns", "duration_ns"}:
                    timed_views.append(view)
                    rows = open_file.sql(f"SELECT start_ns, end_ns, duration_ns FROM {view}").rows()
                    assert [row for row in rows if row[2] != (None if row[1] is None else 0)] == [], view
                    assert [row for row in rows if row[1] is not None and row[1] > row[0]] == [], view
        assert {"kernels", "api_calls", "nvtx_ranges", "syncs", "os_calls"} <= set(timed_views)
        assert ask(path, "SELECT api_duration_ns FROM launches") == [(0,)]
        assert ask(path, "SELECT duration_ns FROM nvtx_ranges WHERE name = 'open'") == [(None,)]

    def test_streams_and_events_without_a_number_are_unknown(self, tmp_path):
        trace = Trace()
        trace.thread().launch("k").sync("device")
        path = trace.write(tmp_path / "trace.sqlite")
        assert ask(path, "SELECT stream_id, event_id FROM syncs") == [(None, None)]


class TestOddText:
    @pytest.mark.slow
    @pytest.mark.parametrize("use_cache", [False, True])
    def test_text_that_is_not_utf8_is_escaped_and_no_row_is_dropped(self, tmp_path, use_cache):
        trace = Trace().gpu(0, name=b"GPU \xe9").diagnostic(b"lost \x80\x81 events")
        host = trace.thread(process=b"./app\xff", name=b"worker \xfe").range(b"step \xff", 0, 90_000)
        host.range("naïve", 0, 95_000, domain=b"dom\xc3").range(b"registered \xff", 0, 99_000, registered=True)
        host.launch(b"kernel\xff(int)").launch("grün(int)").launch("plain(int)").osrt(b"poll\xf0")
        path = trace.write(tmp_path / "trace.sqlite")

        def names(view, column="name"):
            return {text for (text,) in ask(path, f"SELECT {column} FROM {view}", use_cache=use_cache)}

        assert names("kernels") == {r"kernel\xFF(int)", "grün(int)", "plain(int)"}
        assert names("nvtx_ranges") == {r"step \xFF", "naïve", r"registered \xFF"}
        assert names("nvtx_ranges", "domain") == {"", r"dom\xC3"}
        assert names("gpus") == {r"GPU \xE9"}
        assert names("processes") == {r"./app\xFF"}
        assert names("threads") == {r"worker \xFE"}
        assert names("diagnostics", "message") == {r"lost \x80\x81 events"}
        assert names("os_calls") == {r"poll\xF0"}
        with nsys_insight.open(path, use_cache=use_cache) as open_file:
            assert open_file.top()["calls"].sum() == 3
            assert open_file.info().height > 5


class TestOneLineOfTime:
    """The times of all GPUs as positions on one line, which sort by one number."""

    def test_a_position_converts_back_to_its_gpu_and_time(self, tmp_path):
        trace = Trace()
        trace.thread().launch("k", start=2_000_000, runs=40_000).copy("H2D", 4)
        with open_trace(trace.write(tmp_path / "t.sqlite")) as open_file:
            open_file.sql("FROM _gpu_reach LIMIT 0")
            connection = open_file._connection.duckdb
            (first, last), *_ = open_file.rows(
                "SELECT min(start_ns) AS first_ns, max(end_ns) AS last_ns FROM _gpu_work"
            )
            for known_bounds in ({}, {"CUPTI_ACTIVITY_KIND_KERNEL": (2_005_000, 2_025_000)}):
                gpus.create_timeline_macros(connection, known_bounds)
                for gpu, ns in product((None, 0, 1, 7), (first, last)):
                    position = f"on_line({literal(gpu)}, {ns})"
                    rows = connection.execute(f"SELECT gpu_on_line({position}), ns_on_line({position})").fetchall()
                    assert rows == [(gpu, ns)]

    def test_a_device_without_a_number_has_rows(self, tmp_path):
        trace = Trace()
        trace.thread().launch("k", device=4_294_967_295).launch("k", device=0, start=1 << 50)
        path = trace.write(tmp_path / "t.sqlite")
        assert sorted(ask(path, "SELECT gpu_id FROM _gpu_reach"), key=str) == [(0,), (None,)]


def test_a_header_has_only_the_keys_of_a_view_or_of_a_macro():
    for view in views.definitions().values():
        keys = view.header.keys()
        assert keys == {"parameters"} or {"description"} <= keys <= {
            "description",
            "stored",
            "needs",
            "progress",
            "columns_of",
            "columns",
        }, view.name


def test_a_header_has_sentences_for_columns_of_its_query_in_their_order():
    with empty_model() as connection:
        columns_by_view = views.list_columns(connection)
    assert columns_by_view.keys() == views.documented_views().keys()
    for name, columns in columns_by_view.items():
        view = views.definitions()[name]
        assert [column for column in columns if column in view.own_meanings] == list(view.own_meanings), name
        assert all(view.meanings[column] for column in columns), name


def test_no_header_repeats_the_sentence_that_its_column_has_anyway():
    for view in views.documented_views().values():
        source = view.header.get("columns_of")
        meanings = views.definitions()[source].meanings if source else views.read_common_meanings()
        assert view.declared or not view.own_meanings.items() & meanings.items(), view.name
