"""A trace handed over: read back it gives the same answers, and a timeline holds what the trace does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import polars as pl
import pytest
from command_line import run
from many_traces import everything
from polars.testing import assert_frame_equal
from synthetic import Trace

import nsys_insight
from nsys_insight.convert.convert import convert, output_kind
from nsys_insight.errors import TraceError, UsageError
from nsys_insight.model.views import documented

SAMPLES = Path(__file__).parents[1] / "sample_traces"
# All views are in one of these.
PACKS = ("info", "top", "api", "launches", "mallocs", "copies", "syncs", "gaps", "nvtx", "idle", "per-token")
KINDS = {1: "begin", 2: "end", 4: "counter"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["copy.duckdb", "folder"])
def test_read_back_it_gives_the_same_answers(tmp_path, name):
    original = everything().write(tmp_path / "trace.sqlite")
    with nsys_insight.open(original) as trace:
        convert(trace, tmp_path / name, "duckdb" if name.endswith("duckdb") else "parquet")
        with nsys_insight.open(tmp_path / name) as copy:
            for pack in PACKS:
                left, right = trace.run(pack), copy.run(pack)
                if pack == "info":  # also says what the file lacks; the copy lacks no table
                    left, right = (frame.filter(pl.col("section") == "events") for frame in (left, right))
                assert_frame_equal(left, right, check_exact=False, rel_tol=1e-12)
            with copy.scope(nvtx="step") as part:
                assert part.top().height > 0
    assert (tmp_path / "trace.sqlite").exists()


@pytest.mark.slow
def test_any_duckdb_has_the_views_with_their_meaning(tmp_path):
    with nsys_insight.open(SAMPLES / "churn.sqlite") as trace:
        convert(trace, tmp_path / "churn.duckdb", "duckdb")
    with duckdb.connect(tmp_path / "churn.duckdb", read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM kernels").fetchone() == (500,)
        idle = connection.execute("SELECT cause, host, idle_ns FROM gpu_idle ORDER BY ALL").fetchall()
        steps = connection.execute("SELECT step, start_ns, end_ns FROM steps ORDER BY step").fetchall()
        left_over = connection.execute(
            "FROM duckdb_tables() WHERE table_name LIKE '%step%' AND schema_name <> 'facts'"
        ).fetchall()
        described = connection.execute(
            "SELECT view_name, comment FROM duckdb_views() WHERE comment IS NOT NULL"
        ).fetchall()
    assert {name for name, _ in described} == set(documented())
    with nsys_insight.open(SAMPLES / "churn.sqlite") as trace:
        assert idle == trace.sql("SELECT cause, host, idle_ns FROM gpu_idle ORDER BY ALL").rows()
        assert steps == trace.sql("SELECT step, start_ns, end_ns FROM steps ORDER BY step").rows()
    assert (len(idle) > 3, len(steps) > 3, left_over) == (True, True, [])


@pytest.mark.slow
def test_any_engine_reads_the_folder(tmp_path):
    with nsys_insight.open(SAMPLES / "churn.sqlite") as trace:
        convert(trace, tmp_path / "churn", "parquet")
        expected = trace.sql("SELECT sum(duration_ns)::BIGINT AS ns FROM kernels").item()
    assert pl.read_parquet(tmp_path / "churn" / "kernels.parquet")["duration_ns"].sum() == expected


def test_what_cannot_be_converted_is_said(tmp_path):
    with nsys_insight.open(SAMPLES / "churn.sqlite") as trace:
        (tmp_path / "there").touch()
        with pytest.raises(UsageError, match="exists already"):
            convert(trace, tmp_path / "there", "duckdb")
        with trace.scope(device=0) as part, pytest.raises(UsageError, match="a part of a trace"):
            convert(part, tmp_path / "part", "parquet")
    duckdb.connect(tmp_path / "other.duckdb").close()
    with pytest.raises(TraceError, match="not one that nsys-insight convert wrote"):
        nsys_insight.open(tmp_path / "other.duckdb")


def test_the_command_tells_by_the_name_what_to_write(tmp_path):
    path = tmp_path / "a.pftrace"
    command = ("convert", SAMPLES / "churn.sqlite", "-o", path)
    assert run(*command).returncode == 0
    assert path.read_bytes()[:1] == b"\n"
    again = run(*command)
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
    names = {"a.duckdb": "duckdb", "a.perfetto-trace": "perfetto", "folder": "parquet", "a.parquet": "parquet"}
    assert {name: output_kind(Path(name), None) for name in names} == names
    with pytest.raises(UsageError):
        output_kind(Path("a.docx"), None)


def timeline(trace, path):
    """Read a timeline with Perfetto's own classes: slices (track, category, name, start, end, flows), and counters."""
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    convert(trace, path, "perfetto")
    packets = protos.Trace.FromString(path.read_bytes()).packet
    names, categories, open_slices, slices, counters, tracks = {}, {}, {}, [], [], {}
    for packet in packets:
        for entries, known in (
            (packet.interned_data.event_names, names),
            (packet.interned_data.event_categories, categories),
        ):
            known.update({entry.iid: entry.name for entry in entries})
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            assert packet.track_descriptor.parent_uuid in {0, *tracks}
        event, at = packet.track_event, packet.timestamp
        stack = open_slices.setdefault(event.track_uuid, [])
        match KINDS.get(event.type):
            case "begin":
                assert event.track_uuid in tracks
                stack.append((categories[event.category_iids[0]], names[event.name_iid], at, tuple(event.flow_ids)))
            case "end":
                category, name, start, flows = stack.pop()
                slices.append((event.track_uuid, category, name, start, at, flows))
            case "counter":
                counters.append((tracks[event.track_uuid].name, at, event.counter_value))
    assert not any(open_slices.values())
    return slices, counters, tracks


