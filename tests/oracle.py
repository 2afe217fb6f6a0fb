"""The right answers, by plain loops over the rows of an nsys export: slow, obvious, and independent of the product.

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
LASTING = (REPOSITORY / "sample_traces", REPOSITORY.parent / "shared")

BACKTRACE = 67  # event class of the rows with which nsys 2022 repeats each runtime call
PUSH_POP, START_END = 59, 60  # NVTX event types
NO_STREAM = NO_EVENT = 4_294_967_295
KERNEL, RUNTIME = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
MEMCPY, MEMSET = "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPH, SYNC = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
GPU_WORK = (KERNEL, MEMCPY, MEMSET, GRAPH)

# What the numbers mean in files that do not say it themselves, as far as they were seen there.
COPY_KINDS = {1: "Host-to-Device", 2: "Device-to-Host", 8: "Device-to-Device", 9: "Host-to-Host", 10: "Peer-to-Peer"}
MEMORY_KINDS = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed"}

LAUNCH = re.compile(r"cu(da)?Launch(Cooperative)?Kernel")
GRAPH_LAUNCH = re.compile(r"cu(da)?GraphLaunch")
# What nsys lists as overhead and the program would do without it.
OF_PROGRAM = re.compile(r"(?i)unknown$|dl(m?open|close)|.*(module load|function load|compil|command buffer)")
HOST_WAIT = re.compile(r"cu(da)?(Stream|Event|Device|Ctx|Thread)Synchronize$")
ALLOCATION = re.compile(r"cudaMalloc|cudaHostAlloc|cuMemAlloc|cuMemHostAlloc|cuMemCreate")
RELEASE = re.compile(r"cudaFree|cuMemFree|cuMemRelease")


def read(path: Path) -> Tables:
    """Read every table of an export; of one that lasts, a few are kept."""
    return _read_once(path) if lasts(path) else _read(path)


def lasts(path: Path | str) -> bool:
    """Whether a file is one of the repository's, or beside it, which tests leave as it is."""
    return any(Path(os.path.abspath(path)).is_relative_to(folder) for folder in LASTING)  # noqa: PTH100 - no links


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
    """Give the process of a row, from its packed id: 16 bits of machine, 24 of process, 24 of thread."""
    packed = row["globalPid"] if "globalPid" in row else row["globalTid"]
    return int(packed) >> 24 & 0xFFFFFF


def tid_of(row: Row) -> int:
    """Give the thread of a row."""
    return int(row["globalTid"]) & 0xFFFFFF


def strings(tables: Tables) -> dict[int, str]:
    """Give the strings by id."""
    return {row["id"]: row["value"] for row in tables["StringIds"]}


def labels(tables: Tables, enum: str, documented: dict[int, str]) -> dict[int, str]:
    """Give an enum's labels: the file's own, else the documented ones."""
    return {row["id"]: row["label"] for row in tables[enum]} or documented


def plain_name(api_name: str) -> str:
    """Strip what the linker needs: cudaMemcpyAsync_ptsz_v7000 is cudaMemcpyAsync."""
    return re.sub(r"(_v\d+|_ptsz|_ptds)+$", "", api_name)


def duration(row: Row) -> int:
    """Give a row's length: none when it ends before it starts."""
    return max(0, int(row["end"]) - int(row["start"]))


