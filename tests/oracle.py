"""The correct answers, from plain loops over the rows of an nsys export: slow, obvious, and independent of the product.

    tables = oracle.read(path)
    oracle.kernel_totals(tables)["gemm(float *)"]["total"]

All times are nanoseconds. `tables` maps a table's name to its rows; a table that the file lacks has no rows.
"""

from __future__ import annotations

import math
import os
import re
import sqlite3
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

Row = dict[str, Any]
Tables = defaultdict[str, list[Row]]
Interval = tuple[int, int]
Shape = tuple[int, int, int]
Statistics = dict[str, float | None]

REPOSITORY = Path(__file__).parents[1]
PERMANENT_FOLDERS = (REPOSITORY / "sample_traces", REPOSITORY.parent / "shared")

BACKTRACE = 67  # event class of the rows that nsys 2022 adds for each runtime call
PUSH_POP, START_END = 59, 60  # NVTX event types
NO_STREAM = NO_EVENT = 4_294_967_295
KERNEL, RUNTIME = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
MEMCPY, MEMSET = "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPH, SYNC = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
GPU_WORK = (KERNEL, MEMCPY, MEMSET, GRAPH)

# Labels of the numbers in files without enum tables, as far as such files have them.
COPY_KINDS = {1: "Host-to-Device", 2: "Device-to-Host", 8: "Device-to-Device", 9: "Host-to-Host", 10: "Peer-to-Peer"}
MEMORY_KINDS = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed"}

LAUNCH = re.compile(r"cu(da)?Launch(Cooperative)?Kernel")
GRAPH_LAUNCH = re.compile(r"cu(da)?GraphLaunch")
# Rows in nsys's table of overheads that are work of the program.
MPI_TABLES = ("MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS")
PROGRAM_OVERHEAD = re.compile(r"(?i)unknown$|dl(m?open|close)|.*(module load|function load|compil|command buffer)")
HOST_WAIT = re.compile(r"cu(da)?(Stream|Event|Device|Ctx|Thread)Synchronize$")
ALLOCATION = re.compile(r"cudaMalloc|cudaHostAlloc|cuMemAlloc|cuMemHostAlloc|cuMemCreate")
RELEASE = re.compile(r"cudaFree|cuMemFree|cuMemRelease")


def read(path: Path) -> Tables:
    """Read every table of an export. The tables of a few permanent files are cached."""
    return _read_once(path) if is_permanent(path) else _read(path)


def is_permanent(path: Path | str) -> bool:
    """Whether a file is in the repository or in the shared folder next to it. Tests do not change these files."""
    return any(Path(os.path.abspath(path)).is_relative_to(folder) for folder in PERMANENT_FOLDERS)  # noqa: PTH100 - no links


def _read(path: Path) -> Tables:
    db = sqlite3.connect(path)
    db.row_factory = sqlite3.Row
    db.text_factory = lambda text: text.decode("utf-8", errors="replace")
    names = [row["name"] for row in db.execute("SELECT * FROM sqlite_master") if row["type"] == "table"]
    tables: Tables = defaultdict(list)
    for name in names:
        tables[name] = [dict(row) for row in db.execute(f'SELECT * FROM "{name}"')]
    db.close()
    return tables


_read_once = lru_cache(maxsize=6)(_read)


# Ids and names -------------------------------------------------------------------------------------------------------


def pid_of(row: Row) -> int:
    """Return the process id of a row. A packed id has 16 bits of machine, 24 of process and 24 of thread."""
    packed = row["globalPid"] if "globalPid" in row else row["globalTid"]
    return int(packed) >> 24 & 0xFFFFFF


def tid_of(row: Row) -> int:
    """Return the thread id of a row."""
    return int(row["globalTid"]) & 0xFFFFFF


def strings(tables: Tables) -> dict[int, str]:
    """Return the strings by id."""
    return {row["id"]: row["value"] for row in tables["StringIds"]}


def labels(tables: Tables, enum: str, documented: dict[int, str]) -> dict[int, str]:
    """Return an enum's labels: the file's own, else the documented ones."""
    return {row["id"]: row["label"] for row in tables[enum]} or documented


