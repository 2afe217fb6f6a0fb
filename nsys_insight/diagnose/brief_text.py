"""A brief as text: each line has a priority, and the page has the lines that fit into its budget."""

from __future__ import annotations

import re
from io import StringIO
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.diagnose import text as diagnosis_text
from nsys_insight.diagnose.bounded_text import LINE_CHARS, Line, choose_lines, describe_finding, fit
from nsys_insight.diagnose.brief_operations import (
    MAX_TABLE_ROWS,
    MIN_CALL_NS,
    NEST_NAME_CHARS,
    TIMES,
    Operation,
    build_call_table,
    build_operation_table,
    choose_operations,
    describe_operation,
    describe_unit,
    find_main_stream,
    merge_operations,
    number,
    pct,
    size_text,
    sum_families,
)
from nsys_insight.diagnose.findings import ANY, FRAMEWORKS, DiagnosisResult
from nsys_insight.render import table
from nsys_insight.text.cells import wrap
from nsys_insight.text.operation_names import shorten_operation
from nsys_insight.text.units import count_noun, time_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsys_insight.diagnose.brief import Brief, Rows
    from nsys_insight.session.answer import Answer

BUDGET, BUDGET_OF_SEVERAL = 2_000, 2_600
_FINDING_CHARS, _RELATED_CHARS = 210, 150
_MAX_NEST_PARTS = 5  # a level of the nest with more parts shows the number of its operations
_MAX_NVTX_NAMES, _MAX_NVTX_LEVELS = 5, 4
_MAX_COLLECTIVES = 4
_MAX_RANKS = 8
# Families that show what a loop does.
_TELLING_FAMILIES = ("attention", "comm", "sort/topk", "softmax", "norm")
_REMAINDER_CHARS = 90  # reserved for the line about operations that do not fit
_MAX_FAMILIES = 6
# Calls that do not belong into a step, even if they are few.
_RARE_GROUPS = ("alloc", "free")
_LOADING_CALL = re.compile(r"cu(?:da)?(?:Library|Module)Load|cuLink")
# Rows of the report host whose idle time is in other rows as well.
_REPEATED_CODES = ("pageable_copy", "blocking_memset")
_MAX_FIRST_CALLS = 4
# A call that takes less time does not wait: what it is for has ended, or it is for another stream.
_LEAST_WAIT_NS = 2000
_LAUNCH_GROUPS = ("launch", "graph launch")
# Words for what a trace does not have, by the metric in `info`.
_MISSING = {
    "kernels": "kernels", "graph_kernels": "kernels in graphs", "nvtx_ranges": "NVTX", "memory_events": "memory use",
    "gpu_metric_samples": "GPU metrics", "os_calls": "OS calls", "unimportant_api_calls": "minor API calls",
}  # fmt: skip


class _Part(NamedTuple):
    """A part of a loop's body: an operation with its number and what is telling about it, or a loop with 0."""

    text: str
    calls: int
    mark: str


def write_brief(brief: Brief, budget: int | None = None) -> str:
    """Write a brief in at most `budget` characters: the most important lines that fit.

    Without a budget, it is 2,000 characters, and 2,600 for several ranks or GPUs.
    """
    budget = budget or (BUDGET_OF_SEVERAL if brief.devices or brief.ranks else BUDGET)
    operations = merge_operations(brief.operations)
    lines = [
        *_describe_program(brief),
        *_describe_steps(brief),
        *_describe_time(brief),
        *_describe_ranks(brief),
        *_list_operations(brief, operations),
        Line(9, ""),  # the place of the line about other operations
        *_list_calls(brief),
        *_list_ranges(brief),
        *_list_collectives(brief),
        *_list_findings(brief.diagnosis),
    ]
    chosen_lines = choose_lines(lines, budget - _REMAINDER_CHARS)
    hidden_operations = [
        line.subject for index, line in enumerate(lines) if line.subject is not None and index not in chosen_lines
    ]
    texts = [
        line.text or _describe_rest(hidden_operations)
        for index, line in enumerate(lines)
        if index in chosen_lines or not line.text
    ]
    return "".join(f"{text}\n" for text in texts if text)


class Sections(NamedTuple):
    """A brief for people: sentences, the operations and calls as tables, and more sentences."""

    head: list[str]
    tables: list[Answer]
    tail: list[str]