def statistics(values: Sequence[float]) -> Statistics:
    """Describe numbers as nsys does, with a 95th percentile by linear interpolation.

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
    }


def quantile(ordered: Sequence[float], share: float) -> float:
    """Interpolate between the two values around a place in an ordered list."""
    place = share * (len(ordered) - 1)
    low, high = math.floor(place), math.ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


# Totals --------------------------------------------------------------------------------------------------------------


def kernel_totals(tables: Tables, name: str = "demangledName") -> dict[str, Statistics]:
    """Describe the durations of each kernel, by "demangledName" or "shortName"."""
    named = strings(tables)
    times: dict[str, list[int]] = defaultdict(list)
    for kernel in tables[KERNEL]:
        times[named[kernel[name]]].append(duration(kernel))
    return {name: statistics(values) for name, values in times.items()}


def kernel_totals_by_shape(tables: Tables) -> dict[tuple[str, Shape, Shape], Statistics]:
    """Describe the durations of each kernel, grid and block."""
    named = strings(tables)
    times: dict[tuple[str, Shape, Shape], list[int]] = defaultdict(list)
    for kernel in tables[KERNEL]:
        grid = (kernel["gridX"], kernel["gridY"], kernel["gridZ"])
        block = (kernel["blockX"], kernel["blockY"], kernel["blockZ"])
        times[named[kernel["demangledName"]], grid, block].append(duration(kernel))
    return {key: statistics(values) for key, values in times.items()}


def api_calls(tables: Tables) -> list[Row]:
    """Give the CUDA API calls with their `name`, without nsys 2022's repetitions."""
    named = strings(tables)
    calls = [row for row in tables[RUNTIME] if row["eventClass"] != BACKTRACE]
    return [{**row, "name": plain_name(named[row["nameId"]])} for row in calls]


def outer_api_calls(tables: Tables) -> list[Row]:
    """Give the calls that lie within no other call of their thread.

    Of two calls at exactly the same time the driver's is inside, or the later one.
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
    """Describe the durations of calls by name; of `outer_api_calls`, unless nested ones are to be added to theirs."""
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
    """Describe the `time` and the `bytes` of memsets; empty when there are none."""
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
    """Count what people mix up: kernels, the calls that launched them, and graphs."""
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
    """Count allocating and freeing calls by name, and what the memory usage events say."""
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
    """Give the first and last instant of any CUDA event, of the host or of a device; None without any."""
    rows = [*api_calls(tables), *(row for name in (*GPU_WORK, SYNC) for row in tables[name])]
    if not rows:
        return None
    return min(row["start"] for row in rows), max(row["end"] for row in rows)


def busy_intervals(tables: Tables) -> dict[int, list[Interval]]:
    """Give when each GPU was busy: the union of its kernels, copies, memsets and whole graphs, disjoint."""
    return {
        gpu: union((row["start"], max(row["start"], row["end"])) for row in work)
        for gpu, work in work_of_gpus(tables).items()
    }


def work_of_gpus(tables: Tables) -> dict[int, list[Row]]:
    """Give the operations of each GPU.

    A process numbers its devices itself; the key is the machine's GPU where the trace says which one a device is.
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
    """Give how long each GPU was busy."""
    return {gpu: sum(end - start for start, end in parts) for gpu, parts in busy_intervals(tables).items()}


def idle_gaps(tables: Tables) -> dict[int, list[Interval]]:
    """Give when each GPU was idle between its first and its last work."""
    gaps: dict[int, list[Interval]] = {}
    for gpu, parts in busy_intervals(tables).items():
        gaps[gpu] = [(end, start) for (_, end), (start, _) in pairwise(parts)]
    return gaps


# Launches ------------------------------------------------------------------------------------------------------------


def call_of(tables: Tables) -> dict[tuple[int, int], Row]:
    """Give the API call of each process and correlation id: the outermost, where calls inside each other share one."""
    found: dict[tuple[int, int], Row] = {}
    for call in sorted(api_calls(tables), key=lambda call: (call["start"], -call["end"], call["eventClass"])):
        if call["correlationId"] is not None:
            found.setdefault((pid_of(call), call["correlationId"]), call)
    return found


