"""A trace as a whole: which part of it a question is about, and what opening it leaves behind."""

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
from nsys_insight.errors import UsageError
from nsys_insight.ingest import cache_entries, cache_folder

REPOSITORY = Path(__file__).parents[1]
SAMPLES = REPOSITORY / "sample_traces"
EVENTS = ("kernels", "api_calls", "memcpys", "memsets", "graph_launches", "memory_events", "os_calls")
quickly = settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])


def rows(trace, query):
    return trace.sql(query).rows()


def counts(trace):
    """Give how many events of each kind there are."""
    (found,) = rows(trace, "SELECT " + ", ".join(f"(SELECT count(*) FROM {view}) AS {view}" for view in EVENTS))
    return dict(zip(EVENTS, found, strict=True))


def wall_ns(trace):
    return sum(ns for (ns,) in rows(trace, "SELECT duration_ns FROM wall"))


def ids(trace, view="kernels"):
    return Counter(rows(trace, f"SELECT process_id, correlation_id FROM {view}"))


class TestWindow:
    @pytest.mark.slow
    @quickly
    @given(trace=traces(), cuts=st.lists(st.integers(-5_000, 40_000), max_size=3, unique=True).map(sorted))
    def test_windows_of_a_partition_add_up_to_the_whole(self, trace, cuts, tmp_path):
        with nsys_insight.open(trace.write(tmp_path / "trace.sqlite"), use_cache=False) as whole:
            assume(oracle.wall(oracle.read(whole.path)))
            parts = []
            for start, end in zip([None, *cuts], [*cuts, None], strict=True):
                with whole.scope(from_ns=start, to_ns=end) as part:
                    parts.append((Counter(counts(part)), wall_ns(part)))
            assert sum((events for events, _ in parts), Counter()) == +Counter(counts(whole))
            assert sum(wall for _, wall in parts) == wall_ns(whole)

    def test_an_event_is_where_it_begins(self, tmp_path):
        trace = Trace()
        trace.thread().kernel("a", at=100, runs=900).kernel("b", at=500, runs=10).kernel("c", at=800, runs=1_000)
        with nsys_insight.open(trace.write(tmp_path / "trace.sqlite")).scope(from_ns=500, to_ns=800) as part:
            assert rows(part, "SELECT name, duration_ns FROM kernels") == [("b", 10)]
            assert rows(part, "SELECT start_ns, end_ns, duration_ns FROM wall") == [(500, 800, 300)]

    @pytest.mark.slow
    def test_a_range_is_in_a_window_as_far_as_it_reaches_into_it(self, sample):
        spent = "SELECT name, sum(duration_ns)::BIGINT FROM nvtx_ranges GROUP BY ALL"
        with nsys_insight.open(sample("decode_eager")) as whole:
            ((cut,),) = rows(whole, "SELECT start_ns + 1_000_000 FROM nvtx_ranges WHERE name = 'prefill'")
            with whole.scope(to_ns=cut) as before, whole.scope(from_ns=cut) as after:
                assert dict(rows(before, spent))["prefill"] == 1_000_000
                parts = Counter(dict(rows(before, spent))) + Counter(dict(rows(after, spent)))
            assert parts == dict(rows(whole, spent))

    @pytest.mark.slow
    def test_a_window_that_reaches_beyond_the_trace_is_as_long_as_the_trace(self, sample):
        with nsys_insight.open(sample("churn")) as whole, whole.scope(from_ns=-(10**12), to_ns=10**12) as part:
            assert wall_ns(part) == wall_ns(whole)

    def test_a_window_without_length_is_refused(self, sample):
        with pytest.raises(UsageError, match="empty"):
            nsys_insight.open(sample("churn")).scope(from_ns=5, to_ns=5)


