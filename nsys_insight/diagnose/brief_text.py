"""A brief as text: each line has a priority, and the page has the lines that fit into its budget."""

from __future__ import annotations

import re
from io import StringIO
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.diagnose import text as diagnosis_text
from nsys_insight.diagnose.findings import ANY, FRAMEWORKS
from nsys_insight.render import table
from nsys_insight.session.answer import Column, build_answer
from nsys_insight.text import units
from nsys_insight.text.cells import ELLIPSIS, printable, wrap
from nsys_insight.text.operation_names import shorten_operation
from nsys_insight.text.units import time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsys_insight.diagnose.brief import Brief, Rows
    from nsys_insight.diagnose.findings import DiagnosisResult, Finding
    from nsys_insight.session.answer import Answer

_TIMES = "\N{MULTIPLICATION SIGN}"
BUDGET, BUDGET_OF_SEVERAL = 2_000, 2_600
DIAGNOSIS_BUDGET = 3_000
_LINE_CHARS = 320  # of a line about the program or the step
_FINDING_CHARS, _RELATED_CHARS = 210, 150
_NAME_CHARS, _NEST_NAME_CHARS = 52, 32
_MAX_NEST_PARTS = 5  # a level of the nest with more parts shows the number of its operations
_MAX_NVTX_NAMES, _MAX_NVTX_LEVELS = 5, 4
_MAX_COLLECTIVES = 4
_MAX_RANKS = 8
# From these on, a kernel's resources are unusual: more shared memory than a block has without opting in, registers
# for which at most a quarter of the warps fit, and few resident warps.
_MUCH_SHARED_BYTES, _MANY_REGISTERS, _LOW_OCCUPANCY_PCT = 48 * 1024 + 1, 128, 25.0
# Families whose kernels are written to use as much as they can get.
_HEAVY_FAMILIES = ("gemm", "attention", "comm")
# Families that show what a loop does.
_TELLING_FAMILIES = ("attention", "comm", "sort/topk", "softmax", "norm")
_REMAINDER_CHARS = 90  # reserved for the line about operations that do not fit
_MIN_IDLE_NS = 500  # less idle time before an operation than this is not shown
_MANY_SHARE = 0.05  # an operation with this share of the executions or of the idle time is shown, even if it is short
_MAX_FAMILIES = 6
_BIG_COPY_BYTES = 64 * 1024  # smaller and larger copies are listed apart
# Calls that do not belong into a step, even if they are few.
_RARE_GROUPS = ("alloc", "free")
_LOADING_CALL = re.compile(r"cu(?:da)?(?:Library|Module)Load|cuLink")
_MIN_CALL_NS = 1_000  # shorter calls that do not wait are not listed
# Rows of the report host whose idle time is in other rows as well.
_REPEATED_CODES = ("pageable_copy", "blocking_memset")
_MAX_FIRST_CALLS = 4
_LAUNCH_GROUPS = ("launch", "graph launch")
# The tables for people: the columns of the reports, with merged rows.
_MAX_TABLE_ROWS = 12
_OPERATION_COLUMNS = (
    Column("calls", "DOUBLE", "Executions per step", position=0),
    Column("avg_ns", "DOUBLE", "Mean duration", position=1),
    Column(
        "gpu_pct", "DOUBLE", "Share of the time of all operations", position=2, share_of="the time of all operations"
    ),
    Column("idle_before_ns", "DOUBLE", "GPU idle time before it per step", position=3),
    Column("name", "VARCHAR", "The operation", position=4),
    Column("details", "VARCHAR", "Grid and block, or bytes and memories", position=5),
)
_CALL_COLUMNS = (
    Column("calls", "DOUBLE", "Calls per step", position=0),
    Column("avg_ns", "DOUBLE", "Mean duration", position=1),
    Column("max_ns", "DOUBLE", "Longest", position=2),
    Column("call", "VARCHAR", "The function", position=3),
    Column("waits_for", "VARCHAR", "What the call waits for", position=4),
    Column("copy_bytes", "DOUBLE", "Bytes of the copies that it waits for", position=5),
)
# Words for what a trace does not have, by the metric in `info`.
_MISSING = {
    "kernels": "kernels", "graph_kernels": "kernels in graphs", "nvtx_ranges": "NVTX", "memory_events": "memory use",
    "gpu_metric_samples": "GPU metrics", "os_calls": "OS calls", "unimportant_api_calls": "minor API calls",
}  # fmt: skip