def launches(tables: Tables) -> list[dict[str, Any]]:
    """Give each kernel with the call that launched it; what is of the call is None when the trace does not have it.

    `queue_ns` is the kernel's start after the call's end, negative when it started before the call returned.
    """
    named, calls, found = strings(tables), call_of(tables), []
    for kernel in tables[KERNEL]:
        call = calls.get((pid_of(kernel), kernel["correlationId"]))
        found.append({
            "name": named[kernel["demangledName"]],
            "kernel": kernel,
            "call": call,
            "api_name": call and call["name"],
            "thread_id": call and tid_of(call),
            "kernel_ns": duration(kernel),
            "api_ns": duration(call) if call else None,
            "queue_ns": kernel["start"] - call["end"] if call else None,
        })  # fmt: skip
    return found


def launch_coverage(tables: Tables) -> dict[str, int]:
    """Count kernels and launch calls, and of each those whose partner is in the trace."""
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
    """Give the NVTX ranges with their `name` and `domain`; an open one has no end."""
    named = strings(tables)

    def text(row: Row) -> str:
        return row["text"] if row["text"] is not None else named.get(row["textId"], "")

    domains = {(pid_of(row), row["domainId"]): text(row) for row in tables["NVTX_EVENTS"] if row["eventType"] == 75}
    ranges = [row for row in tables["NVTX_EVENTS"] if row["eventType"] in kinds]
    return [{**row, "name": text(row), "domain": domains.get((pid_of(row), row["domainId"]), "")} for row in ranges]


def open_at(ranges: Iterable[Row], global_tid: int, instant: int) -> list[Row]:
    """Give the ranges of a thread that are open at an instant, innermost (the last opened) first."""
    around = [row for row in ranges if row["globalTid"] == global_tid and row["start"] <= instant < _closing(row)]
    return sorted(around, key=_from_outside, reverse=True)


def kernels_in_nvtx(
    tables: Tables, kinds: Collection[int] = (PUSH_POP, START_END)
) -> list[tuple[dict[str, Any], list[Row]]]:
    """Give each launch with the ranges open on the launching thread when the call began, innermost first.

    A kernel whose call is not in the trace is in no range.
    """
    ranges = nvtx_ranges(tables, kinds)
    found = []
    for launch in launches(tables):
        call = launch["call"]
        found.append((launch, open_at(ranges, call["globalTid"], call["start"]) if call else []))
    return found


def nvtx_gpu_time(tables: Tables, kinds: Collection[int] = (PUSH_POP, START_END)) -> dict[str, dict[str, int]]:
    """Sum kernel time by range name: `total_ns` of all kernels inside, `own_ns` of those in no range further inside.

    A kernel inside two ranges of one name counts once. Ranges without kernels are there with zeros.
    """
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for row in nvtx_ranges(tables, kinds):
        totals[row["name"]]["ranges"] += 1
    for launch, around in kernels_in_nvtx(tables, kinds):
        for name in {row["name"] for row in around}:
            totals[name]["kernels"] += 1
            totals[name]["total_ns"] += launch["kernel_ns"]
        if around:
            totals[around[0]["name"]]["own_kernels"] += 1
            totals[around[0]["name"]]["own_ns"] += launch["kernel_ns"]
    keys = ("ranges", "kernels", "total_ns", "own_kernels", "own_ns")
    return {name: {key: total[key] for key in keys} for name, total in totals.items()}


def nvtx_nesting(tables: Tables) -> list[dict[str, Any]]:
    """Give each push/pop range with its `depth` on its thread, 1 at the top, and the `path` of names down to it.

    It is inside the range, of whatever domain, that is the innermost of those open from its start to its end.
    """
    threads: dict[int, list[Row]] = defaultdict(list)
    for row in nvtx_ranges(tables, {PUSH_POP}):
        threads[row["globalTid"]].append(row)
    nested = []
    for ranges in threads.values():
        paths: list[tuple[Row, list[str]]] = []  # of those that come before: nothing that comes later is around a range
        for row in sorted(ranges, key=_from_outside):
            path = next(
                (
                    path
                    for other, path in reversed(paths)
                    if row["start"] < _closing(other) and _closing(row) <= _closing(other)
                ),
                [],
            )
            paths.append((row, [*path, row["name"]]))
        nested += [{**row, "depth": len(path), "path": path} for row, path in paths]
    return nested


