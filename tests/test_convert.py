"""Converted traces give the same answers, and timelines have the events of the trace."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import duckdb
import polars as pl
import pytest
from command_line import run
from conversions import without_most_facts
from many_traces import make_full_trace
from opening import open_trace
from polars.testing import assert_frame_equal
from synthetic import Trace

import nsys_insight
from nsys_insight.convert.convert import choose_kind, convert
from nsys_insight.errors import TraceError, UsageError
from nsys_insight.model.views import documented_views

SAMPLES = Path(__file__).parents[1] / "sample_traces"
# These reports read all views.
PACKS = ("info", "top", "api", "launches", "mallocs", "copies", "syncs", "gaps", "nvtx", "idle", "per-token")
KINDS = {1: "begin", 2: "end", 4: "counter"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["copy.duckdb", "folder"])
def test_a_converted_trace_gives_the_same_answers(tmp_path, name):
    original = make_full_trace().write(tmp_path / "trace.sqlite")
    with nsys_insight.open(original) as trace:
        convert(trace, tmp_path / name, "duckdb" if name.endswith("duckdb") else "parquet")
        with nsys_insight.open(tmp_path / name) as copy:
            for pack in PACKS:
                left, right = trace.run(pack), copy.run(pack)
                if pack == "info":  # other sections list missing tables, and the copy has all
                    left, right = (frame.filter(pl.col("section") == "events") for frame in (left, right))
                assert_frame_equal(left, right, check_exact=False, rel_tol=1e-12)
            with copy.scope(nvtx="step") as part:
                assert part.top().height > 0
    assert (tmp_path / "trace.sqlite").exists()


@pytest.mark.slow
def test_the_duckdb_file_has_views_with_comments(tmp_path):
    with open_trace(SAMPLES / "churn.sqlite") as trace:
        convert(trace, tmp_path / "churn.duckdb", "duckdb")
    with duckdb.connect(tmp_path / "churn.duckdb", read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM kernels").fetchone() == (500,)
        idle = connection.execute("SELECT cause, host, idle_ns FROM gpu_idle ORDER BY ALL").fetchall()
        steps = connection.execute("SELECT step, start_ns, end_ns FROM steps ORDER BY step").fetchall()
        listed_views = [name for (name,) in connection.execute("SHOW TABLES").fetchall()]
        left_over = connection.execute(
            "FROM duckdb_tables() WHERE table_name LIKE '%step%' AND schema_name <> 'facts'"
        ).fetchall()
        view_comments = connection.execute(
            "SELECT view_name, comment FROM duckdb_views() WHERE comment IS NOT NULL"
        ).fetchall()
    assert {name for name, _ in view_comments} == set(documented_views(internal=False))
    assert set(listed_views) == {*documented_views(internal=False), "scope"}
    # The model alone takes 6 MB.
    assert (tmp_path / "churn.duckdb").stat().st_size < 11_000_000
    with open_trace(SAMPLES / "churn.sqlite") as trace:
        assert idle == trace.sql("SELECT cause, host, idle_ns FROM gpu_idle ORDER BY ALL").rows()
        assert steps == trace.sql("SELECT step, start_ns, end_ns FROM steps ORDER BY step").rows()
    assert (len(idle) > 3, len(steps) > 3, left_over) == (True, True, [])


@pytest.mark.slow
def test_other_engines_can_read_the_folder(tmp_path):
    with open_trace(SAMPLES / "churn.sqlite") as trace:
        convert(trace, tmp_path / "churn", "parquet")
        expected = trace.sql("SELECT sum(duration_ns)::BIGINT AS ns FROM kernels").item()
    assert pl.read_parquet(tmp_path / "churn" / "kernels.parquet")["duration_ns"].sum() == expected


def test_impossible_conversions_are_refused(tmp_path):
    with open_trace(SAMPLES / "churn.sqlite") as trace:
        (tmp_path / "there").touch()
        with pytest.raises(UsageError, match="exists already"):
            convert(trace, tmp_path / "there", "duckdb")
        with trace.scope(device=0) as part, pytest.raises(UsageError, match="a part of a trace"):
            convert(part, tmp_path / "part", "parquet")
    duckdb.connect(tmp_path / "other.duckdb").close()
    with pytest.raises(TraceError, match="not one that nsys-insight convert wrote"):
        nsys_insight.open(tmp_path / "other.duckdb")


def test_the_command_chooses_the_format_by_the_name(tmp_path):
    path = tmp_path / "a.pftrace"
    command = ("convert", SAMPLES / "churn.sqlite", "-o", path)
    assert run(*command).returncode == 0
    assert path.read_bytes()[:1] == b"\n"
    again = run(*command)
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
    names = {"a.duckdb": "duckdb", "a.perfetto-trace": "perfetto", "folder": "parquet", "a.parquet": "parquet"}
    assert {name: choose_kind(Path(name), None) for name in names} == names
    with pytest.raises(UsageError):
        choose_kind(Path("a.docx"), None)


def read_timeline(trace, path):
    """Read a timeline with Perfetto's own classes: slices (track, category, name, start, end, flows), and counters."""
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    convert(trace, path, "perfetto")
    packets = protos.Trace.FromString(path.read_bytes()).packet
    names, categories, open_slices, slices, counters, tracks = {}, {}, {}, [], [], {}
    for packet in packets:
        for entries, interned_names in (
            (packet.interned_data.event_names, names),
            (packet.interned_data.event_categories, categories),
        ):
            interned_names.update({entry.iid: entry.name for entry in entries})
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            assert packet.track_descriptor.parent_uuid in {0, *tracks}
        event, time = packet.track_event, packet.timestamp
        stack = open_slices.setdefault(event.track_uuid, [])
        match KINDS.get(event.type):
            case "begin":
                assert event.track_uuid in tracks
                stack.append((categories[event.category_iids[0]], names[event.name_iid], time, tuple(event.flow_ids)))
            case "end":
                category, name, start, flows = stack.pop()
                slices.append((event.track_uuid, category, name, start, time, flows))
            case "counter":
                counters.append((tracks[event.track_uuid].name, time, event.counter_value))
    assert not any(open_slices.values())
    return slices, counters, tracks