class TestRanges:
    @pytest.mark.slow
    @quickly
    @given(trace=traces(), name=st.sampled_from([*RANGES, "layer_*"]))
    def test_what_was_launched_inside_is_in_scope_and_nothing_else(self, trace, name, tmp_path):
        path = trace.write(tmp_path / "trace.sqlite")
        tables = oracle.read(path)
        wanted = re.compile(name.replace("*", ".*"))
        ranges = [row for row in oracle.nvtx_ranges(tables) if wanted.fullmatch(row["name"])]
        whole = nsys_insight.open(path, use_cache=False)
        if not ranges:
            with pytest.raises(UsageError, match="no NVTX range is named"):
                whole.scope(nvtx=name)
            return
        inside = {
            (oracle.pid_of(call), call["correlationId"])
            for call in oracle.api_calls(tables)
            if oracle.open_at(ranges, call["globalTid"], call["start"])
        }
        with whole.scope(nvtx=name) as part:
            assert rows(part, "SELECT range_count FROM scope") == [(len(ranges),)]
            assert set(ids(part, "api_calls")) == inside
            for view in ("kernels", "memcpys", "memsets", "graph_launches"):
                assert ids(part, view) == Counter({key: n for key, n in ids(whole, view).items() if key in inside})
            walls = rows(part, "SELECT start_ns, end_ns FROM wall ORDER BY 1")
        closed = [(row["start"], row["end"]) for row in ranges if row["end"] is not None]
        if len(closed) == len(ranges):
            assert walls == [span for span in oracle.union(closed) if span[0] < span[1]]

    @pytest.mark.slow
    def test_of_the_sample_a_decode_step_has_the_work_that_nsys_projects_into_it(self, sample):
        with nsys_insight.open(sample("decode_eager")).scope(nvtx="decode_step") as part:
            assert rows(part, "SELECT count(*) FROM gpu_ops") == [(32 * 198,)]
            assert rows(part, "SELECT name, count(*) FROM nvtx_ranges GROUP BY 1 ORDER BY 1") == [
                ("decode_step", 32), *((f"layer_{layer}", 32) for layer in range(4)),
            ]  # fmt: skip

    @pytest.mark.slow
    def test_a_path_means_the_ranges_at_one_place(self, sample):
        for name, kernels in (("layer_0", 33 * 45), ("decode_step/layer_0", 32 * 45), ("*/layer_?", 33 * 180)):
            with nsys_insight.open(sample("decode_eager")).scope(nvtx=name) as part:
                assert counts(part)["kernels"] == kernels

    def test_ranges_of_one_name_inside_each_other_are_one_time(self, tmp_path):
        trace = Trace()
        trace.thread().range("r", 0, 1_000).range("r", 200, 700).range("r", 900, 1_500).launch("k", at=300)
        with nsys_insight.open(trace.write(tmp_path / "trace.sqlite")).scope(nvtx="r") as part:
            assert rows(part, "SELECT start_ns, end_ns FROM wall") == [(0, 1_500)]
            assert rows(part, "SELECT count(*) FROM kernels") == [(1,)]

    def test_an_open_range_lasts_to_the_end_of_the_trace(self, tmp_path):
        trace = Trace()
        host = trace.thread().launch("before", at=0, runs=10).range("r", 10_000, None)
        host.launch("in", at=20_000, api=500, queue=0, runs=9_500)
        with nsys_insight.open(trace.write(tmp_path / "trace.sqlite")).scope(nvtx="r") as part:
            assert rows(part, "SELECT name FROM kernels") == [("in",)]
            ((start, end),) = rows(part, "SELECT start_ns, end_ns FROM wall")
            assert start == 10_000
            assert end == pytest.approx(30_000, abs=1)

    def test_a_name_that_is_not_there_is_answered_with_those_that_are(self, sample):
        with pytest.raises(UsageError) as caught:
            nsys_insight.open(sample("decode_eager")).scope(nvtx="decode_stp")
        assert "'decode_step'" in caught.value.hint


class TestPlaces:
    @pytest.mark.slow
    @quickly
    @given(trace=traces())
    def test_each_gpu_operation_is_in_one_device_one_stream_and_one_process(self, trace, tmp_path):
        with nsys_insight.open(trace.write(tmp_path / "trace.sqlite"), use_cache=False) as whole:
            expected = Counter(rows(whole, "SELECT process_id, device_id, stream_id, start_ns FROM gpu_ops"))
            for position, flag in enumerate(("process", "device", "stream")):
                for value in {row[position] for row in expected}:
                    with whole.scope(**{flag: value}) as part:
                        found = rows(part, "SELECT process_id, device_id, stream_id, start_ns FROM gpu_ops")
                    assert Counter(found) == Counter({row: n for row, n in expected.items() if row[position] == value})

    @pytest.mark.slow
    def test_calls_belong_to_a_process_but_to_no_device(self, tmp_path):
        trace = Trace()
        trace.thread(pid=1).launch("k", device=0).launch("k", device=1)
        trace.thread(pid=2).launch("k", device=0)
        with nsys_insight.open(trace.write(tmp_path / "trace.sqlite")) as whole:
            assert (counts(whole.scope(process=2))["kernels"], counts(whole.scope(process=2))["api_calls"]) == (1, 1)
            assert (counts(whole.scope(device=1))["kernels"], counts(whole.scope(device=1))["api_calls"]) == (1, 3)

    @pytest.mark.slow
    def test_parts_of_a_scope_are_narrowed_one_after_the_other(self, sample):
        with nsys_insight.open(sample("decode_eager")) as whole, whole.scope(nvtx="decode_step") as steps:
            starts = sorted(rows(steps, "SELECT start_ns FROM nvtx_ranges WHERE name = 'decode_step'"))
            with steps.scope(to_ns=starts[15][0]) as half:
                assert rows(half, "SELECT nvtx, range_count FROM scope") == [("decode_step", 15)]
                assert counts(half)["kernels"] == 15 * 196