def _closing(row: Row) -> float:
    return math.inf if row["end"] is None else max(row["start"], row["end"])


def _from_outside(row: Row) -> tuple[Any, ...]:
    """Sort ranges by start, and those that start at one instant from the outer to the inner."""
    return row["start"], -_closing(row), row["name"], row["domain"], row["domainId"]


# Synchronisation -----------------------------------------------------------------------------------------------------


def d2h_sync_points(tables: Tables) -> list[dict[str, Any]]:
    """Give the places where the host waits for data from the device, in order of time.

    A place is a blocking device-to-host copy, or a wait that covers asynchronous ones: the copy's call came before on
    the same thread, and the wait is for its stream, for an event recorded on its stream after it, or for its device.
    A wait completes the copies that it covers; one for nothing new is no sync point. Where the trace does not say what
    a call waited for, it is taken to wait for all.
    """
    kinds = labels(tables, "ENUM_CUDA_MEMCPY_OPER", COPY_KINDS)
    copies = _by_call(copy for copy in tables[MEMCPY] if kinds[copy["copyKind"]] == "Device-to-Host")
    waits, records = _by_call(tables[SYNC]), _by_call(tables["CUPTI_ACTIVITY_KIND_CUDA_EVENT"])

    blocking = blocking_copies(tables)
    points: list[dict[str, Any]] = []
    recorded: dict[tuple[int, int], tuple[Row, int]] = {}  # an event: where, and when, it was last recorded
    pending: dict[int, list[tuple[Row, int]]] = defaultdict(list)  # a thread's copies, each with its call's start
    for call in sorted(api_calls(tables), key=lambda call: call["start"]):
        pid, key, thread = pid_of(call), (pid_of(call), call["correlationId"]), call["globalTid"]
        done: list[Row] = []
        for record in records[key]:
            recorded[pid, record["eventId"]] = (record, call["start"])
        if key in blocking and "Async" not in call["name"]:
            done = copies[key]
        elif HOST_WAIT.match(call["name"]):
            wait = waits[key][0] if waits[key] else None
            event = recorded.get((pid, wait["eventId"])) if wait else None
            covered = [(_covers(wait, event, copy, began), copy, began) for copy, began in pending[thread]]
            done = [copy for is_done, copy, _ in covered if is_done]
            pending[thread] = [(copy, began) for is_done, copy, began in covered if not is_done]
        else:
            pending[thread] += [(copy, call["start"]) for copy in copies[key]]
        if done:
            points.append({"call": call, "copies": done, "bytes": sum(copy["bytes"] for copy in done)})
    return points


def _by_call(rows: Iterable[Row]) -> dict[tuple[int, int], list[Row]]:
    grouped: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in rows:
        if row["correlationId"] is not None:
            grouped[pid_of(row), row["correlationId"]].append(row)
    return grouped


def profiler_overheads(tables: Tables) -> list[Row]:
    """Give what nsys lists as overhead and the program would not have had without it."""
    names = {row["id"]: row["value"] for row in tables["StringIds"]}
    return [row for row in tables["PROFILER_OVERHEAD"] if not OF_PROGRAM.match(names.get(row["nameId"]) or "")]


def blocking_copies(tables: Tables) -> dict[tuple[int, int], bool]:
    """Give process and correlation id of the calls that return only when their copy is done, and whether by memory.

    Those are copies from or to memory of the host, but for asynchronous ones; of these, what goes to the host into
    pageable memory.
    """
    kinds = labels(tables, "ENUM_CUDA_MEMCPY_OPER", COPY_KINDS)
    memory = labels(tables, "ENUM_CUDA_MEM_KIND", MEMORY_KINDS)
    called: dict[tuple[int, int], Row] = call_of(tables)
    found: dict[tuple[int, int], bool] = {}
    for copy in tables[MEMCPY]:
        key = (pid_of(copy), copy["correlationId"])
        name = called[key]["name"] if key in called and copy["correlationId"] is not None else ""
        if not re.match(r"cu(da)?Memcpy", name) or "Host" not in kinds[copy["copyKind"]]:
            continue
        is_read = kinds[copy["copyKind"]] == "Device-to-Host" and memory[copy["dstKind"]] == "Pageable"
        if is_read or "Async" not in name:
            found[key] = found.get(key, False) or is_read
    return found


