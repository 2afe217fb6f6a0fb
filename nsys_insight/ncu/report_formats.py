"""The report written out: for a terminal, as Markdown, and as one JSON object."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from nsys_insight.ncu.report import dimensions
from nsys_insight.ncu.strategies import step_pct
from nsys_insight.render import markdown, table
from nsys_insight.render.json_ import SCHEMA, plain
from nsys_insight.session.answer import Answer, Column, of_rows
from nsys_insight.text.cells import printable, wrap
from nsys_insight.text.kernel_names import fit, readable
from nsys_insight.text.units import label, value

if TYPE_CHECKING:
    from nsys_insight.ncu.report import KernelReport, NcuReport, Priority
    from nsys_insight.ncu.rules import KernelFinding, Target
    from nsys_insight.ncu.strategies import Strategy

_PRIORITIES = 10
_SUMMARY = (
    ("name", "VARCHAR"), ("implementation", "VARCHAR"), ("launches", "BIGINT"), ("duration_ns", "DOUBLE"),
    ("share_pct", "DOUBLE"), ("bound", "VARCHAR"), ("sm_pct", "DOUBLE"), ("dram_pct", "DOUBLE"),
    ("occupancy_pct", "DOUBLE"), ("worst", "VARCHAR"),
)  # fmt: skip
_TO_DO = (
    ("what", "VARCHAR"), ("name", "VARCHAR"), ("severity", "VARCHAR"), ("saving_ns", "DOUBLE"),
    ("saving_pct", "DOUBLE"), ("basis", "VARCHAR"),
)  # fmt: skip
_MOST_REMARKS = 3


def write_text(report: NcuReport, stream: TextIO, width: int | None, detailed: int) -> None:
    """Write the report for a terminal: all kernels in one table, the first `detailed` of them at length."""
    page = _Terminal(stream, width)
    page.paragraph(_headline(report))
    stream.write("\n")
    page.rows(_summary(report))
    for place, kernel in enumerate(report.kernels[:detailed], 1):
        page.kernel(place, kernel)
    page.rows(_to_do(report))


def write_summary(report: NcuReport, stream: TextIO, width: int | None) -> None:
    """Write all kernels in one table, what to do first, and the first strategy of each kernel."""
    page = _Terminal(stream, width)
    page.paragraph(_headline(report))
    stream.write("\n")
    page.rows(_summary(report))
    page.rows(_to_do(report))
    for kernel in report.kernels:
        name = fit(readable(kernel.row["kernel"]), 60)
        if not kernel.strategies:
            page.paragraph(f"{name}: no strategy follows from the measurements")
            continue
        first = kernel.strategies[0]
        page.paragraph(f"{name}: {first.title}; {_strategy_lines(kernel, first)[0]}")


@dataclass(frozen=True)
class _Terminal:
    """A terminal, `width` columns wide; None is as wide as it takes."""

    stream: TextIO
    width: int | None

    def kernel(self, place: int, kernel: KernelReport) -> None:
        """Write about one kernel at length."""
        name = readable(kernel.row["kernel"])
        self.paragraph(f"{place}. {name if self.width is None else fit(name, self.width - 4)}")
        self.paragraph(_kernel_summary(kernel), "   ")
        self.stream.write("\n")
        self.fields(kernel.diagnostics)
        for finding in kernel.findings:
            self.paragraph(f"{finding.severity.upper()}: {finding.title} [{finding.rule}]", "   ")
            self.paragraph(f"because {_evidence(finding)}{_estimate(finding)}", "     ")
            self.paragraph(f"do: {finding.action}", "     ")
        if not kernel.findings:
            self.paragraph("No rule applies.", "   ")
        for line in _remarks(kernel):
            self.paragraph(line, "   ")
        self.stream.write("\n")
        for number, one in enumerate(kernel.strategies, 1):
            self.paragraph(f"Strategy {number}: {one.title}", "   ")
            for line in _strategy_lines(kernel, one):
                self.paragraph(line, "     ")
        self.stream.write("\n" if kernel.strategies else "")
        self.fields({one.target: said for one, said in _target_lines(kernel)}, "Targets", 48)
        self.fields(kernel.conclusion, "Conclusion")
        for line in kernel.next:
            self.paragraph(f"Next: {line}", "   ")
        self.stream.write("\n")

    def paragraph(self, words: str, indent: str = "") -> None:
        """Write lines of whole words."""
        for line in wrap(printable(words), (self.width or 10_000) - len(indent)):
            self.stream.write(f"{indent}{line}\n")

    def fields(self, said: dict[str, str], title: str = "", wide: int = 17) -> None:
        """Write a line for each name and its text."""
        self.stream.write(f"   {title}\n" if title and said else "")
        for name, words in said.items():
            first, *others = wrap(printable(words), (self.width or 10_000) - wide - 3)
            self.stream.write(f"   {name:<{wide}}{first}\n")
            self.stream.writelines(f"{'':<{wide + 3}}{line}\n" for line in others)
        self.stream.write("\n")

    def rows(self, answer: Answer) -> None:
        """Write a table."""
        table.write(table.lines(answer, None, self.width, full_names=False), self.stream, color=False)
        self.stream.write("\n")


def write_markdown(report: NcuReport, stream: TextIO, detailed: int) -> None:
    """Write the report as Markdown."""
    stream.write(f"# ncu report: {_escaped(report.name)}\n\n{_escaped(_headline(report))}\n\n")
    _plain_table(_summary(report), stream)
    for place, kernel in enumerate(report.kernels[:detailed], 1):
        stream.write(
            f"\n## {place}. {_escaped(fit(readable(kernel.row['kernel']), 100))}\n\n{_kernel_summary(kernel)}\n\n"
        )
        stream.write("| diagnostic | |\n|---|---|\n")
        stream.writelines(f"| {name} | {_escaped(said)} |\n" for name, said in kernel.diagnostics.items())
        stream.write("\n")
        for finding in kernel.findings:
            stream.write(f"- **{finding.severity.upper()}: {finding.title}** (`{finding.rule}`)\n")
            proof = _escaped(_evidence(finding)) + _estimate(finding)
            stream.write(f"  because {proof}.\n  *Do:* {_escaped(finding.action)}\n")
        if not kernel.findings:
            stream.write("No rule applies.\n")
        stream.writelines(f"\n{_escaped(line)}\n" for line in _remarks(kernel))
        if kernel.strategies:
            stream.write("\n")
        stream.writelines(
            f"{number}. **{_escaped(one.title)}**: {'. '.join(map(_escaped, _strategy_lines(kernel, one)))}\n"
            for number, one in enumerate(kernel.strategies, 1)
        )
        if kernel.targets:
            stream.write("\n| target | |\n|---|---|\n")
            stream.writelines(f"| {one.target} | {said} |\n" for one, said in _target_lines(kernel))
        stream.write("\n| conclusion | |\n|---|---|\n")
        stream.writelines(f"| {key} | {_escaped(said)} |\n" for key, said in kernel.conclusion.items())
        stream.write("\nNext:\n\n")
        stream.writelines(f"- {_escaped(line)}\n" for line in kernel.next)
    stream.write("\n")
    _plain_table(_to_do(report), stream)


def _summary(report: NcuReport) -> Answer:
    rows = [
        (
            kernel.row["kernel"], kernel.row["implementation"], len(kernel.launches), kernel.row["duration_ns"],
            kernel.share_pct, kernel.conclusion["class"], kernel.row["sm_pct"], kernel.row["dram_pct"],
            kernel.row["occupancy_pct"], kernel.worst or None,
        )
        for kernel in report.kernels
    ]  # fmt: skip
    return _answer("Kernels", _SUMMARY, rows)


def _to_do(report: NcuReport) -> Answer:
    def row(one: Priority) -> tuple[Any, ...]:
        return (
            one.finding.title, one.kernel.row["kernel"], one.finding.severity, one.saving_ns, one.saving_pct, one.basis,
        )  # fmt: skip

    rows = [row(one) for one in report.priorities[:_PRIORITIES]]
    return _answer("What to do first", _TO_DO, rows)


def _answer(title: str, columns: tuple[tuple[str, str], ...], rows: list[tuple[Any, ...]]) -> Answer:
    """Make rows an answer, which the renderers of every report can write."""
    return of_rows([Column(*column) for column in columns], rows, report="ncu report", title=title, empty="nothing")


def _plain_table(answer: Answer, stream: TextIO) -> None:
    markdown.write(answer, stream, None, full_names=False)


def _escaped(words: str) -> str:
    return printable(words).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _target_lines(kernel: KernelReport) -> list[tuple[Target, str]]:
    """Each target, with what the kernel reaches and should reach."""
    return [
        (one, f"{'met' if one.is_met else 'missed'}: {one.value_pct:.1f} % of at least {one.target_pct:g} %")
        for one in kernel.targets
    ]


def _strategy_lines(kernel: KernelReport, one: Strategy) -> list[str]:
    """Say what a strategy may save, why it is one, what it takes and what it does not go with."""
    gain = f"saves {one.least_pct:.0f} to {one.most_pct:.0f} % of the kernel's time, effort {one.effort}"
    if kernel.wall_pct is not None:
        low, high = step_pct(kernel.wall_pct, one.least_pct), step_pct(kernel.wall_pct, one.most_pct)
        gain += f"; {low:.2g} to {high:.2g} % of the trace's wall, of which the kernel takes {kernel.wall_pct:.3g} %"
    takes = [
        f"{abs(count):,} {'more' if count > 0 else fewer} {what}"
        for count, fewer, what in (
            (one.more_registers, "fewer", "registers per thread"),
            (one.more_shared_bytes, "less", "bytes of shared memory per block"),
        )
        if count
    ]
    numbers = {other.name: number for number, other in enumerate(kernel.strategies, 1)}
    return [
        gain,
        f"because {'; '.join(f'{finding.rule}: {_evidence(finding)}' for finding in one.findings)}",
        *([f"takes {' and '.join(takes)}"] if takes else []),
        *(f"not together with {numbers[name]}: {why}" for name, why in one.conflicts.items()),
        f"calculated as: {one.gain}",
    ]


def _headline(report: NcuReport) -> str:
    """Say how many launches of how many kernels there are, on which GPU, and how long they took."""
    launches = sum(len(kernel.launches) for kernel in report.kernels)
    spent = value("duration_ns", sum(kernel.total_ns for kernel in report.kernels))
    kernels = _many(len(report.kernels), "kernel", "kernels")
    return (
        f"{report.name}: {_many(launches, 'launch', 'launches')} of {kernels} on"
        f" {report.gpu or 'no GPU'}, {spent} under ncu, which serializes kernels: compare shares, not durations."
    )


def _many(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _kernel_summary(kernel: KernelReport) -> str:
    """Say what a kernel is, how it was launched, and what it takes under ncu and in the trace."""
    row, trace = kernel.row, kernel.trace
    said = (
        f"{kernel.conclusion['class']}; {kernel.conclusion['implementation']}; grid {dimensions(row, 'grid')}, block"
        f" {dimensions(row, 'block')}; {_launches(kernel)}"
        f" {value('duration_ns', row['duration_ns'])}, {value('share_pct', kernel.share_pct)} of the time under ncu"
    )
    if trace:
        said += (
            f"; in the trace {trace['calls']:,} calls, {value('total_ns', trace['total_ns'])},"
            f" {value('share_pct', trace['kernel_time_pct'])} of kernel time (matched by {trace['match']})"
        )
        if trace["recoverable_ns"]:
            said += f", {value('total_ns', trace['recoverable_ns'])} less at its ceiling ({trace['ceiling']})"
        if trace["recoverable_per_token_ns"]:
            said += f", {value('total_ns', trace['recoverable_per_token_ns'])} per token"
    return said


def _launches(kernel: KernelReport) -> str:
    many = len(kernel.launches)
    return "one launch profiled," if many == 1 else f"{many:,} launches profiled, typically"


def _evidence(finding: KernelFinding) -> str:
    """Write the values that prove a finding."""
    return ", ".join(f"{label(column)} {value(column, given)}" for column, given in finding.evidence.items())


def _estimate(finding: KernelFinding) -> str:
    """Say what ncu estimates of it; nothing where it does not."""
    if finding.saving_pct is None:
        return ""
    return f"; ncu's {finding.estimate} estimates {value('saving_pct', finding.saving_pct)} less time"


def _remarks(kernel: KernelReport) -> list[str]:
    """What only ncu's own rules found, and which rules lack metrics."""
    carried = {finding.estimate for finding in kernel.findings}
    said = [
        f"ncu's {one['rule']} (up to {value('speedup_pct', one['speedup_pct'])}):"
        f" {one['description'].partition('. ')[0].removesuffix('.')}."
        for one in kernel.remarks
        if one["rule"] not in carried and (one["speedup_pct"] or 0) >= 5
    ][:_MOST_REMARKS]
    if kernel.unjudged:
        lacking = "; ".join(f"{metric} for {', '.join(rules)}" for metric, rules in kernel.unjudged.items())
        said.append(
            f"Some rules could not be judged (profile with --set full, import the raw page). Not collected: {lacking}."
        )
    return said