class _Line(NamedTuple):
    """A line of the page; lines of a low priority (a high number) are left out first."""

    priority: float
    text: str
    operation: _Operation | None = None


class _Part(NamedTuple):
    """A part of a loop's body: an operation with its number and what is telling about it, or a loop with 0."""

    text: str
    calls: int
    mark: str


class _Operation(NamedTuple):
    """The executions of one name and memory kind in a step, of all grids."""

    name: str
    calls: float
    time_ns: float
    idle_ns: float
    row: dict[str, Any]
    grids: int
    sizes: tuple[float, float] | None


def write_brief(brief: Brief, budget: int | None = None) -> str:
    """Write a brief in at most `budget` characters: the most important lines that fit.

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
        _Line(9, ""),  # the place of the line about other operations
        *_list_calls(brief),
        *_list_ranges(brief),
        *_list_collectives(brief),
        *_list_findings(brief.diagnosis),
    ]
    chosen_lines = _choose_lines(lines, budget - _REMAINDER_CHARS)
    hidden_operations = [
        line.operation for index, line in enumerate(lines) if line.operation is not None and index not in chosen_lines
    ]
    texts = [
        line.text or _describe_rest(hidden_operations)
        for index, line in enumerate(lines)
        if index in chosen_lines or not line.text
    ]
    return "".join(f"{text}\n" for text in texts if text)


def write_short_diagnosis(diagnosis: DiagnosisResult, budget: int = DIAGNOSIS_BUDGET) -> str:
    """Write a diagnosis for a coding agent in at most `budget` characters: its headline, and findings by their rank."""
    lines = [_Line(0, _fit(text, _LINE_CHARS)) for text in diagnosis_text.write_headline(diagnosis)]
    if status := diagnosis_text.describe_status(diagnosis):
        lines.append(_Line(0, _fit(status, _LINE_CHARS)))
    for rank, finding in enumerate(diagnosis.findings, 1):
        saving = diagnosis_text.describe_saving(finding, diagnosis.unit)
        title = f"{rank}. {finding.severity} {finding.code} {finding.title}{', ' + saving if saving else ''}"
        place = f" [{finding.place}]" if finding.place else ""
        lines += [
            _Line(rank, title),
            _Line(rank + 0.1, _fit(f" evidence: {finding.evidence}{place}", 420)),
            _Line(rank, _fit(f" fix: {finding.action}", 300)),
            _Line(rank + 0.2, _fit(f" skip {diagnosis_text.write_caveat(finding)}", 160)),
            _Line(rank + 0.3, f" more: nsys-insight {finding.report}"),
        ]
        lines += [
            _Line(rank + 0.4 + place_of / 10, f" also {_describe_finding(also, diagnosis, 240)}")
            for place_of, also in enumerate(finding.also)
        ]
    if diagnosis.unassessed:
        subjects = "; ".join(f"{question.subject} ({question.remedy})" for question in diagnosis.unassessed)
        lines.append(_Line(4, _fit(f"not recorded: {subjects}", _LINE_CHARS)))
    chosen_lines = _choose_lines(lines, budget)
    return "".join(f"{line.text}\n" for index, line in enumerate(lines) if index in chosen_lines)


def write_page(brief: Brief, width: int) -> str:
    """Write a brief for people: the same content, with operations and calls as tables, in lines of `width` cells."""
    head = [
        *_describe_program(brief),
        *_describe_steps(brief),
        *_describe_time(brief),
        *_describe_ranks(brief),
    ]
    tables = [_build_operation_table(brief), _build_call_table(brief)]
    tail = [*_list_ranges(brief), *_list_collectives(brief)], list(_list_findings(brief.diagnosis))
    if meaning := diagnosis_text.explain_verdict(brief.diagnosis):
        head.insert(2 if brief.diagnosis.run else 1, _Line(1, meaning))
    lines = [text for line in head for text in wrap(line.text, width)]
    for answer in tables:
        if answer.row_count:
            stream = StringIO()
            table.write(table.build_lines(answer, _MAX_TABLE_ROWS, width, full_names=False), stream, color=False)
            lines += ["", *stream.getvalue().splitlines()]
    for section in tail:
        if section:
            lines += ["", *(text for line in section for text in wrap(line.text, width))]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _build_operation_table(brief: Brief) -> Answer:
    operations = _merge_operations(brief.operations)
    total_ns = sum(operation.time_ns for operation in operations)
    important, notable = _choose_operations(operations)
    ordered = [*important, *notable, *(o for o in operations if o not in important and o not in notable)]
    shown_operations = ordered[:_MAX_TABLE_ROWS]
    devices = len({part for row in brief.operations for part in (row["devices"] or "").split(", ")})
    main_stream = _find_main_stream(brief.operations)
    rows = [
        [
            operation.calls, operation.time_ns / operation.calls, 100 * operation.time_ns / max(total_ns, 1),
            operation.idle_ns, operation.name, _describe_details(operation, devices, main_stream),
        ]
        for operation in operations if operation in shown_operations
    ]  # fmt: skip
    hidden = (
        f"; {len(operations) - len(shown_operations)} more names: step-operations"
        if len(shown_operations) < len(operations)
        else ""
    )
    title = f"Operations {_per_unit(brief.diagnosis)} ({time_text(total_ns)}{hidden})"
    return build_answer(_OPERATION_COLUMNS, rows, report="step-operations", title=title)


def _build_call_table(brief: Brief) -> Answer:
    rows = [
        [row["calls"], row["avg_ns"], row["max_ns"], row["name"], row["waits_for"], row["copy_bytes"]]
        for row in brief.calls
        if row["avg_ns"] >= _MIN_CALL_NS or row["waits_for"]
    ]
    return build_answer(_CALL_COLUMNS, rows, report="step-calls", title=f"API calls {_per_unit(brief.diagnosis)}")


def _choose_lines(lines: Sequence[_Line], budget: int) -> set[int]:
    """Choose lines by priority while they fit. A line that does not fit is left out; shorter ones may follow."""
    chosen_lines: set[int] = set()
    for index, line in sorted(enumerate(lines), key=lambda item: (item[1].priority, item[0])):
        if len(line.text) < budget:
            chosen_lines.add(index)
            budget -= len(line.text) + 1
    return chosen_lines


def _describe_rest(operations: Sequence[_Operation]) -> str:
    """Describe the operations that are not listed."""
    if not operations:
        return ""
    calls, time_ns = sum(o.calls for o in operations), sum(o.time_ns for o in operations)
    names = _count_noun(len(operations), "name", "names")
    return f" {names} more, {_number(calls)} {_TIMES} {time_text(time_ns / calls)} (nsys-insight step-operations)"


def _per_unit(diagnosis: DiagnosisResult) -> str:
    """Return what counts refer to: "of one step", or "of the entire trace"."""
    if diagnosis.unit == "trace":
        return "of the entire scope" if diagnosis.trace["scope"] else "of the entire trace"
    return f"of one {diagnosis.unit}"


def _describe_program(brief: Brief) -> Iterator[_Line]:
    diagnosis, info = brief.diagnosis, brief.info
    details = {row["metric"]: row["detail"] for row in reversed(info) if row["section"] == "capture"}
    processes = [row["detail"] for row in info if row["metric"] == "gpu_time_ns"]
    program = brief.program
    gpus = [
        (row["detail"] or "").partition(": ")[2].partition(", compute capability")[0]
        for row in info
        if row["metric"] == "gpu_busy_pct"
    ]
    missing = [str(_MISSING.get(row["metric"], row["metric"])) for row in info if row["section"] == "missing"]
    framework = "" if diagnosis.framework == ANY else FRAMEWORKS.get(diagnosis.framework, diagnosis.framework)
    command = _fit(details.get("command") or "", 90)
    # Of one process, its name: 353 ./app: 8,087 API calls on 1 thread.
    process = processes[0].partition(": ")[0].partition(" ")[2] if len(processes) == 1 else ""
    parts: list[str] = [
        ": ".join(text for text in (framework, command) if text),
        *(f"{count} {_TIMES} {gpu}" if count > 1 else gpu for gpu, count in _count(gpus) if gpu),
        _count_noun(program["processes"], "process", "processes") + (f" ({_fit(process, 30)})" if process else ""),
        _describe_threads(program),
        f"nsys {details['nsys_version'].partition(',')[0]}" if details.get("nsys_version") else "",
    ]
    first, *other_lines = diagnosis_text.write_headline(diagnosis)[: 2 if diagnosis.run else 1]
    yield _Line(0, _fit(first, _LINE_CHARS))
    yield from (_Line(0, _fit(line, _LINE_CHARS)) for line in other_lines)
    yield _Line(1, _fit(f"program: {', '.join(part for part in parts if part)}", _LINE_CHARS + 40))
    if missing:
        yield _Line(4, f"not recorded: {', '.join(missing)}")
    warnings = [row for row in info if row["metric"] == "errors" and row["detail"]]
    yield from (_Line(3, _fit(f"capture error: {row['detail']}", 160)) for row in warnings[:1])


def _describe_threads(program: dict[str, Any]) -> str:
    """Say how many threads launch, of those that call CUDA."""
    launching = program["launch_threads"]
    if not program["threads"]:
        return ""
    total = f" of {program['threads']:,}" if launching != program["threads"] else ""
    return f"{launching:,}{total} {'thread launches' if launching == 1 else 'threads launch'}"


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
    """Write the loops around the step in one line: 46 x [12 operations, 8 x [41 operations], D2H copy]."""
    bodies = {loop: list(group) for loop, group in groupby(rows, key=lambda row: row["loop"])}
    if not bodies:
        return ""
    root = min(bodies, key=len)
    return f"{bodies[root][0]['iterations']:,} {_TIMES} {_write_body(root, bodies)}"


def _write_body(loop: str, bodies: dict[str, Rows]) -> str:
    """Write what an iteration of a loop runs. Neighboring operations are summed if there are many."""
    parts: list[_Part] = []
    for row in bodies.get(loop, ()):
        if row["inner_loop"] is not None:
            parts.append(_Part(f"{row['repeats']:,} {_TIMES} {_write_body(row['inner_loop'], bodies)}", 0, ""))
            continue
        name = shorten_operation(row["name"] or row["label"] or row["kind"], row["provenance"], _NEST_NAME_CHARS)
        mark = row["label"] if row["kind"] == "copy" else row["family"] if row["family"] in _TELLING_FAMILIES else ""
        if parts and parts[-1].calls and parts[-1].text == name:
            parts[-1] = parts[-1]._replace(calls=parts[-1].calls + row["repeats"])
        else:
            parts.append(_Part(name, row["repeats"], mark or ""))
    if len(parts) > _MAX_NEST_PARTS:
        groups = [list(group) for _, group in groupby(parts, key=lambda part: part.calls > 0)]
        return f"[{', '.join(text for group in groups for text in _sum_parts(group))}]"
    return f"[{', '.join(map(_write_part, parts))}]"


def _write_part(part: _Part) -> str:
    return part.text if part.calls <= 1 else f"{part.calls:,} {_TIMES} {part.text}"


def _sum_parts(parts: list[_Part]) -> Iterator[str]:
    """Write neighboring operations as their number and what is telling among them. Inner loops stay."""
    if not parts[0].calls or len(parts) == 1:
        yield from map(_write_part, parts)
        return
    marks = ", ".join(dict.fromkeys(part.mark for part in parts if part.mark))
    yield f"{sum(part.calls for part in parts):,} operations{f' with {marks}' if marks else ''}"


def _describe_time(brief: Brief) -> Iterator[_Line]:
    diagnosis = brief.diagnosis
    if not diagnosis.shares:
        return
    host = [
        f"{row['bottleneck']} {row['wall_pct']:.1f}%"
        for row in brief.host
        if row["code"] not in _REPEATED_CODES and row["wall_pct"] is not None and row["wall_pct"] >= 1
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
    """Merge rows with the same short name and memories into one; the first row has the most time."""
    merged: dict[tuple[Any, ...], _Operation] = {}
    for row in rows:
        name = shorten_operation(row["name"], row["provenance"], _NAME_CHARS)
        size = row["size_bytes"]
        is_big = size is not None and row["kind"] == "copy" and size >= _BIG_COPY_BYTES
        key = (name, row["source_memory"], row["target_memory"], is_big)
        other = merged.get(key)
        sizes = None if size is None else (size, size)
        if other is None:
            merged[key] = _Operation(name, row["calls"], row["time_ns"], row["idle_before_ns"], row, 1, sizes)
            continue
        merged[key] = other._replace(
            calls=other.calls + row["calls"],
            time_ns=other.time_ns + row["time_ns"],
            idle_ns=other.idle_ns + row["idle_before_ns"],
            grids=other.grids + 1,
            sizes=(min(other.sizes[0], size), max(other.sizes[1], size)) if other.sizes and sizes else other.sizes,
        )
    return sorted(merged.values(), key=lambda operation: (-operation.time_ns, -operation.calls, operation.name))


def _list_operations(brief: Brief, operations: list[_Operation]) -> Iterator[_Line]:
    if not operations:
        return
    total_ns = sum(operation.time_ns for operation in operations)
    counts = {
        kind: sum(row["calls"] for row in brief.operations if row["kind"] == kind)
        for kind in ("kernel", "copy", "memset", "graph")
    }
    devices = {part for row in brief.operations for part in (row["devices"] or "").split(", ")}
    words = {"kernel": "kernels", "copy": "copies", "memset": "memsets", "graph": "graphs"}
    count_text = ", ".join(
        f"{_number(count)} {kind if _number(count) == '1' else words[kind]}" for kind, count in counts.items() if count
    )
    yield _Line(
        1,
        f"operations {_per_unit(brief.diagnosis)}: {count_text}, {time_text(total_ns)}. Lines: count {_TIMES} mean, "
        f"share of this time, GPU idle before it{', all GPUs' if len(devices) > 1 else ''}, name, grid {_TIMES} block",
    )
    families = _sum_families(brief.operations)
    if len(families) > 1:
        texts = (f"{family} {_pct(100 * ns / total_ns)}" for family, ns in families[:_MAX_FAMILIES])
        yield _Line(3.9, f" by family: {', '.join(texts)}")
    main_stream = _find_main_stream(brief.operations)
    important, notable = _choose_operations(operations)
    for rank, operation in enumerate(operations):
        priority = 2 if operation in important else 3 + rank / 100 if operation in notable else 4.5 + rank / 100
        text = _describe_operation(operation, total_ns, len(devices), main_stream)
        yield _Line(priority, f" {text}", operation)


def _choose_operations(operations: Sequence[_Operation]) -> tuple[list[_Operation], list[_Operation]]:
    """Choose the operations that are shown first: by time, by number and by the idle time before them."""
    total_calls, total_idle_ns = sum(o.calls for o in operations), sum(o.idle_ns for o in operations)
    frequent = _take_largest(operations, lambda operation: operation.calls, _MANY_SHARE * total_calls)
    delayed = _take_largest(operations, lambda operation: operation.idle_ns, _MANY_SHARE * total_idle_ns)
    important = [*operations[:3], *delayed[:1], *frequent[:1]]
    return important, [operation for operation in [*operations[:5], *delayed, *frequent] if operation not in important]


def _take_largest(
    operations: Sequence[_Operation], size: Callable[[_Operation], float], min_size: float
) -> list[_Operation]:
    """Return the three operations with the largest size, of those with at least `min_size`."""
    return sorted((o for o in operations if size(o) >= max(min_size, 1e-9)), key=lambda o: -size(o))[:3]


def _sum_families(rows: Rows) -> list[tuple[str, float]]:
    times: dict[str, float] = {}
    for row in rows:
        family = row["family"] or row["kind"]
        times[family] = times.get(family, 0) + row["time_ns"]
    return sorted(times.items(), key=lambda item: (-item[1], item[0]))


def _find_main_stream(rows: Rows) -> str | None:
    """Return the streams of most of the time; None if there is one stream."""
    times: dict[str, float] = {}
    for row in rows:
        times[row["streams"]] = times.get(row["streams"], 0) + row["time_ns"]
    return max(times, key=lambda streams: times[streams]) if len(times) > 1 else None


def _describe_operation(operation: _Operation, total_ns: float, devices: int, main_stream: str | None) -> str:
    share = 100 * operation.time_ns / total_ns if total_ns else 0
    parts = [
        f"{_number(operation.calls)} {_TIMES} {time_text(operation.time_ns / operation.calls)}",
        _pct(share),
        f"idle {time_text(operation.idle_ns)}" if operation.idle_ns >= _MIN_IDLE_NS else "",
        operation.name,
        _describe_details(operation, devices, main_stream),
    ]
    return ", ".join(filter(None, parts))


def _describe_details(operation: _Operation, devices: int, main_stream: str | None) -> str:
    """Describe the shape or the bytes of an operation, and where it runs if it runs elsewhere than the others."""
    row = operation.row
    parts = list(_describe_kernel(operation) if row["kind"] == "kernel" else _describe_bytes(operation))
    if devices > 1 and row["devices"] and len(row["devices"].split(", ")) < devices:
        parts.append(f"GPU {row['devices']}")
    if main_stream is not None and row["streams"] != main_stream:
        parts.append(f"stream {row['streams']}")
    return ", ".join(filter(None, parts))


def _describe_kernel(operation: _Operation) -> Iterator[str]:
    row = operation.row
    if row["grid"] and row["block"]:
        other_shapes = f" and {_count_noun(operation.grids - 1, 'shape', 'shapes')}" if operation.grids > 1 else ""
        yield f"{_dims(row['grid'])} {_TIMES} {_dims(row['block'])}{other_shapes}"
    if row["local_bytes"]:
        yield f"{_bytes(row['local_bytes'])} local memory per thread"
    if row["family"] in _HEAVY_FAMILIES:
        return
    has_much_shared = (row["shared_bytes"] or 0) >= _MUCH_SHARED_BYTES
    has_many_registers = (row["registers_per_thread"] or 0) >= _MANY_REGISTERS
    if has_much_shared:
        yield f"{_bytes(row['shared_bytes'])} shared memory per block"
    if has_many_registers:
        yield f"{row['registers_per_thread']} registers"
    if (has_much_shared or has_many_registers) and (row["occupancy_pct"] or 100) <= _LOW_OCCUPANCY_PCT:
        yield f"occupancy {_pct(row['occupancy_pct'])}"


def _describe_bytes(operation: _Operation) -> Iterator[str]:
    row = operation.row
    memories = " → ".join(filter(None, (row["source_memory"], row["target_memory"])))
    size = ""
    if operation.sizes:
        size = " to ".join(dict.fromkeys(map(_bytes, operation.sizes)))
    yield " ".join(filter(None, (size, memories)))
    if operation.grids == 1 and row["bandwidth_bytes_per_s"] and row["size_bytes"] >= _BIG_COPY_BYTES:
        yield units.value("bytes_per_s", row["bandwidth_bytes_per_s"])


def _list_calls(brief: Brief) -> Iterator[_Line]:
    launches = [row for row in brief.calls if row["call_group"] in _LAUNCH_GROUPS]
    other_calls = [row for row in brief.calls if row["call_group"] not in _LAUNCH_GROUPS]
    if not brief.calls:
        return
    launch_text = ", ".join(
        f"{_number(row['calls'])} {_TIMES} {row['name']} {time_text(row['avg_ns'])}" for row in launches[:3]
    )
    yield _Line(
        2, f"API calls {_per_unit(brief.diagnosis)}, count {_TIMES} mean, max: {launch_text or 'no launch calls'}"
    )
    telling = [row for row in other_calls if row["waits_for"] or _is_rare(row)]
    ordinary = [row for row in other_calls if row not in telling and row["avg_ns"] >= _MIN_CALL_NS]
    for rank, row in enumerate([*telling, *ordinary]):
        waits_for = ""
        if row["waits_for"]:
            size = f" of {_bytes(row['copy_bytes'])}" if row["copy_bytes"] is not None else ""
            waits_for = f", waits for {row['waits_for']}{size}"
        yield _Line(
            3 if rank < _MAX_FIRST_CALLS else 5 + rank / 100,
            f" {_number(row['calls'])} {_TIMES} {row['name']} {time_text(row['avg_ns'])}, "
            f"max {time_text(row['max_ns'])}{waits_for}",
        )


def _is_rare(row: dict[str, Any]) -> bool:
    """Return whether a call does not belong into a step: it allocates, frees or loads code."""
    return row["call_group"] in _RARE_GROUPS or bool(_LOADING_CALL.match(row["name"]))


def _list_ranges(brief: Brief) -> Iterator[_Line]:
    levels = [
        (depth, list(rows)) for depth, rows in groupby(brief.nvtx, key=lambda row: row["depth"]) if depth is not None
    ]
    for depth, rows in levels[:_MAX_NVTX_LEVELS]:
        names = ", ".join(
            f"{_fit(row['name'] or '(no name)', 40)} {_TIMES}{row['calls']:,}"
            + (f" {time_text(row['avg_ns'])}" if row["avg_ns"] is not None else "")
            for row in rows[:_MAX_NVTX_NAMES]
        )
        remainder = f", {len(rows) - _MAX_NVTX_NAMES} more" if len(rows) > _MAX_NVTX_NAMES else ""
        yield _Line(3.5 + depth / 10, _fit(f"NVTX level {depth}: {names}{remainder}", 220))


def _list_collectives(brief: Brief) -> Iterator[_Line]:
    rows = brief.collectives
    if rows:
        texts = [
            f"{_number(row['calls'])} {_TIMES} {row['operation'] or 'unknown'}"
            + (f" {_bytes(row['bytes'])}" if row["bytes"] is not None else "")
            + f" {time_text(row['avg_ns'])}"
            for row in rows[:_MAX_COLLECTIVES]
        ]
        remainder = f", {len(rows) - _MAX_COLLECTIVES} more" if len(rows) > _MAX_COLLECTIVES else ""
        yield _Line(3.5, f"collectives {_per_unit(brief.diagnosis)}: {', '.join(texts)}{remainder}")


def _list_findings(diagnosis: DiagnosisResult) -> Iterator[_Line]:
    status = diagnosis_text.describe_status(diagnosis) if diagnosis.wall_ns is not None else ""
    if status:
        yield _Line(2, _fit(status, 200))
    for rank, finding in enumerate(diagnosis.findings):
        yield _Line(2 if rank == 0 else 3.2 + rank, _describe_finding(finding, diagnosis, _FINDING_CHARS))
        for place, also in enumerate(finding.also):
            # A symptom that takes more time than its finding saves may have a larger cure of its own.
            is_larger = (also.recoverable_ns or 0) > (finding.recoverable_ns or 0)
            priority = 2.9 if is_larger and rank == 0 else 3.8 + rank + place / 10
            yield _Line(priority, f" also {_describe_finding(also, diagnosis, _RELATED_CHARS)}")


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


def _count_noun(count: int, singular: str, plural: str) -> str:
    return f"{count:,} {singular if count == 1 else plural}"
