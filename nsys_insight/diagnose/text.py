"""A diagnosis written out: as text for people, and as a table for machines."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nsys_insight.diagnose.ranks import WAITING
from nsys_insight.ingest.scope import write_flags
from nsys_insight.render.markdown import escape_prose, format_code
from nsys_insight.session.answer import Answer, build_answer, read_columns
from nsys_insight.text.cells import printable, wrap
from nsys_insight.text.kernel_names import fit, make_readable
from nsys_insight.text.templates import MAX_NAME_CELLS
from nsys_insight.text.units import time_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nsys_insight.diagnose.findings import DiagnosisResult, Finding, LeftOut, Share

COLUMNS = read_columns("diagnose/findings")
# The first findings are written in full, the others as a line, so that all findings fit on a screen.
MAX_FULL_FINDINGS = 3
_NO_BREAK = "\N{NO-BREAK SPACE}"
# The verdict on a trace that has launch calls, but none of the work that they launched.
LOST_KERNELS = "what ran on the GPU is not in the trace"
# The verdict on a trace whose launch calls all returned errors.
FAILED_LAUNCHES = "no kernel ran"
# The subject in queries/internal/diagnose/unjudged.sql.
_GPU_WORK = "what the GPU does"
# A late host, and one that is late because nothing is to do.
HOST_BOUND, WAITING_FOR_EVENTS = "host-bound", "waiting for events"
LAUNCH_BOUND, STARTING_LATE = "launch-bound", "late starts"
_MIXED = "mixed: "
# What bounds a run: the part of the budget that it is about, and what the GPU then does.
_CAUSES = {
    "GPU-bound": ("busy", "is busy {}; faster or fewer kernels shorten it"),
    LAUNCH_BOUND: ("launch", "is idle {} because the CPU launches kernels too slowly"),
    STARTING_LATE: ("launch", "is idle {} because operations start long after their launch calls have returned"),
    HOST_BOUND: (
        "launch",
        "is idle {} because the CPU issues the next operation late: it mostly does something other than launching",
    ),
    WAITING_FOR_EVENTS: (
        "launch",
        (
            "is idle {} because the program has nothing to launch: the CPU sleeps until an event arrives, such as a "
            "request"
        ),
    ),
    "sync-bound": ("sync", "is idle {} because the CPU waits for it before it launches more work"),
    "copy-bound": ("copy", "only copies, or waits for a copy, {}"),
    "allocation-bound": ("allocation", "is idle {} while the CPU allocates, frees or pins memory"),
    "communication-bound": ("communication", "only communicates {}"),
    WAITING: ("communication", "only communicates {}, most of it waiting for other ranks"),
    "dependency-bound": ("dependency", "is idle {} although its next operation has been launched in time"),
    "start-up and end": ("start-up and end", "is idle {} before its first operation and after its last one"),
}
# Its share is without communication and copies; see `_find_share`.
_BUSY_NEXT_TO_OTHERS = "computes {}"
# Where most GPU time is in graphs that were traced without their kernels: the GPU may be idle in them.
_MOST_GPU_TIME = 50.0
_BUSY_OR_IN_GRAPHS = "is busy, or inside a CUDA graph, {}"
# Words that keep their capital letter inside a sentence.
_NAMES = ("Python",)
_NAME_ALONE = {"copy": "copies", "communication": "communication"}
_MIN_ALONE_PCT = 1.0
# A verdict on steps that take less than this part of the trace says so: the rest may be bound by something else.
_SMALL_PART = 0.1
# From this ratio of mean to median, no step takes the mean: a few long steps make it.
_SKEWED = 1.2
# A few launches come late: the CPU does not launch slowly.
_SLOW_LAUNCHES = "NSI104"
# Calls that take longer under nsys, and the families of rules that save them.
_SLOWER_CALLS = {"launches": ("launch", "fusion"), "allocations": ("allocation",), "loads of code": ("compile",)}
# Rules of these families whose time is not that of calls.
_NO_LAUNCHES = ("cpu-work", "stall-place")
# A saving that is smaller than this share of itself under nsys is shown with it.
_MUCH_SMALLER = 0.95
# Smaller shares would be printed as 0.0%.
_MIN_SHARE_PCT = 0.05


def make_answer(diagnosis: DiagnosisResult) -> Answer:
    """Return the findings as rows, each followed by the findings below it, with the headline as the summary."""
    rows = []
    for rank, finding in enumerate(diagnosis.findings, 1):
        for member in (finding, *finding.also):
            values = {
                **asdict(member),
                "of": member.share_of,
                "wrong_when": member.caveat,
                "action": member.action,
                "evidence_values": member.values,
                "cure": (member.cure.framework, member.action, member.cure.effort, member.cure.numerics),
                "saving": (
                    member.saving_low_ns,
                    member.recoverable_ns,
                    member.share_of,
                    diagnosis.unit,
                    member.bounded_by,
                ),
                "commands": [member.command],
                "devices": diagnosis.steps.get("gpus"),
                "rank": rank,
                "finding": member.name,
                "under": None if member is finding else finding.name,
            }
            rows.append([values[column.name] for column in COLUMNS])
    return build_answer(
        COLUMNS,
        rows,
        report="diagnose",
        title=f"Diagnosis: {diagnosis.verdict}",
        params={name: value for name, value in diagnosis.params.items() if value is not None},
        notes=tuple(filter(None, (describe_left_out(diagnosis), *diagnosis.notes))),
        empty=describe_status(diagnosis),
        trace=diagnosis.trace,
        summary=summarize(diagnosis),
    )


def summarize(diagnosis: DiagnosisResult) -> dict[str, Any]:
    """Return the headline as plain data."""
    return {
        "status": diagnosis.status,
        "verdict": diagnosis.verdict,
        "framework": diagnosis.framework,
        "per": diagnosis.unit,
        "wall_ns": diagnosis.wall_ns,
        "tokens_per_s": diagnosis.tokens_per_s,
        "unprofiled": _summarize_unprofiled(diagnosis),
        "gpu_busy_pct": diagnosis.busy_pct,
        "gpu_idle_pct": sum(share.wall_pct for share in diagnosis.shares if not share.is_busy),
        "shares": [asdict(share) for share in diagnosis.shares],
        "steps": diagnosis.steps,
        "not_judged": [{"what": question.subject, "how": question.remedy} for question in diagnosis.unassessed],
        **({"run": asdict(diagnosis.run)} if diagnosis.run else {}),
        **({"left_out": _summarize_left_out(diagnosis.left_out)} if diagnosis.left_out else {}),
    }


def _summarize_unprofiled(diagnosis: DiagnosisResult) -> dict[str, Any] | None:
    """Return the step without nsys as plain data; None without steps."""
    step = diagnosis.unprofiled
    if step is None:
        return None
    return {
        "source": step.source,
        "low_ns": step.low_ns,
        "likely_ns": step.likely_ns,
        "high_ns": step.high_ns,
        "verdict": diagnosis.unprofiled_verdict,
        "unknown": step.unknown,
    }


def _summarize_left_out(left_out: LeftOut) -> dict[str, Any]:
    """Return what a choice of rules left out as plain data."""
    return {
        "file": left_out.file or None,
        "select": left_out.select,
        "ignore": left_out.ignore,
        "rules": left_out.rules,
        "findings": None if left_out.findings is None else [
            {
                "code": finding.code, "finding": finding.name, "title": finding.title, "severity": finding.severity,
                "recoverable_ns": finding.recoverable_ns, "wall_pct": finding.wall_pct, "of": finding.share_of,
            }
            for finding in left_out.findings
        ],
    }  # fmt: skip


def describe_left_out(diagnosis: DiagnosisResult) -> str:
    """Say which rules a settings file or flags left out, and which findings that hides; "" if all rules were used."""
    left_out = diagnosis.left_out
    if left_out is None:
        return ""
    source = f"The settings in {left_out.file}" if left_out.file else "The flags"
    if not left_out.rules:
        return f"{source} leave out no rule."
    choices = [("use only", left_out.select), ("leave out", left_out.ignore)]
    choice = " and ".join(f"{verb} {', '.join(names)}" for verb, names in choices if names)
    off = "1 rule is off" if len(left_out.rules) == 1 else f"{len(left_out.rules)} rules are off"
    return f"{source} {choice}: {off}{_describe_hidden(left_out.findings)}"


def _describe_hidden(findings: Sequence[Finding] | None) -> str:
    """Write the end of the sentence about rules that are off: what they find."""
    if findings is None:
        return ", and not evaluated."
    if not findings:
        return ". They find nothing of 1% or more."
    titles = Counter(f"{finding.code} {finding.title}" for finding in findings)
    title_list = "; ".join(f"{title} ({number})" if number > 1 else title for title, number in titles.items())
    hidden = "1 finding is hidden" if len(findings) == 1 else f"{len(findings)} findings are hidden"
    return f", and {hidden}: {title_list}. Use --select NSI to show everything."


def write_text(diagnosis: DiagnosisResult, width: int | None, limit: int | None = None) -> str:
    """Write the headline, the first `limit` findings or all, and what is unknown, in lines of `width` cells."""
    return "\n".join(_write_lines(diagnosis, width or 10_000, limit or len(diagnosis.findings))) + "\n"


def write_markdown(diagnosis: DiagnosisResult, limit: int | None = None) -> str:
    """Write the headline, the first `limit` findings or all, and what is unknown, as Markdown."""
    first, *other_lines = write_headline(diagnosis)
    lines = [
        f"## {escape_prose(printable(first))}",
        "",
        *(f"{escape_prose(printable(line))}  " for line in other_lines),
        "",
    ]
    if status := describe_status(diagnosis):
        lines += [escape_prose(printable(status)), ""]
    for rank, finding in enumerate(diagnosis.findings[: limit or len(diagnosis.findings)], 1):
        saving = describe_saving(finding, diagnosis.unit)
        lines += [f"### {rank}. {finding.code} {finding.title}{': ' + saving if saving else ''}", ""]
        facts = {
            "severity": finding.severity,
            "evidence": finding.evidence,
            "where": finding.place,
            "fix": finding.action,
            "skip": write_caveat(finding),
        }
        lines += [f"- {name}: {escape_prose(printable(fact))}" for name, fact in facts.items() if fact]
        lines += [
            f"- related: {escape_prose(printable(also.evidence))} ({format_code(printable(also.command))})"
            for also in finding.also
        ]
        lines += [f"- more: {format_code(printable(finding.command))}", ""]
    if left_out := describe_left_out(diagnosis):
        lines += [escape_prose(printable(left_out)), ""]
    if questions := _list_open_questions(diagnosis):
        lines += ["Not recorded in this trace:", ""]
        lines += [
            f"- {escape_prose(printable(subject))}: {escape_prose(printable(remedy))}" for subject, remedy in questions
        ]
    return "\n".join(lines).rstrip() + "\n"


def write_headline(diagnosis: DiagnosisResult) -> list[str]:
    """Write what bounds the run and what it costs, in a few sentences."""
    wall, *other_lines = describe_run(diagnosis)
    run_lines = [diagnosis.run.sentence] if diagnosis.run else []
    return [
        *run_lines,
        f"{_name_file(diagnosis)}: {name_verdict(diagnosis)}{limit_verdict(diagnosis)}{'; ' if wall else ''}{wall}",
        *other_lines,
    ]


def describe_run(diagnosis: DiagnosisResult) -> list[str]:
    """Describe the run: first its time, perhaps empty, then what the verdict means, then the other costs."""
    wall, *other_lines = describe_costs(diagnosis) or [""]
    sentences = (explain_verdict(diagnosis), _compare_verdicts(diagnosis), _describe_outside(diagnosis))
    return [wall, *(sentence for sentence in sentences if sentence), *other_lines]


def name_verdict(diagnosis: DiagnosisResult) -> str:
    """Name what bounds the run. If there are several causes, name the two that take the most time."""
    words = diagnosis.verdict.removeprefix(_MIXED)
    if words == diagnosis.verdict:
        return diagnosis.verdict
    causes = sorted(
        ((_find_share(diagnosis, word), word) for word in words.split(", ")),
        key=lambda cause: -cause[0],
    )
    return ", then ".join(f"{word} ({share:.1f}%)" for share, word in causes[:2])


def limit_verdict(diagnosis: DiagnosisResult) -> str:
    """Name the part of the run that the verdict is about; "" if it is about most of it."""
    reservation = " as far as recorded" if _is_in_graphs(diagnosis) and "GPU-bound" in diagnosis.verdict else ""
    steps_ns = diagnosis.steps.get("steps_ns")
    if not steps_ns or diagnosis.unit == "trace" or steps_ns >= _SMALL_PART * diagnosis.steps["wall_ns"]:
        return reservation
    return f"{reservation} in the steps, {_write_coverage(diagnosis)}"


def _is_in_graphs(diagnosis: DiagnosisResult) -> bool:
    return (diagnosis.graph_pct or 0) >= _MOST_GPU_TIME


def explain_verdict(diagnosis: DiagnosisResult) -> str:
    """Say in one sentence what the verdict means, with the shares of the time; "" if there is nothing to add."""
    causes = [word.partition(" (")[0] for word in name_verdict(diagnosis).split(", then ")]
    if diagnosis.wall_ns is None or not set(causes) <= _CAUSES.keys():
        return ""
    unit = f"the time of the {diagnosis.unit}s" if _is_skewed(diagnosis) else f"each {diagnosis.unit}"
    unit = "the wall time" if diagnosis.unit == "trace" else unit
    shares = [f"{_find_share(diagnosis, word):.1f}% of {unit}" for word in causes]
    texts = {word: reason for word, (_, reason) in _CAUSES.items()}
    if len(causes) > 1:
        texts["GPU-bound"] = _BUSY_NEXT_TO_OTHERS
    if _is_in_graphs(diagnosis):
        texts["GPU-bound"] = _BUSY_OR_IN_GRAPHS
    if any(finding.code == _SLOW_LAUNCHES for finding in diagnosis.findings):
        texts[LAUNCH_BOUND] = "is idle {} because launches come late"
    reasons = [texts[word].format(share) for word, share in zip(causes, shares, strict=True)]
    return f"The GPU {', and '.join(reasons)}."


def _compare_verdicts(diagnosis: DiagnosisResult) -> str:
    """Say that only the profiler creates the verdict; "" if it does not, or if that is unknown."""
    unprofiled = diagnosis.unprofiled_verdict
    if unprofiled is None or diagnosis.verdict in unprofiled or STARTING_LATE in diagnosis.verdict:
        return ""
    words = diagnosis.verdict.removeprefix(_MIXED).split(", ")
    if not set(words) <= _CAUSES.keys():
        return ""
    if unprofiled in words:
        return f"Without nsys, it is {unprofiled} alone."
    return f"Only nsys makes it {' and '.join(words)}: without it, it is {unprofiled}."


def _find_share(diagnosis: DiagnosisResult, word: str) -> float:
    """Return the share of the wall time that a word of the verdict stands for, in %.

    Next to other causes, a busy GPU is one that does more than to communicate or to copy, which can be such a cause.
    """
    if word == "GPU-bound" and diagnosis.verdict.startswith(_MIXED):
        alone_pct = sum(share.wall_pct for share in diagnosis.shares if share.is_busy and share.part in _NAME_ALONE)
        return diagnosis.busy_pct - alone_pct
    return _sum_share(diagnosis, _CAUSES.get(word, ("", ""))[0])


def _sum_share(diagnosis: DiagnosisResult, part: str) -> float:
    """Return the share of the wall time that a part of the budget has, in %."""
    if part == "busy":
        return diagnosis.busy_pct
    return sum(share.wall_pct for share in diagnosis.shares if share.part == part)


def write_caveat(finding: Finding) -> str:
    """Write when a fix is wrong, as the rest of a sentence: if other kernels run at the same time."""
    caveat = finding.caveat.strip()
    is_word = caveat[:2].istitle() or caveat.startswith("A ")
    return f"if {caveat[0].lower()}{caveat[1:]}" if is_word and not caveat.startswith(_NAMES) else f"if {caveat}"


def describe_costs(diagnosis: DiagnosisResult) -> list[str]:
    """Return the wall time of a step, a token or the trace; its shares; and the steps. Empty if nothing ran."""
    if diagnosis.wall_ns is None:
        return []
    # A rate of layers or calls is no speed of the program, nor is one that nsys makes slower.
    unprofiled = diagnosis.unprofiled.sentence if diagnosis.unprofiled else None
    is_rate = diagnosis.unit in ("step", "token") and not unprofiled
    has_rate = is_rate and diagnosis.tokens_per_s and diagnosis.tokens_per_s >= 10
    rate = f" ({diagnosis.tokens_per_s:,.0f} {diagnosis.unit}s/s)" if has_rate else ""
    wall = (
        f"{time_text(diagnosis.wall_ns)} {'in total' if diagnosis.unit == 'trace' else f'per {diagnosis.unit}{rate}'}"
    )
    median = time_text(diagnosis.steps["median_ns"] or 0)
    if _is_skewed(diagnosis):
        wall = f"{median} per typical {diagnosis.unit} (median), {time_text(diagnosis.wall_ns)} on average{rate}"
    elif unprofiled and median != time_text(diagnosis.wall_ns):
        wall = f"{median} per {diagnosis.unit} (median)"  # from which the step without nsys is estimated
    if unprofiled:
        wall = f"{wall} under nsys; {unprofiled}"
    clauses = (diagnosis.steps[name] for name in ("doubted", "unsteady", "drifting", "interrupted"))
    return [wall, describe_shares(diagnosis.shares), _describe_steps(diagnosis), *map(_say, filter(None, clauses))]


def _is_skewed(diagnosis: DiagnosisResult) -> bool:
    """Return whether a few long or short steps make the mean: what is true on average is not true of each."""
    median_ns, mean_ns = diagnosis.steps["median_ns"], diagnosis.wall_ns or 0
    return (
        diagnosis.unit != "trace" and bool(median_ns) and max(mean_ns, median_ns) >= _SKEWED * min(mean_ns, median_ns)
    )


def _say(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def describe_shares(shares: Sequence[Share]) -> str:
    """Write the busy and idle shares, which add up to 100.0%, and the parts of `classify` that idle time goes to."""
    busy_shares, idle_shares = ([share for share in shares if share.is_busy is is_busy] for is_busy in (True, False))
    exclusive_text = ", ".join(
        f"{share.wall_pct:.1f}% {_NAME_ALONE[share.part]} only"
        for share in busy_shares
        if share.part in _NAME_ALONE and share.wall_pct >= _MIN_ALONE_PCT
    )
    idle_parts = ", ".join(
        f"{share.part} {share.wall_pct:.1f}%" for share in idle_shares if share.wall_pct >= _MIN_SHARE_PCT
    )
    busy_pct = round(sum(share.wall_pct for share in busy_shares), 1)
    exclusive_note = f" ({exclusive_text})" if exclusive_text else ""
    idle_note = f" ({idle_parts})" if idle_parts else ""
    if not busy_pct and any(share.wall_pct > 0 for share in busy_shares):
        return f"GPU busy less than 0.1%, idle more than 99.9%{idle_note}"
    return f"GPU busy {busy_pct:.1f}%{exclusive_note}, idle {100 - busy_pct:.1f}%{idle_note}"


# The CPU launches ahead if at least this share of its launches is made ahead. The first launch after a wait never is.
MIN_AHEAD_PCT = 50


def describe_status(diagnosis: DiagnosisResult) -> str:
    """Describe the status of a run that has no serious finding."""
    busy = f"the GPU is busy {diagnosis.busy_pct:.1f}% of {'the wall time' if diagnosis.unit == 'trace' else 'a step'}"
    if diagnosis.status == "empty":
        return _explain_empty(diagnosis)
    if diagnosis.status == "unseen":
        return f"Cannot be determined: {busy}, but in CUDA graphs whose kernels are not in the trace."
    if diagnosis.status in {"healthy", "unjudged"}:
        return _describe_busy(diagnosis, busy)
    if (
        diagnosis.verdict == "GPU-bound"
        and all(finding.severity == "info" or finding.symptom == "kernel-time" for finding in diagnosis.findings)
        and diagnosis.ahead_pct is not None and diagnosis.ahead_pct < MIN_AHEAD_PCT
        and 2 * (_sum_share(diagnosis, "launch") + _sum_share(diagnosis, "sync")) >= 100 - diagnosis.busy_pct
    ):  # fmt: skip
        return (
            f"{busy[0].upper()}{busy[1:]}, but the CPU does not launch ahead: {diagnosis.ahead_pct:.0f}% of the"
            " operations start 10 µs or more after their launch call has returned."
        )
    return "" if diagnosis.findings else _describe_no_finding(diagnosis)


def _describe_busy(diagnosis: DiagnosisResult, busy: str) -> str:
    """Describe a run whose GPU never waits: healthy, if its operations are known to be efficient."""
    if diagnosis.status == "unjudged":
        return f"GPU-bound: {busy}; {_describe_judgments(diagnosis)} (nsys-insight constructs)."
    kernel = ""
    if diagnosis.top_kernel:
        name, share = fit(make_readable(diagnosis.top_kernel[0]), 60), diagnosis.top_kernel[1]
        kernel = f" Next, optimize kernels: {name} takes {share:.1f}% of their time (nsys-insight top)."
    ahead = ", and the CPU keeps its queue full" if diagnosis.ahead_pct is not None else ""
    return f"Healthy: {busy}{ahead}.{kernel}"


def _describe_judgments(diagnosis: DiagnosisResult) -> str:
    """Say how much of the GPU time something replaces, and of how much the trace does not show it."""
    replaceable_pct, unknown_pct = diagnosis.replaceable_pct or 0.0, diagnosis.unknown_pct or 0.0
    replaceable = f"{replaceable_pct:.0f}% of the GPU time is in operations that something could replace"
    unknown = "in kernels whose efficiency the trace does not show"
    if unknown_pct < 1:
        return replaceable
    if replaceable_pct < 1:
        return f"{unknown_pct:.0f}% of the GPU time is {unknown}"
    return f"{replaceable}, and {unknown_pct:.0f}% is {unknown}"


def _describe_no_finding(diagnosis: DiagnosisResult) -> str:
    """Say that there is no finding; of rules that are off, this is not said."""
    if diagnosis.left_out and diagnosis.left_out.rules:
        return "None of the rules in use finds a cause of 1% or more of the wall time."
    return "No single cause accounts for 1% or more of the wall time."


def _list_open_questions(diagnosis: DiagnosisResult) -> list[tuple[str, str]]:
    """List what cannot be determined, each with the remedy; the sentence about an empty trace has its own."""
    status = describe_status(diagnosis)
    return [
        (question.subject, question.remedy)
        for question in diagnosis.unassessed
        if question.subject != _GPU_WORK or question.remedy not in status
    ]


def _explain_empty(diagnosis: DiagnosisResult) -> str:
    """Say why there is no GPU work, as far as the trace shows it."""
    if diagnosis.verdict == LOST_KERNELS:
        return (
            "CUDA calls succeeded whose work on the GPU is not in the trace: the profiler lost it, or could not record"
            " it (WSL2 without support for it, a driver newer than nsys, a kernel that failed)."
        )
    if diagnosis.verdict == FAILED_LAUNCHES:
        return "All kernel launches failed: the trace shows nothing about the program's speed."
    if diagnosis.trace["scope"]:
        return "No kernel, copy or memset is in this scope."
    remedy = next((question.remedy for question in diagnosis.unassessed if question.subject == _GPU_WORK), None)
    if remedy is None:
        return (
            "CUDA calls are recorded, but no kernel, copy or memset: the program ran nothing on the GPU while it was "
            "captured."
        )
    return f"No kernel, copy or memset is in this trace; if the program used a GPU, capture with: {remedy}"


def describe_saving(finding: Finding, unit: str) -> str:
    """Write how much time a finding may save, in words."""
    if finding.recoverable_ns is None:
        share_base = "trace" if unit == "trace" else finding.share_of
        return "" if finding.wall_pct is None else f"{finding.wall_pct:.1f}% of the {share_base}"
    unit_text = "" if unit == "trace" else f" per {unit}"
    overlap_text = "; overlaps others" if finding.overlaps else ""
    if finding.profiled_ns and finding.recoverable_ns < _MUCH_SMALLER * finding.profiled_ns:
        overlap_text = f"; {time_text(finding.profiled_ns)} under nsys{overlap_text}"
    low_ns, high_pct = finding.saving_low_ns or 0, finding.wall_pct or 0
    low_pct = high_pct * low_ns / (finding.recoverable_ns or 1)
    if low_pct >= _MIN_SHARE_PCT:
        times = _write_range(time_text(low_ns), time_text(finding.recoverable_ns))
        digits = 0 if low_pct >= 1 and high_pct - low_pct >= 1 else 1
        shares = _write_range(f"{low_pct:.{digits}f}", f"{high_pct:.{digits}f}")
        return f"{times}{unit_text} ({shares}%{overlap_text})"
    share_text = f" ({finding.wall_pct:.1f}%{overlap_text})" if finding.wall_pct is not None else ""
    return f"up to {time_text(finding.recoverable_ns)}{unit_text}{share_text}"


def _write_range(low: str, high: str) -> str:
    return high if low == high else f"{low} to {high}"


def _write_lines(diagnosis: DiagnosisResult, width: int, limit: int) -> Iterator[str]:
    for line in write_headline(diagnosis):
        yield from _wrap(line, width)
        if line.startswith("GPU busy"):
            yield _draw_bar(diagnosis.busy_pct, width)
    if status := describe_status(diagnosis):
        yield from _wrap(status, width)
    if diagnosis.findings:
        yield ""
    for rank, finding in enumerate(diagnosis.findings[:limit], 1):
        yield from _write_finding(rank, finding, diagnosis.unit, width)
    if diagnosis.findings or _list_open_questions(diagnosis) or diagnosis.left_out:
        yield ""
    yield from _write_footer(diagnosis, width, limit)


def _write_footer(diagnosis: DiagnosisResult, width: int, limit: int) -> Iterator[str]:
    if diagnosis.findings:
        hint = "; full text of each finding: --format markdown" if len(diagnosis.findings) > MAX_FULL_FINDINGS else ""
        if limit < len(diagnosis.findings):
            yield f"{limit} of {len(diagnosis.findings)} findings; --limit 0 shows all"
        yield from _wrap_hanging(f"Details: {diagnosis.findings[0].command}{hint}", width, 2)
        if note := _describe_profiler(diagnosis, limit):
            yield from _wrap_hanging(note, width, 2)
    if left_out := describe_left_out(diagnosis):
        yield from _wrap_hanging(left_out, width, 2)
    if questions := _list_open_questions(diagnosis):
        texts = "; ".join(f"{subject} ({remedy})" for subject, remedy in questions)
        yield from _wrap_hanging(f"Not recorded: {texts}", width, 2)


def _describe_profiler(diagnosis: DiagnosisResult, limit: int) -> str:
    """Say whether savings are of the step with or without nsys; "" if nsys makes no difference."""
    step = diagnosis.unprofiled
    if step and step.sentence and any(finding.recoverable_ns is not None for finding in diagnosis.findings[:limit]):
        return "Savings of launches, and shares of all savings, are of the step without nsys."
    calls = [
        call for call in _SLOWER_CALLS if any(_saves_calls(finding, call) for finding in diagnosis.findings[:limit])
    ]
    if _sum_share(diagnosis, "launch") + _sum_share(diagnosis, "allocation") < _MIN_ALONE_PCT or not calls:
        return ""
    sentence = f"Savings of {' and '.join(calls)} are of the run under nsys, and smaller without it"
    if step is None:
        return f"{sentence}."
    return f"{sentence}: {step.unknown}. Give the time of a step without nsys: --step-time" if step.unknown else ""


def _draw_bar(busy_pct: float, width: int) -> str:
    """Draw the busy share of the time, followed by the idle share."""
    cells = min(width, 60)
    busy_cells = round(cells * busy_pct / 100)
    return "█" * busy_cells + "░" * (cells - busy_cells)


def _saves_calls(finding: Finding, calls: str) -> bool:
    """Return whether a saving is, at least in part, the time of such calls, which the profiler makes slower."""
    return finding.recoverable_ns is not None and any(
        member.family in _SLOWER_CALLS[calls] and member.name not in _NO_LAUNCHES for member in (finding, *finding.also)
    )


def _write_finding(rank: int, finding: Finding, unit: str, width: int) -> Iterator[str]:
    saving = describe_saving(finding, unit)
    place = fit(finding.place or "", MAX_NAME_CELLS)
    place = f" [{place}]" if place and place not in finding.evidence else ""
    title = f"{rank}. {finding.severity.upper()} {finding.code} {finding.title}{': ' + saving if saving else ''}"
    yield from _wrap_hanging(title, width, 3)
    if rank > MAX_FULL_FINDINGS:
        return
    yield from _wrap_hanging(f"   {finding.evidence}{place} (see {finding.report})", width, 3)
    for also in sorted(finding.also, key=finding.is_blocked_by, reverse=True):
        word = "First" if finding.is_blocked_by(also) else "Also "
        yield from _wrap_hanging(f"   {word} {also.evidence} (see {also.report})", width, 9)
    yield from _wrap_hanging(f"   Fix   {finding.action}", width, 9)
    yield from _wrap_hanging(f"   Skip  {write_caveat(finding)}", width, 9)


def _wrap_hanging(text: str, width: int, indent: int) -> Iterator[str]:
    """Wrap a text and indent all lines except the first, which keeps its leading spaces."""
    leading_spaces = text[: len(text) - len(text.lstrip())]
    first_line = _wrap(text.strip(), width - len(leading_spaces))[0]
    yield leading_spaces + first_line
    if other_text := printable(text.strip())[len(first_line) :].strip():
        yield from (" " * indent + line for line in _wrap(other_text, width - indent))


def _wrap(text: str, width: int) -> list[str]:
    """Wrap a text without breaks between numbers and their units."""
    joined = re.sub(r"(?<=\d) (?=(?:%|[nµm]?s|[KMG]iB|GB/s)(?!\w))", _NO_BREAK, printable(text))
    return [line.replace(_NO_BREAK, " ") for line in wrap(joined, width)]


def _describe_steps(diagnosis: DiagnosisResult) -> str:
    steps = diagnosis.steps
    if not steps["steady_count"]:
        reason = f" ({steps['reason']})" if not steps["method"] and steps["reason"] else ""
        return f"No repeating steps were found{reason}; results cover the whole scope, including startup"
    share = f", {_write_coverage(diagnosis)}" if steps["wall_ns"] else ""
    unit = diagnosis.unit if diagnosis.unit not in ("trace", "token") else "step"
    plural = f"calls{unit.removeprefix('call')}" if unit.startswith("call") else f"{unit}s"
    kind = "" if steps["unsteady"] else "steady "
    count = f"{steps['steady_count']:,} {kind}{unit if steps['steady_count'] == 1 else plural}"
    return f"{count} ({diagnosis.step_source}, {steps['confidence']} confidence){share}"


def _describe_outside(diagnosis: DiagnosisResult) -> str:
    """Say what the time outside the steady steps is, where that is most of the trace; "" elsewhere."""
    outside, loops = diagnosis.steps.get("outside"), diagnosis.steps.get("other_loops")
    if not outside and not loops:
        return ""
    kind = "" if diagnosis.steps["unsteady"] else "steady "
    text = f"{'Only ' if 'outside' in diagnosis.steps else ''}{_write_coverage(diagnosis)} is in {kind}steps"
    if outside:
        text += (
            f"; outside them, the GPU is busy for {time_text(outside['busy_ns'])} of {time_text(outside['outside_ns'])}"
            f"{_describe_idle_outside(outside)}"
        )
    for loop in loops or ():
        text += (
            f". Loop {loop['loop']}, {loop['iterations']:,} iterations of {time_text(loop['period_ns'])} each, holds "
            f"{loop['gpu_pct']:.1f}% of the GPU time"
        )
    return f"{text}{' (see loops)' if loops else ''}."


def _describe_idle_outside(outside: Mapping[str, Any]) -> str:
    """Say how long the GPU is idle outside the steps, and what the host did in the longest of these times."""
    longest = outside["longest_idle"]
    if not longest:
        return ""
    idle = time_text(outside["outside_ns"] - outside["busy_ns"])
    parts = " and ".join(f"{time_text(part['idle_ns'])} (mostly {part['host']})" for part in longest)
    is_all = time_text(sum(part["idle_ns"] for part in longest)) == idle
    return f", and idle for {parts}" if is_all else f", and idle for {idle}, at the longest {parts}"


def _write_coverage(diagnosis: DiagnosisResult) -> str:
    """Write the share of the trace or scope that the steady steps take."""
    share_pct = 100 * diagnosis.steps["steps_ns"] / diagnosis.steps["wall_ns"]
    return f"{share_pct:.1f}% of the {'scope' if diagnosis.trace['scope'] else 'trace'}"


def _name_file(diagnosis: DiagnosisResult) -> str:
    scope = shlex.join(write_flags(diagnosis.trace["scope"]))
    rank_text = f"Rank {diagnosis.run.rank}, " if diagnosis.run else ""
    return f"{rank_text}{diagnosis.trace['file']}{' ' + scope if scope else ''}"