def content(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


class TestNothingIsLeftBehind:
    @pytest.mark.slow
    @pytest.mark.parametrize("use_cache", [False, True])
    @pytest.mark.parametrize("scope", [{}, {"nvtx": "decode_step"}])
    def test_the_file_stays_as_it_is_and_alone(self, sample, tmp_path, use_cache, scope):
        path = tmp_path / "trace.sqlite"
        path.write_bytes(sample("decode_eager").read_bytes())
        path.chmod(0o444)
        before, changed = content(tmp_path), path.stat().st_mtime_ns
        with nsys_insight.open(path, use_cache=use_cache).scope(**scope) as trace:
            for pack in ("info", "top", "gaps", "nvtx", "steps", "fusion"):
                trace.run(pack)
        assert content(tmp_path) == before
        assert path.stat().st_mtime_ns == changed

    def test_without_being_asked_for_no_cache_is_built(self, sample, cache):
        with nsys_insight.open(sample("churn")) as trace:
            trace.top()
        assert list(cache.glob("*.duckdb")) == []

    @pytest.mark.parametrize(
        "name", ["it's.sqlite", 'a "b" c.sqlite', "x; DROP TABLE y;--.sqlite", "100%20#?&.sqlite", "käse [1].sqlite"]
    )
    @pytest.mark.parametrize("use_cache", [False, True])
    def test_the_file_may_be_called_anything(self, sample, tmp_path, name, use_cache):
        folder = tmp_path / f"folder of {name}"
        folder.mkdir()
        path = folder / name
        path.write_bytes(sample("churn").read_bytes())
        with nsys_insight.open(path, use_cache=use_cache) as trace:
            assert trace.top()["calls"].sum() == 500
        assert [file.name for file in folder.iterdir()] == [name]


class TestCache:
    @pytest.mark.slow
    @pytest.mark.parametrize("keep", [slice(100, None), slice(None, 6_000)])
    def test_a_damaged_file_is_not_used_and_built_again(self, sample, cache, keep):
        def ask():
            with nsys_insight.open(sample("churn"), use_cache=True) as trace:
                assert trace.top()["calls"].sum() == 500
            return list(cache.glob("*.duckdb"))

        (cached,) = ask()
        whole = cached.read_bytes()
        cached.write_bytes(whole[keep])
        assert ask() == [cached]
        assert cached.stat().st_size == len(whole)

        # As if it had been published so: DuckDB finds it.
        cached.write_bytes(whole[keep])
        about = replace(cache_entries.read_about(cached), seal=cache_folder.seal(cached))
        cache_entries.write_about(about, cache_entries.beside(cached))
        assert ask() == []
        assert ask() == [cached]

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
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) for _ in range(2)]
        printed = {process.communicate(timeout=120)[0] for process in started}
        assert [process.returncode for process in started] == [0, 0]
        with nsys_insight.open(sample("decode_eager"), use_cache=False) as trace:
            assert printed == {f"{trace.top()['total_ns'].sum()} {trace.launches().height}\n"}
        assert {file.suffix for file in cache.iterdir()} == {".duckdb", ".json", ".last"}
        assert len([file for file in cache.glob("*.duckdb*") if not file.name.startswith("model-")]) == 2


@pytest.mark.slow
def test_notes_reach_a_python_user_who_asks_for_them(sample):
    said = []
    with nsys_insight.open(sample("decode_graph_whole"), note=said.append) as trace:
        trace.top()
        assert said == list(trace.answer("top").notes)
        assert "--cuda-graph-trace=node" in said[0]
        trace.scope(nvtx="decode_step").run("top")
        assert len(said) == 2