@pytest.mark.parametrize("name", ["decode_eager", "decode_graph_node", "churn"])
def test_a_timeline_has_every_event_at_its_time(tmp_path, name):
    with open_trace(SAMPLES / f"{name}.sqlite") as trace:
        slices, _, _ = read_timeline(trace, tmp_path / "t.pftrace")
        for category, view, label in (
            ("kernel", "kernels", "name"),
            ("api", "api_calls", "name"),
            ("copy", "memcpys", "copy_kind"),
            ("nvtx", "nvtx_ranges", "name"),
        ):
            expected = Counter(trace.sql(f"SELECT {label}, start_ns, end_ns FROM {view}").rows())
            assert Counter(slice_[2:5] for slice_ in slices if slice_[1] == category) == expected


@pytest.mark.slow
def test_flows_connect_launches_with_kernels(tmp_path):
    with open_trace(SAMPLES / "decode_eager.sqlite") as trace:
        slices, _, _ = read_timeline(trace, tmp_path / "t.pftrace")
        expected = Counter(trace.sql("SELECT api_start_ns, start_ns FROM launches WHERE api_name IS NOT NULL").rows())
    calls = {flow: start for _, category, _, start, _, flows in slices if category == "api" for flow in flows}
    kernels = [(calls[flow], start) for _, kind, _, start, _, flows in slices if kind == "kernel" for flow in flows]
    assert Counter(kernels) == expected


def test_overlapping_kernels_get_two_tracks_and_times_start_at_zero(tmp_path):
    synthetic_trace = Trace()
    host = synthetic_trace.thread()
    for name, start, runs in (("a", -500, 1_000), ("b", 0, 1_000), ("c", 100, 100), ("d", 500, 0)):
        host.kernel(name, start=start, runs=runs)
    synthetic_trace.gpu_metric("SMs Active", time=100, value=50)
    with nsys_insight.open(synthetic_trace.write(tmp_path / "trace.sqlite")) as trace:
        slices, counters, tracks = read_timeline(trace, tmp_path / "t.pftrace")
    kernels = {name: (start, end) for _, category, name, start, end, _ in slices if category == "kernel"}
    assert kernels == {"a": (0, 1_000), "b": (500, 1_500), "c": (600, 700), "d": (1_000, 1_000)}
    assert len({track for track, category, *_ in slices if category == "kernel"}) == 3
    assert {tracks[track].name for track, *_ in slices} == {"stream 7"}
    assert counters == [("GPU 0: SMs Active", 600, 50)]


def test_an_empty_trace_is_an_empty_timeline(tmp_path):
    with nsys_insight.open(Trace().write(tmp_path / "trace.sqlite")) as trace:
        assert read_timeline(trace, tmp_path / "t.pftrace")[0] == []


def test_a_part_has_the_counts_and_times_of_its_scope(tmp_path):
    path = tmp_path / "part.sqlite"
    questions = (
        "SELECT name, count(*), sum(duration_ns) FROM kernels GROUP BY ALL ORDER BY ALL",
        "SELECT name, count(*), sum(duration_ns) FROM api_calls GROUP BY ALL ORDER BY ALL",
        "SELECT range_name, count(*), sum(duration_ns) FROM kernels_in_nvtx GROUP BY ALL ORDER BY ALL",
        "SELECT * FROM memcpys ORDER BY start_ns",
    )
    with open_trace(SAMPLES / "decode_eager.sqlite") as trace, trace.scope(step=5) as scoped_trace:
        convert(scoped_trace, path, "sqlite")
        answers = [scoped_trace.sql(question).rows() for question in questions]
    with nsys_insight.open(path) as part:
        assert [part.sql(question).rows() for question in questions] == answers
        assert part.sql("SELECT count(*) FROM kernels").rows() == [(196,)]
    assert 10 * path.stat().st_size < 2 * (SAMPLES / "decode_eager.sqlite").stat().st_size
    assert not {"HOSTNAME", "PATH"} & {name for (name,) in sqlite3.connect(path).execute("SELECT value FROM StringIds")}


@pytest.fixture(scope="module")
def churn_file(tmp_path_factory):
    """Return the converted sample, for tests that do not change it."""
    file = tmp_path_factory.mktemp("converted") / "open.duckdb"
    with open_trace(SAMPLES / "churn.sqlite") as trace, without_most_facts():
        convert(trace, file, "duckdb")
    return file


@pytest.mark.parametrize("as_ncu_data", [False, True])
def test_a_file_that_another_process_has_open_is_not_called_damaged(churn_file, as_ncu_data):
    file = churn_file
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        paths, ncu = (SAMPLES / "churn.sqlite", file) if as_ncu_data else (file, None)
        with pytest.raises(TraceError) as failure:
            nsys_insight.open(paths, ncu=ncu)
        process.stdin.close()
    assert failure.value.message == f"{file} is open in another process (PID {process.pid}), which may write to it"
    assert failure.value.hint == "close it there, and try again"
    if not as_ncu_data:
        with nsys_insight.open(file) as opened_trace:
            assert opened_trace.sql("SELECT count(*) AS n FROM kernels")["n"].item() == 500