def list_sections(brief: Brief) -> Sections:
    """Return the parts of a brief for people, without the findings."""
    head = [
        *_describe_program(brief),
        *_describe_steps(brief),
        *_describe_time(brief),
        *_describe_ranks(brief),
    ]
    if meaning := diagnosis_text.explain_verdict(brief.diagnosis):
        head.insert(2 if brief.diagnosis.run else 1, Line(1, meaning))
    tables = [build_operation_table(brief), build_call_table(brief)]
    tail = [line.text for line in (*_list_ranges(brief), *_list_collectives(brief))]
    return Sections([line.text for line in head], [answer for answer in tables if answer.row_count], tail)


def write_page(brief: Brief, width: int) -> str:
    """Write a brief for people: the same content, with operations and calls as tables, in lines of `width` cells."""
    sections = list_sections(brief)
    lines = [text for line in sections.head for text in wrap(line, width)]
    for answer in sections.tables:
        stream = StringIO()
        table.write(table.build_lines(answer, MAX_TABLE_ROWS, width, full_names=False), stream, color=False)
        lines += ["", *stream.getvalue().splitlines()]
    for section in (sections.tail, [line.text for line in _list_findings(brief.diagnosis)]):
        if section:
            lines += ["", *(text for line in section for text in wrap(line, width))]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _describe_rest(operations: Sequence[Operation]) -> str:
    if not operations:
        return ""
    calls, time_ns = sum(o.calls for o in operations), sum(o.time_ns for o in operations)
    names = count_noun(len(operations), "name")
    return f" {names} more, {number(calls)} {TIMES} {time_text(time_ns / calls)} (nsys-insight step-operations)"


def _describe_program(brief: Brief) -> Iterator[Line]:
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
    command = fit(details.get("command") or "", 90)
    # Of one process, its name: 353 ./app: 8,087 API calls on 1 thread.
    process = processes[0].partition(": ")[0].partition(" ")[2] if len(processes) == 1 else ""
    parts: list[str] = [
        ": ".join(text for text in (framework, command) if text),
        *(f"{count} {TIMES} {gpu}" if count > 1 else gpu for gpu, count in _count(gpus) if gpu),
        (count_noun(program["processes"], "process", "processes") + (f" ({fit(process, 30)})" if process else ""))
        if program["processes"]
        else "",
        _describe_threads(program),
        f"nsys {details['nsys_version'].partition(',')[0]}" if details.get("nsys_version") else "",
    ]
    first, *other_lines = diagnosis_text.write_headline(diagnosis)[: 2 if diagnosis.run else 1]
    yield Line(0, fit(first, LINE_CHARS))
    yield from (Line(0, fit(line, LINE_CHARS)) for line in other_lines)
    yield Line(1, fit(f"program: {', '.join(part for part in parts if part)}", LINE_CHARS + 40))
    if missing:
        yield Line(4, f"not recorded: {', '.join(missing)}")
    warnings = [row for row in info if row["metric"] == "errors" and row["detail"]]
    yield from (Line(3, fit(f"capture error: {row['detail']}", 160)) for row in warnings[:1])


def _describe_threads(program: dict[str, Any]) -> str:
    """Say how many threads launch, of those that call CUDA."""
    launching = program["launch_threads"]
    if not program["threads"]:
        return ""
    total = f" of {program['threads']:,}" if launching != program["threads"] else ""
    return f"{launching:,}{total} {'thread launches' if launching == 1 else 'threads launch'}"


def _count(names: Sequence[str]) -> list[tuple[str, int]]:
    return [(name, names.count(name)) for name in dict.fromkeys(names)]


def _describe_steps(brief: Brief) -> Iterator[Line]:
    diagnosis = brief.diagnosis
    if diagnosis.wall_ns is None:
        yield Line(0, diagnosis_text.describe_status(diagnosis))
        return
    sentences = diagnosis_text.describe_costs(diagnosis)[2:]
    nest = _write_nest(brief.loops)
    yield Line(1, fit(f"step: {sentences[0]}", 200))
    if nest:
        yield Line(2, fit(f"nest: {nest}", 260))
    yield from (Line(4, fit(sentence, 220)) for sentence in sentences[1:])


