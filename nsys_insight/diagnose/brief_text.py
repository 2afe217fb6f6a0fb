"""The page of a brief as text: lines with priorities, of which those are chosen that fit into the budget."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.diagnose import text as diagnosis_text
from nsys_insight.diagnose.findings import FRAMEWORKS
from nsys_insight.text import units
from nsys_insight.text.cells import ELLIPSIS, printable
from nsys_insight.text.operation_names import shorten_operation
from nsys_insight.text.units import time_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_insight.diagnose.brief import Brief, Rows
    from nsys_insight.diagnose.findings import DiagnosisResult, Finding

BUDGET, BUDGET_OF_SEVERAL = 2_000, 2_600
_LINE_CHARS = 320  # of a line about the program or the step
_FINDING_CHARS, _RELATED_CHARS = 210, 150
_NAME_CHARS, _NEST_NAME_CHARS = 52, 32
_MAX_NEST_PARTS = 5  # a level of the nest with more parts shows the number of its operations
_MAX_NVTX_NAMES, _MAX_NVTX_LEVELS = 5, 4
_MAX_COLLECTIVES = 4
_MAX_RANKS = 8
# From these on, a kernel's resources are unusual: more shared memory than a block has without opting in, so many
# registers that a quarter of the warps fit, and few resident warps.
_MUCH_SHARED_BYTES, _MANY_REGISTERS, _LOW_OCCUPANCY_PCT = 48 * 1024 + 1, 128, 25.0
# Families whose kernels are written to use as much as they can get.
_HEAVY_FAMILIES = ("gemm", "attention")
_REMAINDER_CHARS = 70
_LAUNCH_GROUPS = ("launch", "graph launch")
# Words for what a trace does not have, by the metric in `info`.
_MISSING = {
    "kernels": "kernels", "graph_kernels": "kernels in graphs", "nvtx_ranges": "NVTX", "memory_events": "memory use",
    "gpu_metric_samples": "GPU metrics", "os_calls": "OS calls", "unimportant_api_calls": "minor API calls",
}  # fmt: skip


class _Line(NamedTuple):
    """A line of the page; lines of a low priority (a high number) are left out first."""

    priority: float
    text: str


class _Operation(NamedTuple):
    """The executions of one name and memory kind in a step, of all grids."""

    name: str
    calls: float
    time_ns: float
    idle_ns: float
    row: dict[str, Any]
    grids: int


def write_brief(brief: Brief, budget: int | None = None) -> str:
    """Write a brief in at most `budget` characters, of which the most important lines use the most.

    Without a budget, it is 2,000 characters, and 2,600 for several ranks or GPUs.
    """
    budget = budget or (BUDGET_OF_SEVERAL if brief.devices or brief.ranks else BUDGET)
    operations = _merge_operations(brief.operations)
    lines = [
        *_describe_program(brief),
        *_describe_steps(brief),
        *_describe_time(brief),
        *_describe_ranks(brief),
        *_list_operations(brief, operations),
        *_list_calls(brief),
        *_list_ranges(brief),
        *_list_collectives(brief),
        *_list_findings(brief.diagnosis),
    ]
    chosen = _choose_lines(lines, budget)
    return "".join(f"{line.text}\n" for index, line in enumerate(lines) if index in chosen)


def _choose_lines(lines: Sequence[_Line], budget: int) -> set[int]:
    """Choose lines by priority while they fit. A line that does not fit is left out; shorter ones may follow."""
    chosen: set[int] = set()
    for index, line in sorted(enumerate(lines), key=lambda item: (item[1].priority, item[0])):
        if len(line.text) < budget:
            chosen.add(index)
            budget -= len(line.text) + 1
    return chosen


def _per_unit(diagnosis: DiagnosisResult) -> str:
    """Return what counts refer to: "of one step", or "of the whole trace"."""
    if diagnosis.unit == "trace":
        return "of the whole scope" if diagnosis.trace["scope"] else "of the whole trace"
    return f"of one {diagnosis.unit}"


def _describe_program(brief: Brief) -> Iterator[_Line]:
    diagnosis, info = brief.diagnosis, brief.info
    details = {row["metric"]: row["detail"] for row in reversed(info) if row["section"] == "capture"}
    processes = [row["detail"] for row in info if row["metric"] == "gpu_time_ns"]
    gpus = [(row["detail"] or "").partition(": ")[2] for row in info if row["metric"] == "gpu_busy_pct"]
    missing = [_MISSING.get(row["metric"], row["metric"]) for row in info if row["section"] == "missing"]
    framework = FRAMEWORKS.get(diagnosis.framework, diagnosis.framework)
    command = _fit(details.get("command") or "", 90)
    threads = brief.program["launch_threads"]
    parts = [
        f"{framework}{': ' + command if command else ''}",
        *(f"{count} × {gpu}" if count > 1 else gpu for gpu, count in _count(gpus) if gpu),
        processes[0] if len(processes) == 1 else f"{len(processes)} processes",
        _count_noun(threads, "thread launches", "threads launch") if threads else "no launch calls",
        "nsys " + re.sub(r",.*", "", details["nsys_version"]) if details.get("nsys_version") else "",
    ]
    first, *other_lines = diagnosis_text.write_headline(diagnosis)[: 2 if diagnosis.run else 1]
    yield _Line(0, _fit(first, _LINE_CHARS))
    yield from (_Line(0, _fit(line, _LINE_CHARS)) for line in other_lines)
    yield _Line(1, _fit(f"program: {', '.join(filter(None, parts))}", _LINE_CHARS + 40))
    if missing:
        yield _Line(4, f"not recorded: {', '.join(missing)}")
    warnings = [row for row in info if row["metric"] == "errors" and row["detail"]]
    yield from (_Line(3, _fit(f"capture error: {row['detail']}", 160)) for row in warnings[:1])


def _count(names: Sequence[str]) -> list[tuple[str, int]]:
    return [(name, names.count(name)) for name in dict.fromkeys(names)]


def _describe_steps(brief: Brief) -> Iterator[_Line]:
    diagnosis = brief.diagnosis
    if diagnosis.wall_ns is None:
        yield _Line(0, diagnosis_text.describe_status(diagnosis))
        return
    sentences = diagnosis_text.describe_costs(diagnosis)[2:]
    nest = _write_nest(brief.loops)
    yield _Line(1, _fit(f"step: {sentences[0]}", 200))
    if nest:
        yield _Line(2, _fit(f"nest: {nest}", 260))
    yield from (_Line(4, _fit(sentence, 220)) for sentence in sentences[1:])


def _write_nest(rows: Rows) -> str:
    """Write the loops around the step in one line: 46 × [12 operations, 8 × [41 operations], D2H copy]."""
    bodies = {loop: list(group) for loop, group in groupby(rows, key=lambda row: row["loop"])}
    if not bodies:
        return ""
    root = min(bodies, key=len)
    return f"{bodies[root][0]['iterations']:,} × {_write_body(root, bodies)}"


def _write_body(loop: str, bodies: dict[str, Rows]) -> str:
    parts: list[tuple[str, int]] = []  # names of operations with their number, and inner loops with 0
    for row in bodies.get(loop, ()):
        if row["inner_loop"] is not None:
            parts.append((f"{row['repeats']:,} × {_write_body(row['inner_loop'], bodies)}", 0))
            continue
        name = shorten_operation(row["name"] or row["label"] or row["kind"], row["provenance"], _NEST_NAME_CHARS)
        if parts and parts[-1][1] and parts[-1][0] == name:
            parts[-1] = (name, parts[-1][1] + row["repeats"])
        else:
            parts.append((name, row["repeats"]))
    if len(parts) > _MAX_NEST_PARTS:
        parts = [_sum_parts(list(group)) for _, group in groupby(parts, key=lambda part: bool(part[1]))]
    return f"[{', '.join(name if count <= 1 else f'{count:,} × {name}' for name, count in parts)}]"


def _sum_parts(parts: list[tuple[str, int]]) -> tuple[str, int]:
    """Sum neighboring operations of a body; inner loops stay, in one text."""
    if not parts[0][1]:
        return ", ".join(name for name, _ in parts), 0
    if len(parts) == 1:
        return parts[0]
    return f"{sum(count for _, count in parts):,} operations", 0


def _describe_time(brief: Brief) -> Iterator[_Line]:
    diagnosis = brief.diagnosis
    if not diagnosis.shares:
        return
    host = [
        f"{row['bottleneck']} {row['wall_pct']:.1f}%"
        for row in brief.host
        if row["wall_pct"] is not None and row["wall_pct"] >= 1
    ]
    devices = ", ".join(f"GPU {row['gpu_id']} {_pct(row['busy_pct'])}" for row in brief.devices)
    yield _Line(1, diagnosis_text.describe_shares(diagnosis.shares) + (f"; busy by GPU: {devices}" if devices else ""))
    if host:
        yield _Line(2, f"idle by what the host does: {', '.join(host[:4])}")


def _describe_ranks(brief: Brief) -> Iterator[_Line]:
    if not brief.ranks:
        return
    yield _Line(1, "means of a step by rank: step, busy, waiting for others, transfer, idle, host")
    for row in brief.ranks[:_MAX_RANKS]:
        times = ", ".join(
            time_text(row[f"{name}_ns"]) if row[f"{name}_ns"] is not None else "unknown"
            for name in ("step", "busy", "waiting", "transfer", "idle", "host")
        )
        late = f", late in {row['late_steps']} steps" if row["late_steps"] else ""
        yield _Line(2, f"rank {row['rank']}: {times}{late}")
    if len(brief.ranks) > _MAX_RANKS:
        yield _Line(2, f"{len(brief.ranks) - _MAX_RANKS} more ranks: nsys-insight ranks")


def _merge_operations(rows: Rows) -> list[_Operation]:
    """Merge rows with the same short name, memories and size into one; the first row has the most time."""
    merged: dict[tuple[Any, ...], _Operation] = {}
    for row in rows:
        name = shorten_operation(row["name"], row["provenance"], _NAME_CHARS)
        key = (name, row["source_memory"], row["target_memory"], None if row["grid"] else row["size_bytes"])
        other = merged.get(key)
        numbers = (row["calls"], row["time_ns"], row["idle_before_ns"])
        if other is None:
            merged[key] = _Operation(name, *numbers, row, 1)
        else:
            sums = (a + b for a, b in zip(numbers, (other.calls, other.time_ns, other.idle_ns), strict=True))
            merged[key] = _Operation(name, *sums, other.row, other.grids + 1)
    return sorted(merged.values(), key=lambda operation: (-operation.time_ns, -operation.calls, operation.name))


def _list_operations(brief: Brief, operations: list[_Operation]) -> Iterator[_Line]:
    if not operations:
        return
    total_ns, total_calls = (sum(values) for values in zip(*((o.time_ns, o.calls) for o in operations), strict=True))
    kinds = {
        kind: sum(row["calls"] for row in brief.operations if row["kind"] == kind)
        for kind in ("kernel", "copy", "memset", "graph")
    }
    words = {"kernel": "kernels", "copy": "copies", "memset": "memsets", "graph": "graphs"}
    counts = ", ".join(f"{_number(count)} {words[kind]}" for kind, count in kinds.items() if count)
    yield _Line(
        1,
        f"operations {_per_unit(brief.diagnosis)}: {counts}, {time_text(total_ns)} in total. Each: count × mean, share "
        "of that, GPU idle before it, name, grid × block",
    )
    all_devices, all_streams = (
        list(dict.fromkeys(part for row in brief.operations for part in (row[name] or "").split(", ")))
        for name in ("devices", "streams")
    )
    by_count = sorted(operations, key=lambda operation: -operation.calls)
    frequent = {operation.name for operation in by_count[:3] if operation.calls >= 0.05 * total_calls}
    for rank, operation in enumerate(operations):
        priority = 2 if rank < 3 else 3 if rank < 5 or operation.name in frequent else 4.5 + rank / 100
        yield _Line(
            priority,
            f" {_describe_operation(operation, total_ns, len(all_devices), len(all_streams))}",
        )


def _describe_operation(operation: _Operation, total_ns: float, devices: int, streams: int) -> str:
    row = operation.row
    share = 100 * operation.time_ns / total_ns if total_ns else 0
    parts = [
        f"{_number(operation.calls)} × {time_text(operation.time_ns / operation.calls)}",
        _pct(share),
        f"idle {time_text(operation.idle_ns)}" if operation.idle_ns >= 500 else "",
        operation.name,
        *(_describe_kernel(operation) if row["kind"] == "kernel" else _describe_bytes(row)),
    ]
    if devices > 1 and row["devices"] and len(row["devices"].split(", ")) < devices:
        parts.append(f"GPU {row['devices']}")
    if streams > 1 and row["streams"] and len(row["streams"].split(", ")) < streams:
        parts.append(f"stream {row['streams']}")
    return ", ".join(filter(None, parts))


def _describe_kernel(operation: _Operation) -> Iterator[str]:
    row = operation.row
    if row["grid"] and row["block"]:
        others = f" (1 of {operation.grids} shapes)" if operation.grids > 1 else ""
        yield f"{_dims(row['grid'])} × {_dims(row['block'])}{others}"
    is_unusual = False
    if (row["shared_bytes"] or 0) >= _MUCH_SHARED_BYTES:
        yield f"{_bytes(row['shared_bytes'])} shared memory per block"
        is_unusual = True
    if (row["registers_per_thread"] or 0) >= _MANY_REGISTERS and row["family"] not in _HEAVY_FAMILIES:
        yield f"{row['registers_per_thread']} registers"
        is_unusual = True
    if row["local_bytes"]:
        yield f"{_bytes(row['local_bytes'])} local memory per thread"
    occupancy = row["occupancy_pct"]
    is_low = occupancy is not None and occupancy <= _LOW_OCCUPANCY_PCT
    if is_low and is_unusual and row["family"] not in _HEAVY_FAMILIES:
        yield f"occupancy {_pct(occupancy)}"


def _describe_bytes(row: dict[str, Any]) -> Iterator[str]:
    memories = " → ".join(filter(None, (row["source_memory"], row["target_memory"])))
    size = _bytes(row["size_bytes"]) if row["size_bytes"] is not None else ""
    yield " ".join(filter(None, (size, memories)))
    if row["bandwidth_bytes_per_s"]:
        yield units.add_unit(units.value("bytes_per_s", row["bandwidth_bytes_per_s"]), "")


def _list_calls(brief: Brief) -> Iterator[_Line]:
    launches = [row for row in brief.calls if row["call_group"] in _LAUNCH_GROUPS]
    others = [row for row in brief.calls if row["call_group"] not in _LAUNCH_GROUPS]
    if not brief.calls:
        return
    launch_text = ", ".join(
        f"{_number(row['calls'])} × {row['name']} {time_text(row['avg_ns'])}" for row in launches[:3]
    )
    yield _Line(2, f"API calls {_per_unit(brief.diagnosis)}, count × mean, max: {launch_text or 'no launch calls'}")
    waits = [row for row in others if row["waits_for"]]
    ordered = [*waits, *(row for row in others if not row["waits_for"])]
    for rank, row in enumerate(ordered):
        priority = 3 if rank < 3 else 5 + rank / 100
        waits_for = ""
        if row["waits_for"]:
            size = f" of {_bytes(row['copy_bytes'])}" if row["copy_bytes"] is not None else ""
            waits_for = f", waits for {row['waits_for']}{size}"
        yield _Line(
            priority,
            f" {_number(row['calls'])} × {row['name']} {time_text(row['avg_ns'])}, max {time_text(row['max_ns'])}"
            f"{waits_for}",
        )


def _list_ranges(brief: Brief) -> Iterator[_Line]:
    levels = [
        (depth, list(rows)) for depth, rows in groupby(brief.nvtx, key=lambda row: row["depth"]) if depth is not None
    ]
    for depth, rows in levels[:_MAX_NVTX_LEVELS]:
        names = ", ".join(
            f"{_fit(row['name'] or '(no name)', 40)} ×{row['calls']:,}"
            + (f" {time_text(row['avg_ns'])}" if row["avg_ns"] is not None else "")
            for row in rows[:_MAX_NVTX_NAMES]
        )
        more = f", {len(rows) - _MAX_NVTX_NAMES} more" if len(rows) > _MAX_NVTX_NAMES else ""
        yield _Line(3.5 + depth / 10, _fit(f"NVTX level {depth}: {names}{more}", 220))


def _list_collectives(brief: Brief) -> Iterator[_Line]:
    rows = brief.collectives
    if rows:
        texts = [
            f"{_number(row['calls'])} × {row['operation'] or 'unknown'}"
            + (f" {_bytes(row['bytes'])}" if row["bytes"] is not None else "")
            + f" {time_text(row['avg_ns'])}"
            for row in rows[:_MAX_COLLECTIVES]
        ]
        more = f", {len(rows) - _MAX_COLLECTIVES} more" if len(rows) > _MAX_COLLECTIVES else ""
        yield _Line(3.5, f"collectives {_per_unit(brief.diagnosis)}: {', '.join(texts)}{more}")


def _list_findings(diagnosis: DiagnosisResult) -> Iterator[_Line]:
    status = diagnosis_text.describe_status(diagnosis) if diagnosis.wall_ns is not None else ""
    if status:
        yield _Line(2, _fit(status, 200))
    for rank, finding in enumerate(diagnosis.findings):
        yield _Line(2 if rank == 0 else 3.2 + rank, _describe_finding(finding, diagnosis, _FINDING_CHARS))
        for place, also in enumerate(finding.also):
            yield _Line(3.8 + rank + place / 10, f" also {_describe_finding(also, diagnosis, _RELATED_CHARS)}")


def _describe_finding(finding: Finding, diagnosis: DiagnosisResult, width: int) -> str:
    saving = diagnosis_text.describe_saving(finding, diagnosis.unit)
    return _fit(f"{finding.code} {finding.title}{', ' + saving if saving else ''}: {finding.action}", width)


def _fit(text: str, width: int) -> str:
    """Cut a text at a word, so that it has at most `width` characters."""
    line = printable(text)
    if len(line) <= width:
        return line
    return line[: width - 1].rpartition(" ")[0].rstrip(",;:") + ELLIPSIS


def _dims(text: str) -> str:
    """Write a grid or block without its dimensions of 1 at the end: 132x1x1 is 132."""
    return re.sub(r"(?<=\d)(?:x1){1,2}$", "", text)


def _number(count: float) -> str:
    """Write a count: 196; 0.11; 2.5."""
    if abs(count - round(count)) < 0.005 * max(count, 1) and count >= 0.95:
        return f"{round(count):,}"
    return f"{count:,.1f}" if count >= 0.95 else f"{count:.2g}"


def _pct(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.3g}%" if share >= 0.1 else "<0.1%"


def _bytes(size: float) -> str:
    return units.value("bytes", size)


def _count_noun(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"

