"""Rank findings: causes above their symptoms, one of each family, the most severe and the largest saving first."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from nsys_insight.diagnose.findings import CAPTURE_FAMILY, FAILED_FAMILY, Finding
from nsys_insight.packs.rules import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


MAX_FINDINGS = 7
# A cause explains a symptom that is at most this many times its own saving; a larger one has other causes too. Each
# saving is uncertain by a factor of two, as the profiler makes the host up to twice as slow.
MOST_EXPLAINED = 4.0
_LAUNCH_FAMILY = "launch"
# Shares are rounded when they are printed.
_MAX_SUM_PCT = 100.05


def rank(findings: Iterable[Finding], first: str | None = None) -> tuple[Finding, ...]:
    """Put each family, its symptoms and what blocks its cure under one finding, and sort by severity and saving.

    A remedy whose time overlaps with other findings comes after the problems of its severity. `first` is the family
    of the verdict: unless critical, it comes first among the findings of its severity. What saves more of a step than
    the findings before it leave overlaps with them.
    """
    sort_key = partial(_make_sort_key, first=first)
    findings = sorted(findings, key=sort_key)
    families: dict[str, list[Finding]] = {}
    for finding in findings:
        families.setdefault(_find_cause(finding, findings).family, []).append(finding)
    leaders = sorted((_lead(members, family) for family, members in families.items()), key=sort_key)
    # Missing data can make the other findings wrong, so they are reported even after seven larger findings.
    incomplete = [finding for finding in leaders[MAX_FINDINGS:] if finding.family == CAPTURE_FAMILY]
    return _mark_overlaps((*leaders[: MAX_FINDINGS - len(incomplete)], *incomplete))


def add_run_findings(run_findings: Iterable[Finding], findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Put the findings about a run before those of the same severity about one of its ranks, which are ranked.

    An exception is launch overhead that costs more than the lateness. All ranks run the same program, so its cure makes
    the hosts of all ranks faster.
    """
    run_findings = rank(run_findings)
    run_saving_ns = max((finding.recoverable_ns or 0 for finding in run_findings), default=math.inf)

    def is_larger(finding: Finding) -> bool:
        low_ns, high_ns = finding.saving_low_ns, finding.recoverable_ns or 0
        # Where the step without nsys is unknown, the host may be twice as fast without it.
        return finding.family == _LAUNCH_FAMILY and (high_ns / 2 if low_ns is None else low_ns) > run_saving_ns

    larger, smaller = filter(is_larger, findings), (finding for finding in findings if not is_larger(finding))
    return tuple(sorted((*larger, *run_findings, *smaller), key=rank_severity)[:MAX_FINDINGS])


def _mark_overlaps(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Mark findings that, with those before them, would save more than all of a step."""
    marked_findings, total_pct = [], 0.0
    for finding in findings:
        adds_up = not finding.overlaps and finding.share_of == "step" and finding.recoverable_ns is not None
        share_pct = (finding.wall_pct or 0.0) if adds_up else 0.0
        if total_pct and share_pct and total_pct + share_pct > _MAX_SUM_PCT:
            marked_findings.append(replace(finding, overlaps=True))
            continue
        marked_findings.append(finding)
        total_pct += share_pct
    return tuple(marked_findings)


def _find_cause(finding: Finding, findings: Sequence[Finding], visited: tuple[Finding, ...] = ()) -> Finding:
    """Return the finding below whose family this one is shown: its cause, or the cause of this cause; else itself.

    A cause explains what is at most some times as large. If it is smaller, but what it explains cannot be cured before
    it is gone, it is shown below that.
    """
    explains = (cause for cause in findings if cause.does_explain(finding) and _is_large_enough(cause, finding))
    blocked = (other for other in findings if finding.does_block(other) and not _is_large_enough(finding, other))
    parent = next((other for other in (*explains, *blocked) if other not in visited), None)
    return _find_cause(parent, findings, (*visited, finding)) if parent else finding


def _is_large_enough(cause: Finding, finding: Finding) -> bool:
    """Return whether a finding can be the cause of all of another one, by what both save."""
    if not cause.recoverable_ns or not finding.recoverable_ns:
        return True
    return finding.recoverable_ns <= MOST_EXPLAINED * cause.recoverable_ns


def _lead(members: Sequence[Finding], family: str) -> Finding:
    """Return the finding that a family is shown as, with the other members below it.

    It is a cause, not one of the symptoms, and a problem rather than its remedy.
    """
    causes = [member for member in members if member.family == family]
    leader = next((member for member in causes if not member.overlaps), causes[0])
    other_members = tuple(member for member in members if member is not leader)
    severities = [leader.severity]
    if leader.recoverable_ns is None:
        # A cause without a saving of its own is as severe as its symptoms.
        severities += [member.severity for member in other_members if leader.does_explain(member)]
    return replace(leader, severity=min(severities, key=SEVERITIES.index), also=other_members)


def _make_sort_key(finding: Finding, first: str | None) -> tuple[Any, ...]:
    # The possible saving; of a cause without one, that of its largest symptom.
    symptom_times = (member.recoverable_ns for member in finding.also if finding.does_explain(member))
    time_ns = finding.recoverable_ns or max((time for time in symptom_times if time), default=None)
    return (
        *rank_severity(finding),
        # Of the critical ones, only start-up has no saving that it can be sorted by.
        finding.family != first and (finding.severity != "critical" or first == "outside"),
        time_ns is None,
        finding.overlaps,
        -(time_ns or 0),
        -(finding.saving_low_ns or 0),
        -(finding.wall_pct or 0),
        finding.name,
    )


def rank_severity(finding: Finding) -> tuple[bool, int]:
    """Return what findings are sorted by first. If the run failed, no other finding is reliable."""
    return finding.family != FAILED_FAMILY, SEVERITIES.index(finding.severity)