def _write_nest(rows: Rows) -> str:
    """Write the loops around the step in one line: 46 x [12 operations, 8 x [41 operations], D2H copy]."""
    bodies = {loop: list(group) for loop, group in groupby(rows, key=lambda row: row["loop"])}
    if not bodies:
        return ""
    root = min(bodies, key=len)
    return f"{bodies[root][0]['iterations']:,} {TIMES} {_write_body(root, bodies)}"


def _write_body(loop: str, bodies: dict[str, Rows]) -> str:
    """Write what an iteration of a loop runs. Neighboring operations are summed if there are many."""
    parts: list[_Part] = []
    for row in bodies.get(loop, ()):
        if row["inner_loop"] is not None:
            parts.append(_Part(f"{row['repeats']:,} {TIMES} {_write_body(row['inner_loop'], bodies)}", 0, ""))
            continue
        name = shorten_operation(row["name"] or row["label"] or row["kind"], row["provenance"], NEST_NAME_CHARS)
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
    return part.text if part.calls <= 1 else f"{part.calls:,} {TIMES} {part.text}"


def _sum_parts(parts: list[_Part]) -> Iterator[str]:
    """Write neighboring operations as their number and what is telling among them. Inner loops stay."""
    if not parts[0].calls or len(parts) == 1:
        yield from map(_write_part, parts)
        return
    marks = ", ".join(dict.fromkeys(part.mark for part in parts if part.mark))
    yield f"{sum(part.calls for part in parts):,} operations{f' with {marks}' if marks else ''}"


def _describe_time(brief: Brief) -> Iterator[Line]:
    diagnosis = brief.diagnosis
    if not diagnosis.shares:
        return
    host = [
        f"{row['bottleneck']} {row['wall_pct']:.1f}%"
        for row in brief.host
        if row["code"] not in _REPEATED_CODES and row["wall_pct"] is not None and row["wall_pct"] >= 1
    ]
    devices = ", ".join(f"GPU {row['gpu_id']} {pct(row['busy_pct'])}" for row in brief.devices)
    yield Line(1, diagnosis_text.describe_shares(diagnosis.shares) + (f"; busy by GPU: {devices}" if devices else ""))
    if host:
        yield Line(2, f"idle by what the host does: {', '.join(host[:4])}")


def _describe_ranks(brief: Brief) -> Iterator[Line]:
    if not brief.ranks:
        return
    yield Line(1, "means of a step by rank: step, busy, waiting for others, transfer, idle, host")
    for row in brief.ranks[:_MAX_RANKS]:
        times = ", ".join(
            time_text(row[f"{name}_ns"]) if row[f"{name}_ns"] is not None else "unknown"
            for name in ("step", "busy", "waiting", "transfer", "idle", "host")
        )
        late = f", late in {row['late_steps']} steps" if row["late_steps"] else ""
        yield Line(2, f"rank {row['rank']}: {times}{late}")
    if len(brief.ranks) > _MAX_RANKS:
        yield Line(2, f"{len(brief.ranks) - _MAX_RANKS} more ranks: nsys-insight ranks")


def _list_operations(brief: Brief, operations: list[Operation]) -> Iterator[Line]:
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
        f"{number(count)} {kind if number(count) == '1' else words[kind]}" for kind, count in counts.items() if count
    )
    yield Line(
        1,
        f"operations {describe_unit(brief.diagnosis)}: {count_text}, {time_text(total_ns)}. Lines: count {TIMES} mean, "
        f"share of this time, GPU idle before it{', all GPUs' if len(devices) > 1 else ''}, name, grid {TIMES} block",
    )
    families = sum_families(brief.operations)
    if len(families) > 1:
        texts = (f"{family} {pct(100 * ns / total_ns)}" for family, ns in families[:_MAX_FAMILIES])
        yield Line(3.9, f" by family: {', '.join(texts)}")
    main_stream = find_main_stream(brief.operations)
    important, notable = choose_operations(operations)
    for rank, operation in enumerate(operations):
        priority = 2 if operation in important else 3 + rank / 100 if operation in notable else 4.5 + rank / 100
        text = describe_operation(operation, total_ns, len(devices), main_stream)
        yield Line(priority, f" {text}", operation)


