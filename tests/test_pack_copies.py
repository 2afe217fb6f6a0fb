"""`copies`: copies and memsets on the GPU, against loops in Python and against the output of nsys."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import oracle
import pytest
from opening import open_trace
from real_traces import REAL, path_of
from synthetic import Trace

REPOSITORY = Path(__file__).parents[1]
SAMPLES = REPOSITORY / "sample_traces"
NSYS_FOLDERS = [REPOSITORY / "tests" / "data" / "nsys_stats", REPOSITORY.parent / "shared" / "traces" / "nsys_stats"]
GROUPINGS = ["call", "size", "stream", "nvtx"]
KINDS = {
    "H2D": "[CUDA memcpy Host-to-Device]",
    "D2H": "[CUDA memcpy Device-to-Host]",
    "D2D": "[CUDA memcpy Device-to-Device]",
    "memset": "[CUDA memset]",
}


def ask(path, scope=None, **params):
    with open_trace(path, **scope or {}) as trace:
        answer = trace.answer("copies", **params)
        return answer.frame().to_dicts(), answer.notes


def sum_by_kind(rows, *columns):
    """Add up rows of one kind, as nsys does."""
    sums_by_kind = {}
    for row in rows:
        sums_by_kind.setdefault(KINDS[row["kind"]], Counter()).update({column: row[column] for column in columns})
    return {kind: tuple(sums[column] for column in columns) for kind, sums in sums_by_kind.items()}


def read_nsys_report(path, report):
    """Return the rows that nsys printed for a trace, or none if the report is missing."""
    for folder in NSYS_FOLDERS:
        file = folder / f"{path.stem}.{report}.csv"
        if file.is_file():
            with file.open(newline="") as lines:
                return list(csv.DictReader(lines))
    return []


def list_paths_with_report(report):
    return [case for case in REAL if read_nsys_report(path_of(case), report)]


@pytest.mark.parametrize("group_by", GROUPINGS)
@pytest.mark.parametrize("path", list_paths_with_report("cuda_gpu_mem_time_sum"), ids=lambda path: path.stem)
def test_counts_and_times_by_kind_are_those_that_nsys_prints(path, group_by):
    lines = read_nsys_report(path, "cuda_gpu_mem_time_sum")
    sums_by_kind = sum_by_kind(ask(path, group_by=group_by)[0], "calls", "total_ns")
    assert sums_by_kind == {line["Operation"]: (int(line["Count"]), int(line["Total Time (ns)"])) for line in lines}


@pytest.mark.parametrize("path", list_paths_with_report("cuda_gpu_mem_size_sum"), ids=lambda path: path.stem)
def test_sizes_by_kind_are_those_that_nsys_prints(path):
    lines = read_nsys_report(path, "cuda_gpu_mem_size_sum")
    sums_by_kind = {
        kind: (count, f"{size / 1e6:.3f}")
        for kind, (count, size) in sum_by_kind(ask(path)[0], "calls", "size_bytes").items()
    }
    assert sums_by_kind == {line["Operation"]: (int(line["Count"]), line["Total (MB)"]) for line in lines}


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_numbers_of_one_row_equal_plain_loops(path):
    tables = oracle.read(path)
    calls_by_id, labels = (
        oracle.calls_by_id(tables),
        {"Host-to-Device": "H2D", "Device-to-Host": "D2H", "Device-to-Device": "D2D"},
    )
    kinds = oracle.labels(tables, "ENUM_CUDA_MEMCPY_OPER", oracle.COPY_KINDS)
    memory = oracle.labels(tables, "ENUM_CUDA_MEM_KIND", oracle.MEMORY_KINDS)
    groups = {}
    for copy in tables[oracle.MEMCPY]:
        call = calls_by_id[oracle.pid_of(copy), copy["correlationId"]]["name"]
        key = (labels[kinds[copy["copyKind"]]], memory[copy["srcKind"]].lower(), memory[copy["dstKind"]].lower(), call)
        groups.setdefault(key, []).append(copy)
    for memset in tables[oracle.MEMSET]:
        call = calls_by_id[oracle.pid_of(memset), memset["correlationId"]]["name"]
        groups.setdefault(("memset", None, memory[memset["memKind"]].lower(), call), []).append(memset)

    rows = {(row["kind"], row["source_memory"], row["target_memory"], row["name"]): row for row in ask(path)[0]}
    first, last = oracle.wall(tables)
    total_ns = sum(oracle.duration(row) for copies in groups.values() for row in copies)
    assert rows.keys() == groups.keys()
    for key, copies in groups.items():
        row, time = rows[key], oracle.statistics([oracle.duration(copy) for copy in copies])
        size = oracle.statistics([copy["bytes"] for copy in copies])
        assert (row["calls"], row["total_ns"], row["min_ns"], row["max_ns"]) == (
            time["count"],
            time["total"],
            time["min"],
            time["max"],
        )
        assert (row["size_bytes"], row["min_bytes"], row["max_bytes"]) == (size["total"], size["min"], size["max"])
        for column, expected in {
            "avg_ns": time["avg"], "med_ns": time["median"], "stddev_ns": time["stddev"], "avg_bytes": size["avg"],
            "copy_time_pct": 100 * time["total"] / total_ns, "wall_pct": 100 * time["total"] / (last - first),
            "bandwidth_bytes_per_s": size["total"] / (time["total"] / 1e9),
        }.items():  # fmt: skip
            assert row[column] == pytest.approx(expected)


def test_pageable_memory_and_the_calls_that_use_it_are_reported(sample):
    rows, notes = ask(sample("churn"))
    assert {(row["kind"], row["source_memory"], row["target_memory"], row["name"]) for row in rows} == {
        ("H2D", "pageable", "device", "cudaMemcpy"),
        ("H2D", "pinned", "device", "cudaMemcpyAsync"),
        ("D2H", "device", "pageable", "cudaMemcpy"),
        ("D2H", "device", "pageable", "cudaMemcpyAsync"),
        ("memset", None, "device", "cudaMemset"),
    }
    assert [note.partition(" ")[0] for note in notes] == ["20"]


def test_size_classes_include_their_bound(tmp_path):
    trace = Trace()
    host = trace.thread()
    for size in (0, 1 << 10, (1 << 10) + 1, 1 << 16, (1 << 16) + 1, 1 << 20, (1 << 24) + 1):
        host.copy("H2D", size)
    rows, _ = ask(trace.write(tmp_path / "trace.sqlite"), group_by="size")
    assert [(row["name"], row["calls"]) for row in rows] == [
        ("up to 1 KiB", 2),
        ("up to 64 KiB", 2),
        ("up to 1 MiB", 2),
        ("over 16 MiB", 1),
    ]


def test_a_copy_in_a_graph_belongs_to_the_graph_launch_and_one_alone_to_no_call(tmp_path):
    trace = Trace()
    host = trace.thread().copy("D2D", 8, api_name="cudaGraphLaunch_v10000").copy("D2D", 8)
    trace.rows["CUPTI_ACTIVITY_KIND_MEMCPY"][1]["correlationId"] = 999
    with host.nvtx("step"):
        host.copy("D2D", 8)
    path = trace.write(tmp_path / "trace.sqlite")
    assert {row["name"]: row["calls"] for row in ask(path)[0]} == {
        "cudaGraphLaunch": 1,
        "(no call in the trace)": 1,
        "cudaMemcpyAsync": 1,
    }
    assert {row["name"]: row["calls"] for row in ask(path, group_by="nvtx")[0]} == {
        "(outside NVTX ranges)": 2,
        "step": 1,
    }


def test_a_batch_counts_once_and_has_a_note(tmp_path):
    trace = Trace()
    trace.thread().copy("H2D", 4_096)
    trace.rows["CUPTI_ACTIVITY_KIND_MEMCPY"][0]["copyCount"] = 16
    rows, notes = ask(trace.write(tmp_path / "trace.sqlite"))
    assert [(row["calls"], row["size_bytes"]) for row in rows] == [(1, 4_096)]
    assert any("stands for 16 copies" in note for note in notes)


def test_a_scope_narrows_what_is_counted(sample):
    rows, _ = ask(sample("decode_eager"), scope={"nvtx": "decode_step"})
    assert {(row["kind"], row["calls"]) for row in rows} == {("H2D", 32), ("D2H", 32)}
