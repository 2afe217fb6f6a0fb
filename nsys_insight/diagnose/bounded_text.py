"""Texts of a bounded length: lines have priorities, and as many are chosen as fit. A short diagnosis is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.diagnose import text as diagnosis_text
from nsys_insight.text.cells import ELLIPSIS, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.diagnose.findings import DiagnosisResult, Finding

DIAGNOSIS_BUDGET = 3_000
LINE_CHARS = 320  # of a line about the program or the step


class Line(NamedTuple):
    """A line of the page; lines of a low priority (a high number) are left out first."""

    priority: float
    text: str
    subject: Any = None  # what it is about


def write_short_diagnosis(diagnosis: DiagnosisResult) -> str:
    """Write a diagnosis for a coding agent: its headline, and findings by rank, as far as they fit in its budget."""
    lines = [Line(0, fit(text, LINE_CHARS)) for text in diagnosis_text.write_headline(diagnosis)]
    if status := diagnosis_text.describe_status(diagnosis):
        lines.append(Line(0, fit(status, LINE_CHARS)))
    for rank, finding in enumerate(diagnosis.findings, 1):
        saving = diagnosis_text.describe_saving(finding, diagnosis.unit)
        title = f"{rank}. {finding.severity} {finding.code} {finding.title}{', ' + saving if saving else ''}"
        place = f" [{finding.place}]" if finding.place else ""
        lines += [
            Line(rank, title),
            Line(rank + 0.1, fit(f" evidence: {finding.evidence}{place}", 420)),
            Line(rank, fit(f" fix: {finding.action}", 300)),
            Line(rank + 0.2, fit(f" skip {diagnosis_text.write_caveat(finding)}", 160)),
            Line(rank + 0.3, f" more: nsys-insight {finding.report}"),
        ]
        lines += [
            Line(rank + 0.4 + place_of / 10, f" also {describe_finding(also, diagnosis, 240)}")
            for place_of, also in enumerate(finding.also)
        ]
    if diagnosis.unassessed:
        subjects = "; ".join(f"{question.subject} ({question.remedy})" for question in diagnosis.unassessed)
        lines.append(Line(4, fit(f"not recorded: {subjects}", LINE_CHARS)))
    chosen_lines = choose_lines(lines, DIAGNOSIS_BUDGET)
    return "".join(f"{line.text}\n" for index, line in enumerate(lines) if index in chosen_lines)


def choose_lines(lines: Sequence[Line], budget: int) -> set[int]:
    """Choose lines by priority while they fit. A line that does not fit is left out; shorter ones may follow."""
    chosen_lines: set[int] = set()
    for index, line in sorted(enumerate(lines), key=lambda item: (item[1].priority, item[0])):
        if len(line.text) < budget:
            chosen_lines.add(index)
            budget -= len(line.text) + 1
    return chosen_lines


def describe_finding(finding: Finding, diagnosis: DiagnosisResult, width: int) -> str:
    """Describe a finding in one line: code, title, saving and remedy."""
    saving = diagnosis_text.describe_saving(finding, diagnosis.unit)
    return fit(f"{finding.code} {finding.title}{', ' + saving if saving else ''}: {finding.action}", width)


def fit(text: str, width: int) -> str:
    """Cut a text at a word, so that it has at most `width` characters."""
    line = printable(text)
    if len(line) <= width:
        return line
    return line[: width - 1].rpartition(" ")[0].rstrip(",;:") + ELLIPSIS