def write_json(report: NcuReport, stream: TextIO) -> None:
    """Write the whole report: every kernel with all its values, findings and remarks."""
    object_ = {
        "schema": SCHEMA,
        "report": "ncu report",
        "name": report.name,
        "gpu": report.gpu,
        "notes": report.notes,
        "kernels": [_kernel_object(kernel) for kernel in report.kernels],
        "priorities": [
            {
                "kernel": one.kernel.row["kernel"],
                "launch": one.kernel.row["launch"],
                "rule": one.finding.rule,
                "severity": one.finding.severity,
                "title": one.finding.title,
                "action": one.finding.action,
                "saving_pct": one.saving_pct,
                "saving_ns": one.saving_ns,
                "basis": one.basis,
            }
            for one in report.priorities
        ],
    }
    json.dump(object_, stream, indent=2, allow_nan=False)
    stream.write("\n")


def _kernel_object(kernel: KernelReport) -> dict[str, Any]:
    return {
        **{column: plain(given) for column, given in kernel.row.items()},
        "launches": list(kernel.launches),
        "total_ns": kernel.total_ns,
        "share_pct": kernel.share_pct,
        "trace": {column: plain(given) for column, given in kernel.trace.items()} if kernel.trace else None,
        "diagnostics": kernel.diagnostics,
        "findings": [
            {
                "rule": one.rule,
                "severity": one.severity,
                "title": one.title,
                "evidence": {column: plain(given) for column, given in one.evidence.items()},
                "action": one.action,
                "saving_pct": one.saving_pct,
                "estimate": one.estimate,
            }
            for one in kernel.findings
        ],
        "strategies": [
            {
                "strategy": one.name,
                "title": one.title,
                "effort": one.effort,
                "rules": [finding.rule for finding in one.findings],
                "least_saving_pct": one.least_pct,
                "most_saving_pct": one.most_pct,
                "least_wall_pct": None if kernel.wall_pct is None else step_pct(kernel.wall_pct, one.least_pct),
                "most_wall_pct": None if kernel.wall_pct is None else step_pct(kernel.wall_pct, one.most_pct),
                "more_registers": one.more_registers,
                "more_shared_bytes": one.more_shared_bytes,
                "conflicts": one.conflicts,
            }
            for one in kernel.strategies
        ],
        "next": kernel.next,
        "wall_pct": kernel.wall_pct,
        "unjudged": kernel.unjudged,
        "remarks": [{column: plain(given) for column, given in one.items()} for one in kernel.remarks],
        "conclusion": kernel.conclusion,
        "targets": [
            {"target": one.target, "value_pct": one.value_pct, "target_pct": one.target_pct, "met": one.is_met}
            for one in kernel.targets
        ],
    }
