"""A diagnosis written out: as text for people, and as a table for machines."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nsys_insight.ingest.scope import words
from nsys_insight.render.markdown import code, prose
from nsys_insight.session.answer import Answer, Column, of_rows
from nsys_insight.text.cells import printable, wrap
from nsys_insight.text.kernel_names import fit, readable
from nsys_insight.text.units import time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsys_insight.diagnose.findings import DiagnosisResult, Finding, Share

COLUMNS = (
    Column("rank", "INTEGER", "Rank of the finding, the largest possible saving first"),
    Column("finding", "VARCHAR", "Its name: that of its file in queries/findings"),
    Column("under", "VARCHAR", "The finding that it belongs to, as a remedy or a part; NULL for one of its own"),
    Column("severity", "VARCHAR", "critical (10 % of the wall time or more), warning (3 %), info"),
    Column("title", "VARCHAR", "What was found"),
    Column(
        "recoverable_ns",
        "DOUBLE",
        "The most time that may be saved, per token or step; NULL where it cannot be determined",
    ),
    Column("wall_pct", "DOUBLE", "Share of the wall time that this is, or that the finding is about"),
    Column("of", "VARCHAR", "What wall_pct is a share of: the wall time of a step, or of the trace"),
    Column(
        "overlaps", "BOOLEAN", "Whether this time is also in other findings, so that it must not be added to theirs"
    ),
    Column("place", "VARCHAR", "Where: an NVTX range, a kernel, a call, a step, a rank; NULL for no particular place"),
    Column("evidence", "VARCHAR", "The numbers that prove it"),
    Column("meaning", "VARCHAR", "What it means"),
    Column("action", "VARCHAR", "What to do"),
    Column("wrong_when", "VARCHAR", "When the action would be wrong"),
    Column("command", "VARCHAR", "The command that shows more"),
)
# The first findings are written at length, the others in short, so that all of them fit a screen.
AT_LENGTH = 2
# Of what Markdown says of a finding, what holds no name of the trace.
_OURS = ("severity", "do", "unless")
_JOIN = "\N{NO-BREAK SPACE}"
# The verdict on a trace that has launch calls, and nothing of what they ran.
LOST = "what ran on the GPU is not in the trace"
_ALONE = {"copy": "copies", "communication": "communication"}
_LEAST_ALONE_PCT = 1.0
# Less would be written as 0.0 %.
_LEAST_PCT = 0.05


def answer(diagnosis: DiagnosisResult) -> Answer:
    """The findings as rows, each with those under it, and the headline as the summary."""
    rows = []
    for rank, finding in enumerate(diagnosis.findings, 1):
        for one in (finding, *finding.also):
            facts = {
                **asdict(one),
                "wrong_when": one.caveat,
                "rank": rank,
                "finding": one.name,
                "under": None if one is finding else finding.name,
            }
            rows.append([facts[column.name] for column in COLUMNS])
    return of_rows(
        COLUMNS,
        rows,
        report="diagnose",
        title=f"Diagnosis: {diagnosis.verdict}",
        params={name: value for name, value in diagnosis.params.items() if value is not None},
        notes=diagnosis.notes,
        empty=status_sentence(diagnosis),
        trace=diagnosis.trace,
        summary=summary(diagnosis),
    )


def summary(diagnosis: DiagnosisResult) -> dict[str, Any]:
    """The headline as plain data."""
    return {
        "status": diagnosis.status,
        "verdict": diagnosis.verdict,
        "per": diagnosis.per,
        "wall_ns": diagnosis.wall_ns,
        "tokens_per_s": diagnosis.tokens_per_s,
        "gpu_busy_pct": diagnosis.busy_pct,
        "gpu_idle_pct": sum(share.wall_pct for share in diagnosis.shares if not share.is_busy),
        "shares": [asdict(share) for share in diagnosis.shares],
        "steps": diagnosis.steps,
        "not_judged": [asdict(unjudged) for unjudged in diagnosis.unjudged],
        **({"run": asdict(diagnosis.run)} if diagnosis.run else {}),
    }


def text(diagnosis: DiagnosisResult, width: int | None, limit: int | None = None) -> str:
    """Write the headline, the first findings or all, and what could not be judged, in lines of `width` cells."""
    return "\n".join(_lines(diagnosis, width or 10_000, limit or len(diagnosis.findings))) + "\n"


def greeting(diagnosis: DiagnosisResult, width: int) -> str:
    """Write the headline, what weighs most, and how to go on."""
    lines = headline(diagnosis)
    if status := status_sentence(diagnosis):
        lines.append(status)
    elif diagnosis.findings:
        first = diagnosis.findings[0]
        lines.append(
            f"Largest possible saving: {first.title[0].lower()}{first.title[1:]}, {gain(first, diagnosis.per)}"
        )
    lines += ["", "nsys-insight diagnose    what to do about it", "nsys-insight --help      all reports"]
    return "".join(f"{line}\n" for paragraph in lines for line in _wrapped(paragraph, width))


def markdown(diagnosis: DiagnosisResult, limit: int | None = None, *, quote: Callable[[str], str] = prose) -> str:
    """Write the same as Markdown; `quote` is what sentences go through that may hold names of the trace."""
    first, *others = headline(diagnosis)
    lines = [f"## {quote(printable(first))}", "", *(f"{quote(printable(line))}  " for line in others), ""]
    if status := status_sentence(diagnosis):
        lines += [quote(printable(status)), ""]
    for rank, finding in enumerate(diagnosis.findings[: limit or len(diagnosis.findings)], 1):
        cost = gain(finding, diagnosis.per)
        lines += [f"### {rank}. {finding.title}{': ' + cost if cost else ''}", ""]
        facts = {
            "severity": finding.severity,
            "evidence": finding.evidence,
            "where": finding.place,
            "do": finding.action,
            "unless": finding.caveat,
        }
        lines += [
            f"- {name}: {(prose if name in _OURS else quote)(printable(fact))}" for name, fact in facts.items() if fact
        ]
        lines += [f"- also: {quote(printable(one.evidence))} ({code(printable(one.command))})" for one in finding.also]
        lines += [f"- see: {code(printable(finding.command))}", ""]
    if diagnosis.unjudged:
        lines += ["Cannot be determined from this trace:", ""]
        lines += [f"- {prose(printable(one.what))}: {prose(printable(one.how))}" for one in diagnosis.unjudged]
    return "\n".join(lines).rstrip() + "\n"


def headline(diagnosis: DiagnosisResult) -> list[str]:
    """What bounds the run and what it costs, in a few sentences."""
    wall, *others = costs(diagnosis) or [""]
    first = [diagnosis.run.sentence] if diagnosis.run else []
    return [*first, f"{_file(diagnosis)}: {diagnosis.verdict}{'; ' if wall else ''}{wall}", *others]


def costs(diagnosis: DiagnosisResult) -> list[str]:
    """The wall of a step, a token or the trace; its shares; the steps that were found. Nothing where nothing ran."""
    if diagnosis.wall_ns is None:
        return []
    rate = (
        f" ({diagnosis.tokens_per_s:,.0f} a second)" if diagnosis.tokens_per_s and diagnosis.tokens_per_s >= 10 else ""
    )
    wall = f"{time_text(diagnosis.wall_ns)} {'in total' if diagnosis.per == 'trace' else f'a {diagnosis.per}{rate}'}"
    return [wall, shares(diagnosis.shares), _steps(diagnosis)]


def shares(found: Sequence[Share]) -> str:
    """Busy and idle, which add up to 100.0 % of the wall, and to which parts of `classify` the idle time is charged."""
    working, waiting = ([share for share in found if share.is_busy is is_busy] for is_busy in (True, False))
    alone = ", ".join(
        f"{_ALONE[share.part]} {share.wall_pct:.1f}"
        for share in working
        if share.part in _ALONE and share.wall_pct >= _LEAST_ALONE_PCT
    )
    parts = ", ".join(f"{share.part} {share.wall_pct:.1f}" for share in waiting if share.wall_pct >= _LEAST_PCT)
    busy = round(sum(share.wall_pct for share in working), 1)
    but = f" (nothing but {alone})" if alone else ""
    idle = f", charged to {parts}" if parts else ""
    if not busy and any(share.wall_pct > 0 for share in working):
        return f"GPU busy less than 0.1 %, idle more than 99.9 %{idle}"
    return f"GPU busy {busy:.1f} %{but}, idle {100 - busy:.1f} %{idle}"


def status_sentence(diagnosis: DiagnosisResult) -> str:
    """Say how the run stands where no serious finding says it."""
    busy = f"the GPU is busy {diagnosis.busy_pct:.1f} % of {'the wall time' if diagnosis.per == 'trace' else 'a step'}"
    if diagnosis.status == "empty" and diagnosis.verdict == LOST:
        return (
            "Launch calls are recorded, but none of the work they launched: the profiler lost the GPU's "
            "activity, or could"
            " not record it (WSL2 without support for it, a driver older than nsys, a kernel that failed)."
        )
    if diagnosis.status == "empty":
        return (
            "No kernel, copy or memset is in this scope; if the program used a GPU then, capture with: nsys profile"
            " -t cuda"
        )
    if diagnosis.status == "unseen":
        return f"Cannot be determined: {busy}, but in CUDA graphs whose kernels are not in the trace."
    if diagnosis.status == "healthy":
        kernel = ""
        if diagnosis.top_kernel:
            name, share = fit(readable(diagnosis.top_kernel[0]), 60), diagnosis.top_kernel[1]
            kernel = f" To go on, make kernels faster: {name} takes {share:.1f} % of their time (nsys-insight top)."
        return f"Healthy: {busy}, and the host keeps ahead of it.{kernel}"
    return "" if diagnosis.findings else "No single cause has 1 % of the wall time."


def gain(finding: Finding, per: str) -> str:
    """What a finding costs, in words."""
    if finding.recoverable_ns is None:
        of = "trace" if per == "trace" else finding.of
        return "" if finding.wall_pct is None else f"{finding.wall_pct:.1f} % of the {of}"
    where = "" if per == "trace" else f" a {per}"
    overlaps = ", overlapping" if finding.overlaps else ""
    share = f" ({finding.wall_pct:.1f} %{overlaps})" if finding.wall_pct is not None else ""
    return f"up to {time_text(finding.recoverable_ns)}{where}{share}"


def _lines(diagnosis: DiagnosisResult, width: int, limit: int) -> Iterator[str]:
    for line in headline(diagnosis):
        yield from _wrapped(line, width)
    if status := status_sentence(diagnosis):
        yield from _wrapped(status, width)
    if diagnosis.findings:
        yield ""
    for rank, finding in enumerate(diagnosis.findings[:limit], 1):
        yield from _of_finding(rank, finding, diagnosis.per, width)
    if diagnosis.findings or diagnosis.unjudged:
        yield ""
    if diagnosis.findings:
        more = "; full text of each finding: --format markdown" if len(diagnosis.findings) > AT_LENGTH else ""
        if limit < len(diagnosis.findings):
            yield f"{limit} of {len(diagnosis.findings)} findings; --limit 0 shows all"
        yield from _hanging(f"For details: {diagnosis.findings[0].command}, and so on{more}", width, 2)
    if diagnosis.unjudged:
        unknown = "; ".join(f"{one.what} ({one.how})" for one in diagnosis.unjudged)
        yield from _hanging(f"Cannot be determined: {unknown}", width, 2)


def _of_finding(rank: int, finding: Finding, per: str, width: int) -> Iterator[str]:
    cost = gain(finding, per)
    place = f" [{finding.place}]" if finding.place else ""
    title = f"{rank}. {finding.severity.upper()} {finding.title}{': ' + cost if cost else ''}"
    yield from _hanging(title, width, 3)
    yield from _hanging(f"   {finding.evidence}{place} (see {finding.report})", width, 3)
    unless = ""
    if rank <= AT_LENGTH:
        for one in finding.also:
            yield from _hanging(f"   also: {one.evidence} (see {one.report})", width, 5)
        unless = f" Unless {finding.caveat[0].lower()}{finding.caveat[1:]}"
    yield from _hanging(f"   do: {finding.action}{unless}", width, 5)


def _hanging(text: str, width: int, indent: int) -> Iterator[str]:
    """Wrap a text, all lines but the first indented; the first keeps the spaces that it begins with."""
    lead = text[: len(text) - len(text.lstrip())]
    first = _wrapped(text.strip(), width - len(lead))[0]
    yield lead + first
    if rest := printable(text.strip())[len(first) :].strip():
        yield from (" " * indent + line for line in _wrapped(rest, width - indent))


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap a text, and keep numbers with their units."""
    joined = re.sub(r"(?<=\d) (?=(?:%|[nµm]?s|[KMG]iB|GB/s)(?!\w))", _JOIN, printable(text))
    return [line.replace(_JOIN, " ") for line in wrap(joined, width)]


def _steps(diagnosis: DiagnosisResult) -> str:
    steps = diagnosis.steps
    if not steps["steady_count"]:
        why = f" ({steps['reason']})" if not steps["method"] and steps["reason"] else ""
        return f"No steps were found{why}: this is the whole scope, with its start-up"
    whole = "scope" if diagnosis.trace["scope"] else "trace"
    part = f", {100 * steps['steps_ns'] / steps['wall_ns']:.1f} % of the {whole}" if steps["wall_ns"] else ""
    number = "1 steady step" if steps["steady_count"] == 1 else f"{steps['steady_count']:,} steady steps"
    return f"{number} ({diagnosis.told_by}, confidence {steps['confidence']}){part}"


def _file(diagnosis: DiagnosisResult) -> str:
    scope = " ".join(words(diagnosis.trace["scope"]))
    of = f"Rank {diagnosis.run.rank}, " if diagnosis.run else ""
    return f"{of}{diagnosis.trace['file']}{' ' + scope if scope else ''}"
