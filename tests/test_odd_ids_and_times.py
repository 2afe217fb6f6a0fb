"""Correlation ids that are used again, and times near the limit of 64 bits, give no false numbers."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from command_line import run
from conversions import without_most_facts
from sweeps import sweep
from synthetic import Trace

import nsys_insight
from nsys_insight.ingest import raw

FAR_NS = (1 << 63) - 10**9


def launch_ten(trace):
    host = trace.thread()
    with host.nvtx("step"):
        for number in range(10):
            host.launch(f"kernel_{number}", api=5_000, queue=200, runs=1_000).idle(10_000)
    return trace


def test_an_id_that_is_used_again_gives_no_queue_time(tmp_path):
    trace = launch_ten(Trace())
    for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL"):
        for row in trace.rows[table][6:]:  # the last four begin again with the ids of the first four
            row["correlationId"] = trace.rows[table][trace.rows[table].index(row) - 6]["correlationId"]
    with nsys_insight.open(trace.write(tmp_path / "t.sqlite")) as reader:
        rows = reader.sql("SELECT name_id IS NOT NULL, queue_ns, api_start_ns IS NULL FROM launches").rows()
        assert sorted(rows, key=str) == [(True, 200, False)] * 2 + [(True, None, True)] * 8
        assert reader.sql("SELECT count(*) FROM api_calls").item() == 10
        note, repeats = reader.answer("launches").notes
    assert repeats == "correlation ids are used again or missing: the queue times of 8 launch calls are not stated"
    assert note == "2 of 10 kernels have a known launch call in the trace; for the others, only the kernel is measured"


@pytest.mark.parametrize("suffix", ["sqlite", "parquet", *sweep(["duckdb"])])
def test_ids_that_are_used_again_late_in_a_trace_are_found(tmp_path, monkeypatch, suffix):
    trace = Trace()
    host = trace.thread()
    for _ in range(300):
        host.launch("k", api=5_000, queue=200, runs=1_000).idle(10_000)
    for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL"):
        rows = trace.rows[table]
        for row, earlier in zip(rows[180:], rows[:120], strict=True):
            row["correlationId"] = earlier["correlationId"]
    path = trace.write(tmp_path / "t.sqlite")
    monkeypatch.setattr(raw, "_FIRST_CALLS", 20)
    monkeypatch.setattr(raw, "_PROBES", 10)
    if suffix != "sqlite":
        with without_most_facts():
            assert run("convert", path, "-o", tmp_path / f"t.{suffix}").returncode == 0
        path = tmp_path / f"t.{suffix}"
    with nsys_insight.open(path) as reader:
        assert reader.sql("SELECT count(*), count(queue_ns) FROM launches").rows() == [(300, 60)]
        assert any("used again" in note and " 240 " in note for note in reader.answer("launches").notes)


def test_a_call_inside_another_with_its_id_changes_nothing(tmp_path):
    trace = Trace()
    trace.thread().launch("k", api=8_000, queue=300, driver="cuLaunchKernel")
    first, inner = trace.rows["CUPTI_ACTIVITY_KIND_RUNTIME"]
    inner["correlationId"] = first["correlationId"]
    with nsys_insight.open(trace.write(tmp_path / "t.sqlite")) as reader:
        assert reader.sql("SELECT queue_ns FROM launches").rows() == [(300,)]


@pytest.mark.parametrize("offset_ns", [FAR_NS, -FAR_NS, 1 << 62], ids=str)
def test_times_near_the_limit_are_shifted(tmp_path, offset_ns):
    query = "SELECT min(start_ns), max(end_ns), count(queue_ns), sum(queue_ns), sum(duration_ns) FROM launches"
    answers, notes = [], []
    for number, shift_ns in enumerate((0, offset_ns)):
        path = launch_ten(Trace()).shifted(shift_ns).write(tmp_path / f"{number}.sqlite")
        with nsys_insight.open(path, note=notes.append) as reader:
            answers.append(reader.sql(query).rows()[0])
            answers[-1] += reader.sql("SELECT count(*), sum(duration_ns) FROM nvtx_ranges").rows()[0]
            answers[-1] += reader.sql("SELECT end_ns - start_ns FROM wall").rows()[0]
    first, shifted = answers
    assert shifted[2:] == first[2:]
    assert shifted[1] - shifted[0] == first[1] - first[0]
    assert 0 <= shifted[0] < 10**9
    assert [note.partition(" are ")[0] for note in notes] == ["all times"]


def test_a_command_reads_a_trace_with_times_near_the_limit(tmp_path):
    path = launch_ten(Trace()).shifted(FAR_NS).write(tmp_path / "t.sqlite")
    result = run("top", path, "--format", "csv")
    assert result.returncode == 0
    assert result.stdout.count("\nkernel_") == 10


@pytest.mark.parametrize(("option", "is_written"), [("--ts-normalize", False), ("--ts-shift", True)])
def test_times_that_the_export_shifted_are_shifted_back(tmp_path, option, is_written):
    """The session tells of the first shift only, if none is written."""
    plain = launch_ten(Trace())
    shift_ns = plain.start_epoch_ns if option == "--ts-normalize" else 5 * 10**9
    plain.write(tmp_path / "plain.sqlite")
    plain.shifted(shift_ns).write(tmp_path / "shifted.sqlite")
    if is_written:
        with closing(sqlite3.connect(tmp_path / "shifted.sqlite")) as file, file:
            file.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_CONFIG_TIME_SHIFT', ?)", [str(shift_ns)])
    answers = []
    for name in ("plain", "shifted"):
        with nsys_insight.open(tmp_path / f"{name}.sqlite") as reader:
            answers.append(
                reader.sql("SELECT start_ns, end_ns, queue_ns FROM launches").rows()
                + reader.sql("SELECT start_ns, end_ns FROM nvtx_ranges").rows()
            )
    assert answers[0] == answers[1]
    # The scope counts from the start of the session, too.
    result = run("top", tmp_path / "shifted.sqlite", "--to", "50us", "-f", "json")
    assert result.stdout == run("top", tmp_path / "plain.sqlite", "--to", "50us", "-f", "json").stdout.replace(
        "plain.sqlite", "shifted.sqlite"
    )


def test_an_export_without_names_is_not_diagnosed(tmp_path):
    path = launch_ten(Trace()).write(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DROP TABLE StringIds")
    result = run("diagnose", path)
    assert result.returncode == 3
    assert result.stdout == ""
    assert "error: this needs the names of kernels and calls, which the export does not have" in result.stderr
    assert "hint: export the report again: nsys export" in result.stderr
    # The note has it, once.
    assert result.stderr.count("StringIds, the table with the names") == 1
    result = run("top", path)
    assert result.returncode == 0
    assert "note: this export has no StringIds" in result.stderr