def _covers(wait: Row | None, event: tuple[Row, int] | None, copy: Row, copy_began: int) -> bool:
    """Say whether a wait is for this copy. What was waited for is in the ids: syncType's numbers differ by version."""

    def same(row: Row, *keys: str) -> bool:
        return all(row[key] == copy[key] for key in keys)

    if wait is None:
        return True
    if wait["eventId"] != NO_EVENT:
        return event is None or (same(event[0], "deviceId", "contextId", "streamId") and event[1] > copy_began)
    # Versions of nsys say device 0 of every wait: the context tells which it was.
    if wait["streamId"] != NO_STREAM:
        return same(wait, "contextId", "streamId")
    return same(wait, "deviceId") or same(wait, "contextId")


# What idle GPUs are charged to -------------------------------------------------------------------------------------


def host_waits(tables: Tables) -> list[dict[str, Any]]:
    """Give the times that a thread waited for the GPU: `calls`, `start` of the first and `end` of the last of them.

    A wait is a synchronising call, a blocking copy from or to host memory, or an asynchronous copy into pageable
    memory. The last such copy that a synchronising call completes is one wait with it.
    """
    blocking = blocking_copies(tables)
    copies, syncs = _by_call(tables[MEMCPY]), _by_call(tables[SYNC])
    records = _by_call(tables["CUPTI_ACTIVITY_KIND_CUDA_EVENT"])
    found: list[dict[str, Any]] = []
    recorded: dict[tuple[int, int], tuple[Row, int]] = {}
    pending: dict[int, list[tuple[Row, Row]]] = defaultdict(
        list
    )  # a thread's copies into pageable memory, with the call

    def add(*calls: Row) -> None:
        found.append({"calls": calls, "start": calls[0]["start"], "end": calls[-1]["end"]})

    for call in sorted(outer_api_calls(tables), key=lambda call: call["start"]):
        key, thread = (pid_of(call), call["correlationId"]), call["globalTid"]
        for record in records[key]:
            recorded[pid_of(call), record["eventId"]] = (record, call["start"])
        if HOST_WAIT.match(call["name"]):
            wait = syncs[key][0] if syncs[key] else None
            event = recorded.get((pid_of(call), wait["eventId"])) if wait else None
            done = [pair for pair in pending[thread] if _covers(wait, event, pair[0], pair[1]["start"])]
            pending[thread] = [pair for pair in pending[thread] if pair not in done]
            for _, copying in done[:-1]:
                add(copying)
            add(*(copying for _, copying in done[-1:]), call)
        elif key in blocking and "Async" not in call["name"]:
            add(call)
        else:
            pending[thread] += [(copy, call) for copy in copies[key] if key in blocking]
    for pairs in pending.values():
        for _, copying in pairs:
            add(copying)
    return found