def _list_calls(brief: Brief) -> Iterator[Line]:
    launches = [row for row in brief.calls if row["call_group"] in _LAUNCH_GROUPS]
    other_calls = [row for row in brief.calls if row["call_group"] not in _LAUNCH_GROUPS]
    if not brief.calls:
        return
    launch_text = ", ".join(
        f"{number(row['calls'])} {TIMES} {row['name']} {time_text(row['avg_ns'])}" for row in launches[:3]
    )
    yield Line(
        2, f"API calls {describe_unit(brief.diagnosis)}, count {TIMES} mean, max: {launch_text or 'no launch calls'}"
    )
    telling = [row for row in other_calls if row["waits_for"] or _is_rare(row)]
    ordinary = [row for row in other_calls if row not in telling and row["avg_ns"] >= MIN_CALL_NS]
    for rank, row in enumerate([*telling, *ordinary]):
        waits_for = ""
        if row["waits_for"] and row["avg_ns"] >= _LEAST_WAIT_NS:
            waits_for = f", waits for {row['waits_for']}{_describe_waited_bytes(row)}"
        yield Line(
            3 if rank < _MAX_FIRST_CALLS else 5 + rank / 100,
            f" {number(row['calls'])} {TIMES} {row['name']} {time_text(row['avg_ns'])}, "
            f"max {time_text(row['max_ns'])}{waits_for}",
        )


def _describe_waited_bytes(row: dict[str, Any]) -> str:
    """Describe the size of the copies that a call waits for: their mean is no copy's size where they differ."""
    if row["copy_bytes"] is None:
        return ""
    largest = size_text(row["max_copy_bytes"])
    return f" of {largest}" if size_text(row["copy_bytes"]) == largest else f" of up to {largest}"


def _is_rare(row: dict[str, Any]) -> bool:
    """Return whether a call does not belong into a step: it allocates, frees or loads code."""
    return row["call_group"] in _RARE_GROUPS or bool(_LOADING_CALL.match(row["name"]))


def _list_ranges(brief: Brief) -> Iterator[Line]:
    levels = [
        (depth, list(rows)) for depth, rows in groupby(brief.nvtx, key=lambda row: row["depth"]) if depth is not None
    ]
    for depth, rows in levels[:_MAX_NVTX_LEVELS]:
        names = ", ".join(
            f"{fit(row['name'] or '(no name)', 40)} {TIMES}{row['calls']:,}"
            + (f" {time_text(row['avg_ns'])}" if row["avg_ns"] is not None else "")
            for row in rows[:_MAX_NVTX_NAMES]
        )
        remainder = f", {len(rows) - _MAX_NVTX_NAMES} more" if len(rows) > _MAX_NVTX_NAMES else ""
        yield Line(3.5 + depth / 10, fit(f"NVTX level {depth}: {names}{remainder}", 220))


def _list_collectives(brief: Brief) -> Iterator[Line]:
    rows = brief.collectives
    if rows:
        texts = [
            f"{number(row['calls'])} {TIMES} {row['operation'] or 'unknown'}"
            + (f" {size_text(row['bytes'])}" if row["bytes"] is not None else "")
            + f" {time_text(row['avg_ns'])}"
            for row in rows[:_MAX_COLLECTIVES]
        ]
        remainder = f", {len(rows) - _MAX_COLLECTIVES} more" if len(rows) > _MAX_COLLECTIVES else ""
        yield Line(3.5, f"collectives {describe_unit(brief.diagnosis)}: {', '.join(texts)}{remainder}")


def _list_findings(diagnosis: DiagnosisResult) -> Iterator[Line]:
    status = diagnosis_text.describe_status(diagnosis) if diagnosis.wall_ns is not None else ""
    if status:
        yield Line(2, fit(status, 200))
    for rank, finding in enumerate(diagnosis.findings):
        yield Line(2 if rank == 0 else 3.2 + rank, describe_finding(finding, diagnosis, _FINDING_CHARS))
        for place, also in enumerate(finding.also):
            # A symptom that takes more time than its finding saves may have a larger cure of its own.
            is_larger = (also.recoverable_ns or 0) > (finding.recoverable_ns or 0)
            priority = 2.9 if is_larger and rank == 0 else 3.8 + rank + place / 10
            yield Line(priority, f" also {describe_finding(also, diagnosis, _RELATED_CHARS)}")
