"""Reports on what the machine does around the program: `files`, `gpu-contexts` and `metrics`."""

from __future__ import annotations

from collections import defaultdict
from statistics import mean, median

import pytest
from opening import open_trace
from oracle import read
from synthetic import Trace


def write_files(path):
    """Two files, read and written in several pieces."""
    trace = Trace()
    host = trace.thread()
    host.launch("kernel").idle(100_000).launch("kernel")
    for number, label in enumerate(("Open", "Read", "Write")):
        trace.row("ENUM_OSRT_FILE_ACCESS_EVENT_TYPE", id=number, name=label.upper(), label=label)
    for number, name in enumerate(("/data/a.bin", "/data/b.bin"), 1):
        trace.row("OSRT_FILE_ACCESS_DESCRIPTORS", fileAccessId=number, processId=1, openedAt=0, closedAt=9_000,
                  filePath=name)  # fmt: skip
    for file, start, end, kind, size in (
        (1, 1_000, 1_200, 0, 0), (1, 2_000, 5_000, 1, 4_096), (1, 6_000, 7_500, 1, 1_000), (2, 7_000, 7_700, 2, 64),
        (2, 90_000, 90_500, 2, 65),
    ):  # fmt: skip
        trace.row("OSRT_FILE_ACCESS_EVENTS", fileAccessId=file, startedAt=start, endedAt=end, eventType=kind,
                  bytesProcessed=size)  # fmt: skip
    return trace.write(path)


def add_up_files(tables, last_ns):
    names = {row["fileAccessId"]: row["filePath"] for row in tables["OSRT_FILE_ACCESS_DESCRIPTORS"]}
    labels = {row["id"]: row["label"] for row in tables["ENUM_OSRT_FILE_ACCESS_EVENT_TYPE"]}
    totals = defaultdict(lambda: [0, 0, 0])
    for row in tables["OSRT_FILE_ACCESS_EVENTS"]:
        if row["startedAt"] < last_ns:
            total = totals[names[row["fileAccessId"]], labels[row["eventType"]]]
            for place, value in enumerate((1, row["endedAt"] - row["startedAt"], row["bytesProcessed"])):
                total[place] += value
    return dict(totals)


@pytest.mark.parametrize("last_ns", [10**9, 80_000])
def test_files_equal_a_plain_loop(tmp_path, last_ns):
    path = write_files(tmp_path / "trace.sqlite")
    with open_trace(path, to_ns=last_ns) as session:
        rows = session.files().to_dicts()
    totals = {(row["name"], row["operation"]): [row["calls"], row["host_ns"], row["size_bytes"]] for row in rows}
    assert totals == add_up_files(read(path), last_ns)
    reads = next(row for row in rows if row["operation"] == "Read")
    assert reads["bytes_per_s"] == pytest.approx(5_096 / 4_500 * 1e9)


def write_contexts(path, table="GPU_CONTEXT_SWITCH_EVENTS"):
    """Two processes take turns. Events in between (tags 3 and 4) belong to no turn, and the last turn has no end."""
    trace = Trace()
    first, second = trace.thread(pid=100, process="server"), trace.thread(pid=200, process="trainer")
    first.launch("kernel", runs=9_000)
    second.launch("kernel", runs=9_000)
    events = [
        (8, first, 0), (3, first, 950), (7, first, 1_000), (4, second, 1_010), (8, second, 1_050), (7, second, 4_050),
        (8, first, 4_100), (8, first, 4_120), (7, first, 4_400), (8, second, 4_500),
    ]  # fmt: skip
    for number, (tag, host, time) in enumerate(events):
        trace.row(table, tag=tag, vmId=1, seqNo=number, contextId=host.pid // 100, timestamp=time,
                  globalPid=host.global_pid, gpuId=0)  # fmt: skip
    return trace.write(path)


def test_turns_of_contexts_equal_a_plain_loop(tmp_path):
    path = write_contexts(tmp_path / "trace.sqlite")
    start_of, turns = {}, defaultdict(list)
    for row in sorted(read(path)["GPU_CONTEXT_SWITCH_EVENTS"], key=lambda row: (row["timestamp"], row["seqNo"])):
        key = row["globalPid"] >> 24 & 0xFFFFFF, row["contextId"]
        if row["tag"] == 8:
            start_of.setdefault(key, row["timestamp"])
        elif row["tag"] == 7:
            turns[key].append((start_of.pop(key), row["timestamp"]))
    expected = {key: (len(pairs), sum(end - start for start, end in pairs)) for key, pairs in turns.items()}
    with open_trace(path) as session:
        rows = {(row["process_id"], row["context_id"]): row for row in session.gpu_contexts().to_dicts()}
    assert {key: (row["turns"], row["running_ns"]) for key, row in rows.items()} == expected
    assert expected == {(100, 1): (2, 1_300), (200, 2): (1, 3_000)}
    assert (rows[100, 1]["process"], rows[100, 1]["max_absence_ns"]) == ("server", 3_100)
    assert rows[200, 2]["running_pct"] == pytest.approx(100 * 3_000 / 4_400)