def plain_name(api_name: str) -> str:
    """Strip the linker's suffixes: cudaMemcpyAsync_ptsz_v7000 is cudaMemcpyAsync."""
    return re.sub(r"(_v\d+|_ptsz|_ptds)+$", "", api_name)


def duration(row: Row) -> int:
    """Return the length of a row; 0 when it ends before it starts."""
    return max(0, int(row["end"]) - int(row["start"]))


def statistics(values: Sequence[float]) -> Statistics:
    """Describe numbers as nsys does, with percentiles by linear interpolation.

    The median is the mean of the two middle values, the deviation that of a sample: unknown for a single value (there
    nsys prints 0).
    """
    ordered = sorted(values)
    count, total = len(ordered), sum(ordered)
    mean = total / count
    variance = sum((value - mean) ** 2 for value in ordered) / (count - 1) if count > 1 else None
    return {
        "count": count,
        "total": total,
        "avg": mean,
        "median": quantile(ordered, 0.5),
        "min": ordered[0],
        "max": ordered[-1],
        "stddev": None if variance is None else math.sqrt(variance),
        "p95": quantile(ordered, 0.95),
        "p99": quantile(ordered, 0.99),
    }


def quantile(ordered: Sequence[float], share: float) -> float:
    """Interpolate between the two values around a place in an ordered list."""
    place = share * (len(ordered) - 1)
    low, high = math.floor(place), math.ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


# Totals --------------------------------------------------------------------------------------------------------------


def kernel_totals(tables: Tables, name: str = "demangledName") -> dict[str, Statistics]:
    """Describe the durations of each kernel, by "demangledName" or "shortName"."""
    names = strings(tables)
    times: dict[str, list[int]] = defaultdict(list)
    for kernel in tables[KERNEL]:
        times[names[kernel[name]]].append(duration(kernel))
    return {name: statistics(values) for name, values in times.items()}


def kernel_totals_by_shape(tables: Tables) -> dict[tuple[str, Shape, Shape], Statistics]:
    """Describe the durations of each kernel, grid and block."""
    names = strings(tables)
    times: dict[tuple[str, Shape, Shape], list[int]] = defaultdict(list)
    for kernel in tables[KERNEL]:
        grid = (kernel["gridX"], kernel["gridY"], kernel["gridZ"])
        block = (kernel["blockX"], kernel["blockY"], kernel["blockZ"])
        times[names[kernel["demangledName"]], grid, block].append(duration(kernel))
    return {key: statistics(values) for key, values in times.items()}


def api_calls(tables: Tables) -> list[Row]:
    """Return the CUDA API calls with their `name`, without the rows that nsys 2022 repeats."""
    names = strings(tables)
    calls = [row for row in tables[RUNTIME] if row["eventClass"] != BACKTRACE]
    return [{**row, "name": plain_name(names[row["nameId"]])} for row in calls]


def outer_api_calls(tables: Tables) -> list[Row]:
    """Return the calls that are not nested in another call of their thread.

    If two calls have the same times, the driver call is nested, or else the later one.
    """
    outer: list[Row] = []
    threads: dict[int, list[Row]] = defaultdict(list)
    for call in api_calls(tables):
        threads[call["globalTid"]].append(call)
    for calls in threads.values():
        calls.sort(key=lambda call: (call["start"], -call["end"], call["eventClass"], call["correlationId"]))
        latest_end = -math.inf
        for call in calls:
            if call["end"] > latest_end:
                outer.append(call)
                latest_end = call["end"]
    return outer


def api_totals(calls: Iterable[Row]) -> dict[str, Statistics]:
    """Describe the durations of calls by name. Pass `outer_api_calls` to leave out nested calls."""
    times: dict[str, list[int]] = defaultdict(list)
    for call in calls:
        times[call["name"]].append(duration(call))
    return {name: statistics(values) for name, values in times.items()}


def memcpy_totals(tables: Tables) -> dict[str, dict[str, Any]]:
    """Describe the `time` and the `bytes` of copies, by the label of their kind: "Host-to-Device" and so on."""
    kinds = labels(tables, "ENUM_CUDA_MEMCPY_OPER", COPY_KINDS)
    return _work_totals((kinds[copy["copyKind"]], copy) for copy in tables[MEMCPY])