@pytest.mark.parametrize("name", ["decode_eager", "decode_graph_node", "churn"])
def test_a_timeline_has_every_event_where_it_was(tmp_path, name):
    with nsys_insight.open(SAMPLES / f"{name}.sqlite") as trace:
        slices, _, _ = timeline(trace, tmp_path / "t.pftrace")
        for category, view, label in (
            ("kernel", "kernels", "name"),
            ("api", "api_calls", "name"),
            ("copy", "memcpys", "copy_kind"),
            ("nvtx", "nvtx_ranges", "name"),
        ):
            expected = Counter(trace.sql(f"SELECT {label}, start_ns, end_ns FROM {view}").rows())
            assert Counter(each[2:5] for each in slices if each[1] == category) == expected


@pytest.mark.slow
def test_arrows_lead_from_a_launch_to_its_kernel(tmp_path):
    with nsys_insight.open(SAMPLES / "decode_eager.sqlite") as trace:
        slices, _, _ = timeline(trace, tmp_path / "t.pftrace")
        expected = Counter(trace.sql("SELECT api_start_ns, start_ns FROM launches WHERE api_name IS NOT NULL").rows())
    calls = {flow: start for _, category, _, start, _, flows in slices if category == "api" for flow in flows}
    kernels = [(calls[flow], start) for _, kind, _, start, _, flows in slices if kind == "kernel" for flow in flows]
    assert Counter(kernels) == expected


def test_what_overlaps_on_a_stream_goes_to_two_tracks_and_a_time_before_zero_to_zero(tmp_path):
    made = Trace()
    host = made.thread()
    for name, at, runs in (("a", -500, 1_000), ("b", 0, 1_000), ("c", 100, 100), ("d", 500, 0)):
        host.kernel(name, at=at, runs=runs)
    made.gpu_metric("SMs Active", at=100, value=50)
    with nsys_insight.open(made.write(tmp_path / "trace.sqlite")) as trace:
        slices, counters, tracks = timeline(trace, tmp_path / "t.pftrace")
    kernels = {name: (start, end) for _, category, name, start, end, _ in slices if category == "kernel"}
    assert kernels == {"a": (0, 1_000), "b": (500, 1_500), "c": (600, 700), "d": (1_000, 1_000)}
    assert len({track for track, category, *_ in slices if category == "kernel"}) == 3
    assert {tracks[track].name for track, *_ in slices} == {"stream 7"}
    assert counters == [("GPU 0: SMs Active", 600, 50)]


def test_a_trace_of_nothing_is_a_timeline_of_nothing(tmp_path):
    with nsys_insight.open(Trace().write(tmp_path / "trace.sqlite")) as trace:
        assert timeline(trace, tmp_path / "t.pftrace")[0] == []