def write_metrics(path):
    """Four steps of a busy and an idle millisecond, sampled every 100 µs; a network card is sampled as well."""
    trace = Trace().gpu()
    host = trace.thread()
    for number in range(4):
        begin = host.now
        with host.nvtx(f"step {number}"):
            host.launch("gemm", runs=1_000_000).sync("stream")
            host.idle(1_000_000)
        for time in range(begin, host.now, 100_000):
            is_busy = begin + 6_000 <= time < begin + 1_006_000
            trace.gpu_metric("SMs Active [Throughput %]", time=time, value=80 + number if is_busy else 0)
    trace.gpu_metric("SMs Active [Throughput %]", time=host.now, value=4_000_000_000)
    trace.row("TARGET_INFO_NETWORK_METRICS", metricsListId=1, metricsIdx=2, name="IB: Bytes sent", unit="B/s")
    trace.row("NIC_ID_MAP", nicId=5, globalId=77)
    trace.row("TARGET_INFO_NIC_INFO", nicId=5, name="mlx5_0")
    for time, value in ((0, 10), (1_000_000, 30)):
        trace.row("NET_NIC_METRIC", start=time, end=time + 1_000_000, globalId=77, metricsListId=1, metricsIdx=2,
                  value=value)  # fmt: skip
    return trace.write(path)


def test_metrics_equal_a_plain_loop(tmp_path):
    path = write_metrics(tmp_path / "trace.sqlite")
    tables = read(path)
    values = [row["value"] for row in tables["GPU_METRICS"] if row["value"] <= 100]
    kernels = [(row["start"], row["end"]) for row in tables["CUPTI_ACTIVITY_KIND_KERNEL"]]
    busy = [
        row["value"]
        for row in tables["GPU_METRICS"]
        if row["value"] <= 100 and any(start <= row["timestamp"] < end for start, end in kernels)
    ]
    with open_trace(path) as session:
        all_rows = {row["source"]: row for row in session.metrics().to_dicts()}
        busy_rows = {row["source"]: row for row in session.metrics(during="busy").to_dicts()}
        steps = [row for row in session.metrics(group_by="step").to_dicts() if row["source"] == "GPU 0"]
    for rows, expected in ((all_rows, values), (busy_rows, busy)):
        gpu = rows["GPU 0"]
        assert (gpu["samples"], gpu["avg"], gpu["med"], gpu["min"], gpu["max"]) == (
            len(expected), pytest.approx(mean(expected)), median(expected), min(expected), max(expected)
        )  # fmt: skip
        assert rows["mlx5_0"]["name"] == "IB: Bytes sent"
        assert (rows["mlx5_0"]["avg"], rows["mlx5_0"]["unit"]) == (20, "B/s")
    assert busy_rows["GPU 0"]["min"] == 80
    assert [(row["step"], row["max"]) for row in steps] == [(0, 80), (1, 81), (2, 82), (3, 83)]


def test_a_range_uses_the_gpu_while_its_operations_run(tmp_path):
    with open_trace(write_metrics(tmp_path / "trace.sqlite"), nvtx="step 2") as session:
        (row,) = [row for row in session.metrics(during="busy").to_dicts() if row["source"] == "GPU 0"]
        assert (row["min"], row["max"], row["samples"]) == (82, 82, 10)
        assert "--during busy" in " ".join(session.answer("metrics").notes)


@pytest.mark.parametrize(
    ("report", "flag"),
    [("files", "--osrt-file-access"), ("gpu-contexts", "--gpuctxsw"), ("metrics", "--gpu-metrics-devices")],
)
def test_without_the_tables_the_answer_names_the_flag(tmp_path, report, flag):
    trace = Trace()
    trace.thread().launch("kernel")
    with open_trace(trace.write(tmp_path / "trace.sqlite")) as session:
        answer = session.answer(report)
        assert answer.frame().is_empty()
        assert flag in answer.empty