def memcpy_totals_by_memory(tables: Tables) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Describe the `time` and the `bytes` of copies, by the labels of kind, source memory and target memory."""
    kinds = labels(tables, "ENUM_CUDA_MEMCPY_OPER", COPY_KINDS)
    memory = labels(tables, "ENUM_CUDA_MEM_KIND", MEMORY_KINDS)
    return _work_totals(
        ((kinds[copy["copyKind"]], memory[copy["srcKind"]], memory[copy["dstKind"]]), copy) for copy in tables[MEMCPY]
    )


def memset_totals(tables: Tables) -> dict[str, Any]:
    """Describe the `time` and the `bytes` of memsets; empty without memsets."""
    return _work_totals(("memset", row) for row in tables[MEMSET]).get("memset", {})


def _work_totals(keyed: Iterable[tuple[Any, Row]]) -> dict[Any, dict[str, Any]]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for key, row in keyed:
        groups[key].append(row)
    return {
        key: {"time": statistics([duration(row) for row in rows]), "bytes": statistics([row["bytes"] for row in rows])}
        for key, rows in groups.items()
    }


def counts(tables: Tables) -> dict[str, int]:
    """Count kernels, the calls that launched them, graphs and other events that are easily confused."""
    calls = outer_api_calls(tables)
    return {
        "kernels": len(tables[KERNEL]),
        "launch_calls": sum(bool(LAUNCH.match(call["name"])) for call in calls),
        "graph_launch_calls": sum(bool(GRAPH_LAUNCH.match(call["name"])) for call in calls),
        "whole_graph_runs": len(tables[GRAPH]),
        "copies": len(tables[MEMCPY]),
        "memsets": len(tables[MEMSET]),
        "api_calls": len(calls),
    }


def allocations(tables: Tables) -> dict[str, Any]:
    """Count allocating and freeing calls by name, and sum up the memory usage events."""
    calls = Counter(call["name"] for call in outer_api_calls(tables))
    memory = labels(tables, "ENUM_CUDA_MEM_KIND", MEMORY_KINDS)
    operations = labels(tables, "ENUM_CUDA_DEV_MEM_EVENT_OPER", {0: "Allocation", 1: "Deallocation"})
    events: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    for event in tables["CUDA_GPU_MEMORY_USAGE_EVENTS"]:
        key = (operations[event["memoryOperationType"]], memory[event["memKind"]])
        events[key] += 1
        sizes[key] += event["bytes"]
    return {
        "calls": {name: count for name, count in calls.items() if ALLOCATION.match(name)},
        "free_calls": {name: count for name, count in calls.items() if RELEASE.match(name)},
        "events": dict(events),
        "bytes": dict(sizes),
    }


# Time ----------------------------------------------------------------------------------------------------------------


def wall(tables: Tables) -> Interval | None:
    """Return the first and last instant of any API call or GPU operation; None without any."""
    rows = [*api_calls(tables), *(row for name in GPU_WORK for row in tables[name])]
    if not rows:
        return None
    return min(row["start"] for row in rows), max(row["end"] for row in rows)


def busy_intervals(tables: Tables) -> dict[int, list[Interval]]:
    """Return the disjoint intervals in which each GPU ran kernels, copies, memsets or graphs."""
    return {
        gpu: union((row["start"], max(row["start"], row["end"])) for row in work)
        for gpu, work in work_of_gpus(tables).items()
    }


def work_of_gpus(tables: Tables) -> dict[int, list[Row]]:
    """Return the operations of each GPU.

    Each process numbers its devices. The key is the GPU of the machine if the trace maps devices to GPUs.
    """
    gpus = {(row["pid"], row["cudaId"]): row["gpuId"] for row in tables["TARGET_INFO_CUDA_DEVICE"]}
    work: dict[int, list[Row]] = defaultdict(list)
    for table in GPU_WORK:
        for row in tables[table]:
            device = int(row["deviceId"])
            work[gpus.get((pid_of(row), device), device)].append(row)
    return work


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Merge intervals that overlap or touch."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def busy_ns(tables: Tables) -> dict[int, int]:
    """Return the busy time of each GPU."""
    return {gpu: sum(end - start for start, end in intervals) for gpu, intervals in busy_intervals(tables).items()}


def idle_gaps(tables: Tables) -> dict[int, list[Interval]]:
    """Return the intervals in which each GPU was idle between its first and its last work."""
    gaps: dict[int, list[Interval]] = {}
    for gpu, intervals in busy_intervals(tables).items():
        gaps[gpu] = [(end, start) for (_, end), (start, _) in pairwise(intervals)]
    return gaps


# Launches ------------------------------------------------------------------------------------------------------------


def calls_by_id(tables: Tables) -> dict[tuple[int, int], Row]:
    """Return the API call of each process and correlation id; of nested calls with one id the outermost."""
    calls: dict[tuple[int, int], Row] = {}
    for call in sorted(api_calls(tables), key=lambda call: (call["start"], -call["end"], call["eventClass"])):
        if call["correlationId"] is not None:
            calls.setdefault((pid_of(call), call["correlationId"]), call)
    return calls


def launches(tables: Tables) -> list[dict[str, Any]]:
    """Return each kernel with the call that launched it. It lacks values if the trace lacks the call.

    `queue_ns` is the kernel's start after the call's end, negative when it started before the call returned.
    """
    names, calls, pairs = strings(tables), calls_by_id(tables), []
    for kernel in tables[KERNEL]:
        call = calls.get((pid_of(kernel), kernel["correlationId"]))
        pairs.append({
            "name": names[kernel["demangledName"]],
            "kernel": kernel,
            "call": call,
            "api_name": call and call["name"],
            "thread_id": call and tid_of(call),
            "kernel_ns": duration(kernel),
            "api_ns": duration(call) if call else None,
            "queue_ns": kernel["start"] - call["end"] if call else None,
        })  # fmt: skip
    return pairs


def launch_coverage(tables: Tables) -> dict[str, int]:
    """Count kernels and launch calls, and those whose counterpart is in the trace."""
    pairs = launches(tables)
    work = {(pid_of(row), row["correlationId"]) for table in (KERNEL, GRAPH) for row in tables[table]}
    calls = [call for call in api_calls(tables) if LAUNCH.match(call["name"]) or GRAPH_LAUNCH.match(call["name"])]
    return {
        "kernels": len(pairs),
        "kernels_with_call": sum(pair["call"] is not None for pair in pairs),
        "launch_calls": len(calls),
        "launch_calls_with_work": sum((pid_of(call), call["correlationId"]) in work for call in calls),
    }


# NVTX ----------------------------------------------------------------------------------------------------------------


def nvtx_ranges(tables: Tables, kinds: Collection[int] = (PUSH_POP, START_END)) -> list[Row]:
    """Return the NVTX ranges with their `name` and `domain`; an open one has no end."""
    names = strings(tables)

    def text(row: Row) -> str:
        return row["text"] if row["text"] is not None else names.get(row["textId"], "")

    domains = {(pid_of(row), row["domainId"]): text(row) for row in tables["NVTX_EVENTS"] if row["eventType"] == 75}
    ranges = [row for row in tables["NVTX_EVENTS"] if row["eventType"] in kinds]
    return [{**row, "name": text(row), "domain": domains.get((pid_of(row), row["domainId"]), "")} for row in ranges]


def open_at(ranges: Iterable[Row], global_tid: int, instant: int) -> list[Row]:
    """Return the ranges of a thread that are open at an instant, innermost (the last opened) first."""
    open_ranges = [row for row in ranges if row["globalTid"] == global_tid and row["start"] <= instant < _closing(row)]
    return sorted(open_ranges, key=_from_outside, reverse=True)


def kernels_in_nvtx(
    tables: Tables, kinds: Collection[int] = (PUSH_POP, START_END)
) -> list[tuple[dict[str, Any], list[Row]]]:
    """Return each launch with the ranges open on the launching thread when the call began, innermost first.

    A kernel whose call is not in the trace is in no range.
    """
    ranges = nvtx_ranges(tables, kinds)
    pairs = []
    for launch in launches(tables):
        call = launch["call"]
        pairs.append((launch, open_at(ranges, call["globalTid"], call["start"]) if call else []))
    return pairs


def nvtx_gpu_time(tables: Tables, kinds: Collection[int] = (PUSH_POP, START_END)) -> dict[str, dict[str, int]]:
    """Sum kernel time by range name: `total_ns` of all kernels inside, `own_ns` of those in no nested range.

    A kernel inside two ranges of one name counts once. Ranges without kernels have zeros.
    """
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for row in nvtx_ranges(tables, kinds):
        totals[row["name"]]["ranges"] += 1
    for launch, open_ranges in kernels_in_nvtx(tables, kinds):
        for name in {row["name"] for row in open_ranges}:
            totals[name]["kernels"] += 1
            totals[name]["total_ns"] += launch["kernel_ns"]
        if open_ranges:
            totals[open_ranges[0]["name"]]["own_kernels"] += 1
            totals[open_ranges[0]["name"]]["own_ns"] += launch["kernel_ns"]
    keys = ("ranges", "kernels", "total_ns", "own_kernels", "own_ns")
    return {name: {key: total[key] for key in keys} for name, total in totals.items()}


def nvtx_nesting(tables: Tables) -> list[dict[str, Any]]:
    """Return each push/pop range with its `depth` on its thread, 1 at the top, and the `path` of names down to it.

    Its parent is the innermost range, of any domain, that is open from its start to its end.
    """
    threads: dict[int, list[Row]] = defaultdict(list)
    for row in nvtx_ranges(tables, {PUSH_POP}):
        threads[row["globalTid"]].append(row)
    nested = []
    for ranges in threads.values():
        paths: list[tuple[Row, list[str]]] = []  # of earlier ranges: a later one is never a parent
        for row in sorted(ranges, key=_from_outside):
            path = next(
                (
                    path
                    for outer, path in reversed(paths)
                    if row["start"] < _closing(outer) and _closing(row) <= _closing(outer)
                ),
                [],
            )
            paths.append((row, [*path, row["name"]]))
        nested += [{**row, "depth": len(path), "path": path} for row, path in paths]
    return nested


def _closing(row: Row) -> float:
    return math.inf if row["end"] is None else max(row["start"], row["end"])


def _from_outside(row: Row) -> tuple[Any, ...]:
    """Return a sort key: by start, and from the outer to the inner range if they start together."""
    return row["start"], -_closing(row), row["name"], row["domain"], row["domainId"]


# Synchronization -----------------------------------------------------------------------------------------------------


def d2h_sync_points(tables: Tables) -> list[dict[str, Any]]:
    """Return the calls in which the host waits for data from the device, in order of time.

    A sync point is a blocking device-to-host copy, or a wait that covers asynchronous copies. A wait covers a copy
    that an earlier call on the same thread started, if it waits for the stream of the copy, for an event recorded on
    this stream after the copy, or for its device. A wait completes the copies that it covers; a wait that completes
    none is not a sync point. If the trace lacks the target of a wait, the wait covers all copies.
    """
    kinds = labels(tables, "ENUM_CUDA_MEMCPY_OPER", COPY_KINDS)
    copies = _by_call(copy for copy in tables[MEMCPY] if kinds[copy["copyKind"]] == "Device-to-Host")
    waits, records = _by_call(tables[SYNC]), _by_call(tables["CUPTI_ACTIVITY_KIND_CUDA_EVENT"])

    blocking = blocking_copies(tables)
    points: list[dict[str, Any]] = []
    last_records: dict[tuple[int, int], tuple[Row, int]] = {}  # by event: its last record and the time
    pending: dict[int, list[tuple[Row, int]]] = defaultdict(list)  # by thread: copies with the start of their calls
    for call in sorted(api_calls(tables), key=lambda call: call["start"]):
        pid, key, thread = pid_of(call), (pid_of(call), call["correlationId"]), call["globalTid"]
        completed: list[Row] = []
        for record in records[key]:
            last_records[pid, record["eventId"]] = (record, call["start"])
        if key in blocking and "Async" not in call["name"]:
            completed = copies[key]
        elif HOST_WAIT.match(call["name"]):
            wait = waits[key][0] if waits[key] else None
            event = last_records.get((pid, wait["eventId"])) if wait else None
            covered = [
                (_covers(wait, event, copy, copy_start), copy, copy_start) for copy, copy_start in pending[thread]
            ]
            completed = [copy for is_completed, copy, _ in covered if is_completed]
            pending[thread] = [(copy, copy_start) for is_completed, copy, copy_start in covered if not is_completed]
        else:
            pending[thread] += [(copy, call["start"]) for copy in copies[key]]
        if completed:
            points.append({"call": call, "copies": completed, "bytes": sum(copy["bytes"] for copy in completed)})
    return points


def operations_of_calls(tables: Tables) -> list[dict[str, Any]]:
    """Return the kernels and copies with the thread and the start of their API call."""
    calls = calls_by_id(tables)
    return [
        {"kind": kind, "thread": call["globalTid"], "start": call["start"], "duration": duration(row), "row": row}
        for table, kind in ((KERNEL, "kernels"), (MEMCPY, "copies"))
        for row in tables[table]
        if (call := calls.get((pid_of(row), row["correlationId"]))) is not None
    ]


def add_up_events(events: Iterable[tuple[Any, Row]], operations: Sequence[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    """Add up (key, row) events by key, with the operations whose call begins on the thread while one is open."""
    keyed = defaultdict(list)
    for key, row in events:
        keyed[key].append(row)
    totals = {}
    for key, rows in keyed.items():
        contained = [
            operation
            for operation in operations
            if any(r["globalTid"] == operation["thread"] and r["start"] <= operation["start"] < r["end"] for r in rows)
        ]
        totals[key] = {
            "calls": len(rows),
            "sum_ns": sum(duration(row) for row in rows),
            "threads": len({row["globalTid"] for row in rows}),
            "kernels": sum(o["kind"] == "kernels" for o in contained),
            "kernel_ns": sum(o["duration"] for o in contained if o["kind"] == "kernels"),
            "copies": sum(o["kind"] == "copies" for o in contained),
            "copy_ns": sum(o["duration"] for o in contained if o["kind"] == "copies"),
            "copy_bytes": sum(o["row"]["bytes"] for o in contained if o["kind"] == "copies"),
        }
    return totals


def _by_call(rows: Iterable[Row]) -> dict[tuple[int, int], list[Row]]:
    groups: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in rows:
        if row["correlationId"] is not None:
            groups[pid_of(row), row["correlationId"]].append(row)
    return groups


def profiler_overheads(tables: Tables) -> list[Row]:
    """Return the overheads that the program would not have without nsys."""
    names = {row["id"]: row["value"] for row in tables["StringIds"]}
    return [row for row in tables["PROFILER_OVERHEAD"] if not PROGRAM_OVERHEAD.match(names.get(row["nameId"]) or "")]


def mpi_calls(tables: Tables) -> list[Row]:
    """Return the MPI calls: of newer exports from their tables, of older ones from the ranges with their names."""
    names = {row["id"]: row["value"] for row in tables["StringIds"] if row["value"].startswith("MPI_")}
    rows = [row for row in tables["NVTX_EVENTS"] if row["eventType"] == 59]
    rows += [row for table in MPI_TABLES for row in tables[table]]
    return [{**row, "name": names[row["textId"]]} for row in rows if row.get("textId") in names]


def blocking_copies(tables: Tables) -> dict[tuple[int, int], bool]:
    """Return process and correlation id of the calls that return when their copy is done.

    These are copies from or to host memory. Of asynchronous ones they are those from the device into pageable memory;
    for these the value is true.
    """
    kinds = labels(tables, "ENUM_CUDA_MEMCPY_OPER", COPY_KINDS)
    memory = labels(tables, "ENUM_CUDA_MEM_KIND", MEMORY_KINDS)
    calls: dict[tuple[int, int], Row] = calls_by_id(tables)
    reads_by_call: dict[tuple[int, int], bool] = {}
    for copy in tables[MEMCPY]:
        key = (pid_of(copy), copy["correlationId"])
        name = calls[key]["name"] if key in calls and copy["correlationId"] is not None else ""
        if not re.match(r"cu(da)?Memcpy", name) or "Host" not in kinds[copy["copyKind"]]:
            continue
        is_read = kinds[copy["copyKind"]] == "Device-to-Host" and memory[copy["dstKind"]] == "Pageable"
        if is_read or "Async" not in name:
            reads_by_call[key] = reads_by_call.get(key, False) or is_read
    return reads_by_call


def _covers(wait: Row | None, event: tuple[Row, int] | None, copy: Row, copy_start: int) -> bool:
    """Whether a wait covers this copy. The ids identify the target; the numbers of syncType differ by version."""

    def matches_copy(row: Row, *keys: str) -> bool:
        return all(row[key] == copy[key] for key in keys)

    if wait is None:
        return True
    if wait["eventId"] != NO_EVENT:
        return event is None or (matches_copy(event[0], "deviceId", "contextId", "streamId") and event[1] > copy_start)
    # Some versions of nsys write device 0 for every wait; the context identifies the device.
    if wait["streamId"] != NO_STREAM:
        return matches_copy(wait, "contextId", "streamId")
    return matches_copy(wait, "deviceId") or matches_copy(wait, "contextId")


# Causes of idle time -------------------------------------------------------------------------------------------------


def host_waits(tables: Tables) -> list[dict[str, Any]]:
    """Return when threads waited for the GPU: `calls`, `start` of the first call and `end` of the last one.

    A wait is a synchronizing call, a blocking copy from or to host memory, or an asynchronous copy into pageable
    memory. A synchronizing call and the last such copy that it completes are one wait.
    """
    blocking = blocking_copies(tables)
    copies, syncs = _by_call(tables[MEMCPY]), _by_call(tables[SYNC])
    records = _by_call(tables["CUPTI_ACTIVITY_KIND_CUDA_EVENT"])
    waits: list[dict[str, Any]] = []
    last_records: dict[tuple[int, int], tuple[Row, int]] = {}
    # The copies of each thread into pageable memory, with their calls.
    pending: dict[int, list[tuple[Row, Row]]] = defaultdict(list)

    def add(*calls: Row) -> None:
        waits.append({"calls": calls, "start": calls[0]["start"], "end": calls[-1]["end"]})

    for call in sorted(outer_api_calls(tables), key=lambda call: call["start"]):
        key, thread = (pid_of(call), call["correlationId"]), call["globalTid"]
        for record in records[key]:
            last_records[pid_of(call), record["eventId"]] = (record, call["start"])
        if HOST_WAIT.match(call["name"]):
            wait = syncs[key][0] if syncs[key] else None
            event = last_records.get((pid_of(call), wait["eventId"])) if wait else None
            completed = [pair for pair in pending[thread] if _covers(wait, event, pair[0], pair[1]["start"])]
            pending[thread] = [pair for pair in pending[thread] if pair not in completed]
            for _, copy_call in completed[:-1]:
                add(copy_call)
            add(*(copy_call for _, copy_call in completed[-1:]), call)
        elif key in blocking and "Async" not in call["name"]:
            add(call)
        else:
            pending[thread] += [(copy, call) for copy in copies[key] if key in blocking]
    for pairs in pending.values():
        for _, copy_call in pairs:
            add(copy_call)
    return waits


def idle_costs(tables: Tables) -> dict[tuple[str, int, int], int]:  # noqa: C901, PLR0912, PLR0915 - one loop
    """Return the cost of each wait, allocation and free, by "wait" or "allocation", thread and start of its last call.

    Each gap of each GPU is compared with the calls of the thread that launched the next operation too late. A wait
    costs the part of the gap that it covers. If it began before the gap, it also costs the time after it that has no
    other cause, up to the rest of the wait's duration.
    """
    by_thread: dict[int, list[Row]] = defaultdict(list)
    for call in sorted(outer_api_calls(tables), key=lambda call: call["start"]):
        by_thread[call["globalTid"]].append(call)
    starts = {thread: [call["start"] for call in calls] for thread, calls in by_thread.items()}
    ends = {thread: [call["end"] for call in calls] for thread, calls in by_thread.items()}
    overheads: dict[int, list[Interval]] = defaultdict(list)
    for row in profiler_overheads(tables):
        overheads[row["globalTid"]].append((row["start"], row["end"]))
    profiler_intervals = {thread: union(times) for thread, times in overheads.items()}
    mpi_times: dict[int, list[Interval]] = defaultdict(list)
    for row in mpi_calls(tables):
        mpi_times[row["globalTid"]].append((row["start"], row["end"]))
    mpi_intervals = {thread: union(times) for thread, times in mpi_times.items()}
    waits = host_waits(tables)
    waits_of: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for wait in waits:
        waits_of[wait["calls"][0]["globalTid"]].append(wait)
    wait_of = {_call_key(call): wait for wait in waits for call in wait["calls"]}
    blocking = blocking_copies(tables)
    launch_calls, kernels = calls_by_id(tables), Counter((pid_of(row), row["correlationId"]) for row in tables[KERNEL])
    costs: Counter[tuple[str, int, int]] = Counter()

    def key_of(call: Row) -> tuple[str, int, int] | None:
        if _call_key(call) in wait_of:
            last = wait_of[_call_key(call)]["calls"][-1]
            return "wait", last["globalTid"], last["start"]
        is_memory = ALLOCATION.match(call["name"]) or RELEASE.match(call["name"])
        return ("allocation", call["globalTid"], call["start"]) if is_memory else None

    for work in work_of_gpus(tables).values():
        direct_costs: Counter[tuple[str, int, int]] = Counter()
        delayed_costs: list[tuple[dict[str, Any], int]] = []
        work.sort(key=lambda op: (op["start"], op["correlationId"] is None, op["correlationId"] or 0, pid_of(op)))
        busy_until, previous = work[0]["start"], None
        for op in work:
            key = (pid_of(op), op["correlationId"])
            launch = launch_calls.get(key) if op["correlationId"] is not None else None
            start, end = busy_until, op["start"]
            previous_key = (pid_of(previous), previous["correlationId"]) if previous else None
            is_same_launch = key == previous_key and launch is not None
            busy_until, previous = max(busy_until, op["start"], op["end"]), op
            if end <= start or launch is None or is_same_launch:
                continue
            if launch["start"] < start:
                cause = key_of(launch)
                if (
                    launch["end"] > start and cause and blocking.get(key)
                ):  # launched in time, but the call blocks in the copy
                    direct_costs[cause] += end - start
                continue
            thread = launch["globalTid"]

            def free(a: int, b: int, thread: int = thread) -> int:
                """Return the time of an interval outside the profiler."""
                return max(0, b - a) - sum(max(0, min(b, y) - max(a, x)) for x, y in profiler_intervals.get(thread, ()))

            waits_across_start = [wait for wait in waits_of[thread] if wait["start"] <= start <= wait["end"] < end]
            last_wait = max(waits_across_start, key=lambda wait: wait["end"], default=None)
            starved_start = last_wait["end"] if last_wait else end
            starved_ns = free(starved_start, end) - sum(
                free(max(a, starved_start), min(b, launch["start"])) for a, b in mpi_intervals.get(thread, ())
            )
            latency_ns = free(max(launch["end"], start), end)
            if latency_ns >= 100_000:  # it waits for something else than the host
                starved_ns -= free(max(launch["end"], starved_start), end)
            calls = by_thread[thread]  # outer calls of one thread do not overlap
            for call in calls[bisect_right(ends[thread], start) : bisect_left(starts[thread], end)]:
                a, b = max(call["start"], start), min(call["end"], end)
                # After the launch call the thread no longer delays the operation.
                if a >= b or call["start"] > launch["start"]:
                    continue
                cause = key_of(call)
                if cause:
                    direct_costs[cause] += free(a, b)
                    starved_ns -= free(max(a, starved_start), b) if b > starved_start else 0
                elif GRAPH_LAUNCH.match(call["name"]) and call["start"] == launch["start"] and b > starved_start:
                    starved_ns -= min(500 * kernels[key], free(a, b))
            if last_wait:
                delayed_costs.append((last_wait, starved_ns))
        costs.update(direct_costs)
        for wait, starved_ns in delayed_costs:
            last = wait["calls"][-1]
            name = ("wait", last["globalTid"], last["start"])
            costs[name] += min(starved_ns, max(0, sum(map(duration, wait["calls"])) - direct_costs[name]))
    return {name: ns for name, ns in costs.items() if ns}


def _call_key(call: Row) -> tuple[int, int]:
    return call["globalTid"], call["start"]
