"""Traces: scopes of a question, the cache, and files that opening a trace leaves behind."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import oracle
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from strategies import RANGES, traces
from synthetic import Trace

import nsys_insight
from nsys_insight import cache_folder
from nsys_insight.errors import UsageError
from nsys_insight.ingest import cache_entries

REPOSITORY = Path(__file__).parents[1]
SAMPLES = REPOSITORY / "sample_traces"
EVENTS = ("kernels", "api_calls", "memcpys", "memsets", "graph_launches", "memory_events", "os_calls")
few_examples = settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])


def query_rows(trace, query):
    return trace.sql(query).rows()


def count_events(trace):
    """Count the events of each kind."""
    (numbers,) = query_rows(trace, "SELECT " + ", ".join(f"(SELECT count(*) FROM {view}) AS {view}" for view in EVENTS))
    return dict(zip(EVENTS, numbers, strict=True))


def wall_ns(trace):
    return sum(ns for (ns,) in query_rows(trace, "SELECT duration_ns FROM wall"))


def count_ids(trace, view="kernels"):
    return Counter(query_rows(trace, f"SELECT process_id, correlation_id FROM {view}"))


class TestWindow:
    @pytest.mark.slow
    @few_examples
    @given(trace=traces(), cuts=st.lists(st.integers(-5_000, 40_000), max_size=3, unique=True).map(sorted))
    def test_windows_of_a_partition_add_up_to_the_full_trace(self, trace, cuts, tmp_path):
        with nsys_insight.open(trace.write(tmp_path / "trace.sqlite"), use_cache=False) as full_trace:
            assume(oracle.wall(oracle.read(full_trace.path)))
            window_totals = []
            for start, end in zip([None, *cuts], [*cuts, None], strict=True):
                with full_trace.scope(from_ns=start, to_ns=end) as part:
                    window_totals.append((Counter(count_events(part)), wall_ns(part)))
            assert sum((events for events, _ in window_totals), Counter()) == +Counter(count_events(full_trace))
            assert sum(wall for _, wall in window_totals) == wall_ns(full_trace)

    def test_an_event_belongs_to_the_window_of_its_start(self, tmp_path):
        trace = Trace()
        trace.thread().kernel("a", start=100, runs=900).kernel("b", start=500, runs=10).kernel(
            "c", start=800, runs=1_000
        )
        with nsys_insight.open(trace.write(tmp_path / "trace.sqlite")).scope(from_ns=500, to_ns=800) as part:
            assert query_rows(part, "SELECT name, duration_ns FROM kernels") == [("b", 10)]
            assert query_rows(part, "SELECT start_ns, end_ns, duration_ns FROM wall") == [(500, 800, 300)]

    @pytest.mark.slow
    def test_a_range_is_cut_at_the_ends_of_the_window(self, sample):
        query = "SELECT name, sum(duration_ns)::BIGINT FROM nvtx_ranges GROUP BY ALL"
        with nsys_insight.open(sample("decode_eager")) as full_trace:
            ((cut_ns,),) = query_rows(full_trace, "SELECT start_ns + 1_000_000 FROM nvtx_ranges WHERE name = 'prefill'")
            with full_trace.scope(to_ns=cut_ns) as before, full_trace.scope(from_ns=cut_ns) as after:
                assert dict(query_rows(before, query))["prefill"] == 1_000_000
                sums = Counter(dict(query_rows(before, query))) + Counter(dict(query_rows(after, query)))
            assert sums == dict(query_rows(full_trace, query))

    @pytest.mark.slow
    def test_a_window_that_reaches_beyond_the_trace_is_as_long_as_the_trace(self, sample):
        with (
            nsys_insight.open(sample("churn")) as full_trace,
            full_trace.scope(from_ns=-(10**12), to_ns=10**12) as part,
        ):
            assert wall_ns(part) == wall_ns(full_trace)

    def test_a_window_without_length_is_refused(self, sample):
        with pytest.raises(UsageError, match="empty"):
            nsys_insight.open(sample("churn")).scope(from_ns=5, to_ns=5)


class TestRanges:
    @pytest.mark.slow
    @few_examples
    @given(trace=traces(), name=st.sampled_from([*RANGES, "layer_*"]))
    def test_only_work_launched_inside_the_range_is_in_scope(self, trace, name, tmp_path):
        path = trace.write(tmp_path / "trace.sqlite")
        tables = oracle.read(path)
        pattern = re.compile(name.replace("*", ".*"))
        ranges = [row for row in oracle.nvtx_ranges(tables) if pattern.fullmatch(row["name"])]
        full_trace = nsys_insight.open(path, use_cache=False)
        if not ranges:
            with pytest.raises(UsageError, match="no NVTX range is named"):
                full_trace.scope(nvtx=name)
            return
        calls_in_range = {
            (oracle.pid_of(call), call["correlationId"])
            for call in oracle.api_calls(tables)
            if oracle.open_at(ranges, call["globalTid"], call["start"])
        }
        with full_trace.scope(nvtx=name) as part:
            assert query_rows(part, "SELECT range_count FROM scope") == [(len(ranges),)]
            assert set(count_ids(part, "api_calls")) == calls_in_range
            for view in ("kernels", "memcpys", "memsets", "graph_launches"):
                assert count_ids(part, view) == Counter(
                    {key: n for key, n in count_ids(full_trace, view).items() if key in calls_in_range}
                )
            walls = query_rows(part, "SELECT start_ns, end_ns FROM wall ORDER BY 1")
        closed = [(row["start"], row["end"]) for row in ranges if row["end"] is not None]
        if len(closed) == len(ranges):
            assert walls == [span for span in oracle.union(closed) if span[0] < span[1]]

    @pytest.mark.slow
    def test_a_decode_step_of_the_sample_has_the_work_that_nsys_projects_into_it(self, sample):
        with nsys_insight.open(sample("decode_eager")).scope(nvtx="decode_step") as part:
            assert query_rows(part, "SELECT count(*) FROM gpu_ops") == [(32 * 198,)]
            assert query_rows(part, "SELECT name, count(*) FROM nvtx_ranges GROUP BY 1 ORDER BY 1") == [
                ("decode_step", 32), *((f"layer_{layer}", 32) for layer in range(4)),
            ]  # fmt: skip

    @pytest.mark.slow
    def test_a_path_selects_the_ranges_at_that_nesting(self, sample):
        for name, kernels in (("layer_0", 33 * 45), ("decode_step/layer_0", 32 * 45), ("*/layer_?", 33 * 180)):
            with nsys_insight.open(sample("decode_eager")).scope(nvtx=name) as part:
                assert count_events(part)["kernels"] == kernels

    def test_nested_ranges_of_one_name_count_once(self, tmp_path):
        trace = Trace()
        trace.thread().range("r", 0, 1_000).range("r", 200, 700).range("r", 900, 1_500).launch("k", start=300)
        with nsys_insight.open(trace.write(tmp_path / "trace.sqlite")).scope(nvtx="r") as part:
            assert query_rows(part, "SELECT start_ns, end_ns FROM wall") == [(0, 1_500)]
            assert query_rows(part, "SELECT count(*) FROM kernels") == [(1,)]

    def test_an_open_range_lasts_to_the_end_of_the_trace(self, tmp_path):
        trace = Trace()
        host = trace.thread().launch("before", start=0, runs=10).range("r", 10_000, None)
        host.launch("in", start=20_000, api=500, queue=0, runs=9_500)
        with nsys_insight.open(trace.write(tmp_path / "trace.sqlite")).scope(nvtx="r") as part:
            assert query_rows(part, "SELECT name FROM kernels") == [("in",)]
            ((start, end),) = query_rows(part, "SELECT start_ns, end_ns FROM wall")
            assert start == 10_000
            assert end == pytest.approx(30_000, abs=1)

    def test_an_unknown_range_suggests_existing_ones(self, sample):
        with pytest.raises(UsageError) as caught:
            nsys_insight.open(sample("decode_eager")).scope(nvtx="decode_stp")
        assert "'decode_step'" in caught.value.hint


class TestPlaces:
    @pytest.mark.slow
    @few_examples
    @given(trace=traces())
    def test_each_gpu_operation_is_in_one_device_one_stream_and_one_process(self, trace, tmp_path):
        with nsys_insight.open(trace.write(tmp_path / "trace.sqlite"), use_cache=False) as full_trace:
            expected = Counter(query_rows(full_trace, "SELECT process_id, device_id, stream_id, start_ns FROM gpu_ops"))
            for position, flag in enumerate(("process", "device", "stream")):
                for value in {row[position] for row in expected}:
                    with full_trace.scope(**{flag: value}) as part:
                        operations = query_rows(part, "SELECT process_id, device_id, stream_id, start_ns FROM gpu_ops")
                    assert Counter(operations) == Counter(
                        {row: n for row, n in expected.items() if row[position] == value}
                    )

    @pytest.mark.slow
    def test_calls_belong_to_a_process_and_not_to_a_device(self, tmp_path):
        trace = Trace()
        trace.thread(pid=1).launch("k", device=0).launch("k", device=1)
        trace.thread(pid=2).launch("k", device=0)
        with nsys_insight.open(trace.write(tmp_path / "trace.sqlite")) as full_trace:
            assert (
                count_events(full_trace.scope(process=2))["kernels"],
                count_events(full_trace.scope(process=2))["api_calls"],
            ) == (1, 1)
            assert (
                count_events(full_trace.scope(device=1))["kernels"],
                count_events(full_trace.scope(device=1))["api_calls"],
            ) == (1, 3)

    @pytest.mark.slow
    def test_scopes_can_be_nested(self, sample):
        with nsys_insight.open(sample("decode_eager")) as full_trace, full_trace.scope(nvtx="decode_step") as steps:
            starts = sorted(query_rows(steps, "SELECT start_ns FROM nvtx_ranges WHERE name = 'decode_step'"))
            with steps.scope(to_ns=starts[15][0]) as half:
                assert query_rows(half, "SELECT nvtx, range_count FROM scope") == [("decode_step", 15)]
                assert count_events(half)["kernels"] == 15 * 196


def file_hashes(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


class TestFilesLeftBehind:
    @pytest.mark.slow
    @pytest.mark.parametrize("use_cache", [False, True])
    @pytest.mark.parametrize("scope", [{}, {"nvtx": "decode_step"}])
    def test_the_file_is_not_changed_and_no_file_is_added(self, sample, tmp_path, use_cache, scope):
        path = tmp_path / "trace.sqlite"
        path.write_bytes(sample("decode_eager").read_bytes())
        path.chmod(0o444)
        before, modified_ns = file_hashes(tmp_path), path.stat().st_mtime_ns
        with nsys_insight.open(path, use_cache=use_cache).scope(**scope) as trace:
            for pack in ("info", "top", "gaps", "nvtx", "steps", "fusion"):
                trace.run(pack)
        assert file_hashes(tmp_path) == before
        assert path.stat().st_mtime_ns == modified_ns

    def test_by_default_no_cache_is_built(self, sample, cache):
        with nsys_insight.open(sample("churn")) as trace:
            trace.top()
        assert list(cache.glob("*.duckdb")) == []

    @pytest.mark.parametrize("use_cache", [False, True])
    def test_the_file_may_be_called_anything(self, sample, tmp_path, use_cache):
        name = 'it\'s "b"; DROP TABLE y;-- 100%20#?&käse [1].sqlite'
        folder = tmp_path / f"folder of {name}"
        folder.mkdir()
        path = folder / name
        path.write_bytes(sample("churn").read_bytes())
        with nsys_insight.open(path, use_cache=use_cache) as trace:
            assert trace.sql("SELECT count(*) FROM kernels").item() == 500
        assert [file.name for file in folder.iterdir()] == [name]


class TestCache:
    @pytest.mark.slow
    @pytest.mark.parametrize("keep", [slice(100, None), slice(None, 6_000)])
    def test_a_damaged_file_is_not_used_and_built_again(self, sample, cache, keep):
        def answer_and_list_cache():
            with nsys_insight.open(sample("churn"), use_cache=True) as trace:
                assert trace.top()["calls"].sum() == 500
            return list(cache.glob("*.duckdb"))

        (cached,) = answer_and_list_cache()
        intact_bytes = cached.read_bytes()
        cached.write_bytes(intact_bytes[keep])
        assert answer_and_list_cache() == [cached]
        assert cached.stat().st_size == len(intact_bytes)

        # With a matching manifest, only DuckDB can detect the damage.
        cached.write_bytes(intact_bytes[keep])
        manifest = replace(cache_entries.read_manifest(cached), fingerprint=cache_folder.fingerprint(cached))
        cache_entries.write_manifest(manifest, cache_entries.manifest_path(cached))
        assert answer_and_list_cache() == []
        assert answer_and_list_cache() == [cached]

    @pytest.mark.slow
    def test_another_content_under_the_same_name_is_another_trace(self, sample, tmp_path):
        path = tmp_path / "trace.sqlite"
        for name, kernels in (("churn", 500), ("decode_eager", 6_469), ("churn", 500)):
            path.write_bytes(sample(name).read_bytes())
            with nsys_insight.open(path, use_cache=True) as trace:
                assert trace.top()["calls"].sum() == kernels

    @pytest.mark.slow
    def test_two_processes_at_once_on_an_empty_cache(self, sample, cache):
        program = (
            f"import nsys_insight; t = nsys_insight.open({str(sample('decode_eager'))!r}, use_cache=True);"
            "print(t.top()['total_ns'].sum(), t.launches().height)"
        )
        command = [sys.executable, "-c", program]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) for _ in range(2)]
        outputs = {process.communicate(timeout=120)[0] for process in processes}
        assert [process.returncode for process in processes] == [0, 0]
        with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
            assert outputs == {f"{trace.top()['total_ns'].sum()} {trace.launches().height}\n"}
        assert {file.suffix for file in cache.iterdir()} == {".duckdb", ".json", ".last"}
        assert len([file for file in cache.glob("*.duckdb*") if not file.name.startswith("model-")]) == 2


@pytest.mark.slow
def test_notes_are_passed_to_the_callback(sample):
    notes = []
    with nsys_insight.open(sample("decode_graph_whole"), note=notes.append) as trace:
        trace.top()
        assert notes == list(trace.answer("top").notes)
        assert "--cuda-graph-trace=node" in notes[0]
        trace.scope(nvtx="decode_step").run("top")
        assert len(notes) == 2


def test_an_error_names_the_parameter_as_python_does():
    with nsys_insight.open(SAMPLES / "decode_eager.sqlite") as trace, pytest.raises(UsageError) as error:
        trace.top(group_by="famly")
    assert error.value.message == "group_by cannot be 'famly'"
    assert "family" in error.value.hint


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"nvtx": "decode_step", "phase": "decode"}, "nvtx and phase both name ranges"),
        ({"from_ns": 9, "to_ns": 8}, "the window from_ns 9 to_ns 8 is empty"),
    ],
)
def test_an_impossible_scope_names_its_arguments(parts, message):
    with nsys_insight.open(SAMPLES / "decode_eager.sqlite") as trace, pytest.raises(UsageError) as error:
        trace.scope(**parts)
    assert error.value.message == message


def test_no_trace_at_all_is_a_usage_error():
    with pytest.raises(UsageError, match="no trace is named") as raised:
        nsys_insight.open([])
    assert "nsys_insight.open(" in raised.value.hint