def idle_costs(tables: Tables) -> dict[tuple[str, int, int], int]:  # noqa: C901, PLR0912, PLR0915 - one loop
    """Give what each wait, allocation and free costs: by "wait" or "allocation", thread and start of its last call.

    All GPUs' gaps are looked at, one by one, together with the calls of the thread that launched the next operation too
    late. A wait costs the part of the gap in which the thread was in it; and if it began before the gap, also what
    comes after it without another cause, at most as long as the wait lasted besides.
    """
    by_thread: dict[int, list[Row]] = defaultdict(list)
    for call in sorted(outer_api_calls(tables), key=lambda call: call["start"]):
        by_thread[call["globalTid"]].append(call)
    starts = {thread: [call["start"] for call in calls] for thread, calls in by_thread.items()}
    ends = {thread: [call["end"] for call in calls] for thread, calls in by_thread.items()}
    overheads: dict[int, list[Interval]] = defaultdict(list)
    for row in profiler_overheads(tables):
        overheads[row["globalTid"]].append((row["start"], row["end"]))
    held_up = {thread: union(times) for thread, times in overheads.items()}
    waits = host_waits(tables)
    waits_of: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for wait in waits:
        waits_of[wait["calls"][0]["globalTid"]].append(wait)
    wait_of = {_call_key(call): wait for wait in waits for call in wait["calls"]}
    blocking = blocking_copies(tables)
    launched, kernels = call_of(tables), Counter((pid_of(row), row["correlationId"]) for row in tables[KERNEL])
    costs: Counter[tuple[str, int, int]] = Counter()

    def key_of(call: Row) -> tuple[str, int, int] | None:
        if _call_key(call) in wait_of:
            last = wait_of[_call_key(call)]["calls"][-1]
            return "wait", last["globalTid"], last["start"]
        is_memory = ALLOCATION.match(call["name"]) or RELEASE.match(call["name"])
        return ("allocation", call["globalTid"], call["start"]) if is_memory else None

    for work in work_of_gpus(tables).values():
        own: Counter[tuple[str, int, int]] = Counter()
        later: list[tuple[dict[str, Any], int]] = []
        work.sort(key=lambda op: (op["start"], op["correlationId"] is None, op["correlationId"] or 0, pid_of(op)))
        reached, before = work[0]["start"], None
        for op in work:
            key = (pid_of(op), op["correlationId"])
            launch = launched.get(key) if op["correlationId"] is not None else None
            start, end = reached, op["start"]
            same = before is not None and key == (pid_of(before), before["correlationId"]) and launch is not None
            reached, before = max(reached, op["start"], op["end"]), op
            if end <= start or launch is None or same:
                continue
            if launch["start"] < start:
                cause = key_of(launch)
                if launch["end"] > start and cause and blocking.get(key):  # in time, but in a copy into pageable memory
                    own[cause] += end - start
                continue
            thread = launch["globalTid"]

            def free(a: int, b: int, thread: int = thread) -> int:
                """How much of an interval the profiler leaves."""
                return max(0, b - a) - sum(max(0, min(b, y) - max(a, x)) for x, y in held_up.get(thread, ()))

            straddling = [wait for wait in waits_of[thread] if wait["start"] <= start <= wait["end"] < end]
            dry = max(straddling, key=lambda wait: wait["end"], default=None)
            since = dry["end"] if dry else end
            starved = free(since, end)
            calls = by_thread[thread]  # of one thread no call begins inside another
            for call in calls[bisect_right(ends[thread], start) : bisect_left(starts[thread], end)]:
                a, b = max(call["start"], start), min(call["end"], end)
                if (
                    a >= b or call["start"] > launch["start"]
                ):  # then the operation is on its way, whatever the thread does
                    continue
                cause = key_of(call)
                if cause:
                    own[cause] += free(a, b)
                    starved -= free(max(a, since), b) if b > since else 0
                elif GRAPH_LAUNCH.match(call["name"]) and call["start"] == launch["start"] and b > since:
                    starved -= min(500 * kernels[key], free(a, b))
            if dry:
                later.append((dry, starved))
        costs.update(own)
        for wait, starved in later:
            last = wait["calls"][-1]
            name = ("wait", last["globalTid"], last["start"])
            costs[name] += min(starved, max(0, sum(map(duration, wait["calls"])) - own[name]))
    return {name: ns for name, ns in costs.items() if ns}


def _call_key(call: Row) -> tuple[int, int]:
    return call["globalTid"], call["start"]
