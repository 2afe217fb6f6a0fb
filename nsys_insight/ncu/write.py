"""The report written out for people: for a terminal, and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from nsys_insight.ncu.report import dimensions
from nsys_insight.render import table
from nsys_insight.render.markdown import write as write_markdown
from nsys_insight.session.answer import Answer, Column, of_rows
from nsys_insight.text.cells import printable, wrap
from nsys_insight.text.kernel_names import fit, readable
from nsys_insight.text.quantities import label, value

if TYPE_CHECKING:
    from nsys_insight.ncu.diff import Compared
    from nsys_insight.ncu.report import KernelReport, NcuReport, Priority
    from nsys_insight.ncu.rules import KernelFinding
    from nsys_insight.ncu.targets import Target

_REMARKS = 3
_PRIORITIES = 10
_SUMMARY = (
    ("name", "VARCHAR"), ("implementation", "VARCHAR"), ("launches", "BIGINT"), ("duration_ns", "DOUBLE"),
    ("share_pct", "DOUBLE"), ("bound", "VARCHAR"), ("sm_pct", "DOUBLE"), ("dram_pct", "DOUBLE"),
    ("occupancy_pct", "DOUBLE"), ("worst", "VARCHAR"),
)  # fmt: skip
_DIFF = (
    ("name", "VARCHAR"), ("before_ns", "DOUBLE"), ("after_ns", "DOUBLE"), ("delta_pct", "DOUBLE"),
    ("verdict", "VARCHAR"), ("metric", "VARCHAR"), ("before", "DOUBLE"), ("after", "DOUBLE"),
    ("new_findings", "VARCHAR"), ("gone_findings", "VARCHAR"), ("match", "VARCHAR"),
)  # fmt: skip
_TO_DO = (
    ("what", "VARCHAR"), ("name", "VARCHAR"), ("severity", "VARCHAR"), ("saving_ns", "DOUBLE"),
    ("saving_pct", "DOUBLE"), ("basis", "VARCHAR"),
)  # fmt: skip


def text(report: NcuReport, stream: TextIO, width: int | None, detailed: int) -> None:
    """Write the report for a terminal: all kernels in one table, the first `detailed` of them at length."""

    def paragraph(words: str, indent: str = "") -> None:
        for line in wrap(printable(words), (width or 10_000) - len(indent)):
            stream.write(f"{indent}{line}\n")

    def facts(said: dict[str, str], title: str = "", wide: int = 16) -> None:
        stream.write(f"   {title}\n" if title and said else "")
        for name, words in said.items():
            first, *others = wrap(printable(words), (width or 10_000) - wide - 3)
            stream.write(f"   {name:<{wide}}{first}\n")
            stream.writelines(f"{'':<{wide + 3}}{line}\n" for line in others)
        stream.write("\n")

    def rows(answer: Answer) -> None:
        table.write(table.lines(answer, None, width, full_names=False), stream, color=False)
        stream.write("\n")

    paragraph(_headline(report))
    stream.write("\n")
    rows(_summary(report))
    for place, kernel in enumerate(report.kernels[:detailed], 1):
        name = readable(kernel.row["kernel"])
        paragraph(f"{place}. {name if width is None else fit(name, width - 4)}")
        paragraph(_subject(kernel), "   ")
        stream.write("\n")
        facts(kernel.diagnostics)
        for finding in kernel.findings:
            paragraph(f"{finding.severity.upper()}: {finding.title} [{finding.rule}]", "   ")
            paragraph(f"because {_proof(finding)}{_estimate(finding)}", "     ")
            paragraph(f"do: {finding.action}", "     ")
        if not kernel.findings:
            paragraph("No rule found anything.", "   ")
        for line in _beside(kernel):
            paragraph(line, "   ")
        stream.write("\n")
        facts({one.target: said for one, said in _targets(kernel)}, "Targets", 48)
        facts(kernel.conclusion, "Conclusion")
    rows(_to_do(report))


def markdown(report: NcuReport, stream: TextIO, detailed: int) -> None:
    """Write the report as Markdown, to be kept beside the code."""
    stream.write(f"# ncu report: {_escaped(report.name)}\n\n{_escaped(_headline(report))}\n\n")
    _plain_table(_summary(report), stream)
    for place, kernel in enumerate(report.kernels[:detailed], 1):
        stream.write(f"\n## {place}. {_escaped(fit(readable(kernel.row['kernel']), 100))}\n\n{_subject(kernel)}\n\n")
        stream.write("| diagnostic | |\n|---|---|\n")
        stream.writelines(f"| {name} | {_escaped(said)} |\n" for name, said in kernel.diagnostics.items())
        stream.write("\n")
        for finding in kernel.findings:
            stream.write(f"- **{finding.severity.upper()}: {finding.title}** (`{finding.rule}`)\n")
            stream.write(
                f"  because {_escaped(_proof(finding))}{_estimate(finding)}.\n  *Do:* {_escaped(finding.action)}\n"
            )
        if not kernel.findings:
            stream.write("No rule found anything.\n")
        stream.writelines(f"\n{_escaped(line)}\n" for line in _beside(kernel))
        if kernel.targets:
            stream.write("\n| target | |\n|---|---|\n")
            stream.writelines(f"| {one.target} | {said} |\n" for one, said in _targets(kernel))
        stream.write("\n| conclusion | |\n|---|---|\n")
        stream.writelines(f"| {key} | {_escaped(said)} |\n" for key, said in kernel.conclusion.items())
    stream.write("\n")
    _plain_table(_to_do(report), stream)


def diff(compared: list[Compared]) -> Answer:
    """Make a comparison an answer, a row a kernel."""
    rows = [
        (
            one.name, one.before_ns, one.after_ns, one.delta_pct, one.verdict, one.metric, one.before_metric,
            one.after_metric, ", ".join(one.new_findings) or None, ", ".join(one.gone_findings) or None, one.match,
        )
        for one in compared
    ]  # fmt: skip
    return _answer("Before and after", _DIFF, rows, "ncu diff")


def _targets(kernel: KernelReport) -> list[tuple[Target, str]]:
    """Say of each target what the kernel reaches, and what it should."""

    def said(one: Target) -> str:
        return f"{'met' if one.is_met else 'missed'}: {one.value_pct:.1f} % of at least {one.target_pct:g} %"

    return [(one, said(one)) for one in kernel.targets]


def _headline(report: NcuReport) -> str:
    launches = sum(len(kernel.launches) for kernel in report.kernels)
    spent = value("duration_ns", sum(kernel.total_ns for kernel in report.kernels))
    kernels = _many(len(report.kernels), "kernel", "kernels")
    return (
        f"{report.name}: {_many(launches, 'launch', 'launches')} of {kernels} on"
        f" {report.gpu or 'no GPU'}, {spent} under ncu, which serialises kernels: compare shares, not durations."
    )


def _many(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _subject(kernel: KernelReport) -> str:
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


def _proof(finding: KernelFinding) -> str:
    return ", ".join(f"{label(column)} {value(column, given)}" for column, given in finding.evidence.items())


def _estimate(finding: KernelFinding) -> str:
    if finding.saving_pct is None:
        return ""
    return f"; ncu's {finding.estimate} estimates {value('saving_pct', finding.saving_pct)} less time"


def _beside(kernel: KernelReport) -> list[str]:
    """What ncu's own rules said and no finding carries, and what could not be judged."""
    carried = {finding.estimate for finding in kernel.findings}
    said = [
        f"ncu's {one['rule']} (up to {value('speedup_pct', one['speedup_pct'])}):"
        f" {one['description'].partition('. ')[0].removesuffix('.')}."
        for one in kernel.remarks
        if one["rule"] not in carried and (one["speedup_pct"] or 0) >= 5
    ][:_REMARKS]
    if kernel.unjudged:
        lacking = "; ".join(f"{metric} for {', '.join(rules)}" for metric, rules in kernel.unjudged.items())
        said.append(
            f"Some rules could not be judged (profile with --set full, import the raw page). Not collected: {lacking}."
        )
    return said


def _summary(report: NcuReport) -> Answer:
    rows = [
        (
            kernel.row["kernel"], kernel.row["implementation"], len(kernel.launches), kernel.row["duration_ns"],
            kernel.share_pct, kernel.conclusion["class"], kernel.row["sm_pct"], kernel.row["dram_pct"],
            kernel.row["occupancy_pct"], kernel.worst or None,
        )
        for kernel in report.kernels
    ]  # fmt: skip
    return _answer("Kernels", _SUMMARY, rows, "ncu report")


def _to_do(report: NcuReport) -> Answer:
    def row(one: Priority) -> tuple[Any, ...]:
        return (
            one.finding.title, one.kernel.row["kernel"], one.finding.severity, one.saving_ns, one.saving_pct, one.basis,
        )  # fmt: skip

    rows = [row(one) for one in report.priorities[:_PRIORITIES]]
    return _answer("What to do first", _TO_DO, rows, "ncu report")


def _answer(title: str, columns: tuple[tuple[str, str], ...], rows: list[tuple[Any, ...]], report: str) -> Answer:
    """Make rows an answer, which the renderers of every report can write."""
    return of_rows([Column(*column) for column in columns], rows, report=report, title=title, empty="nothing")


def _plain_table(answer: Answer, stream: TextIO) -> None:
    write_markdown(answer, stream, None, full_names=False)


def _escaped(words: str) -> str:
    return printable(words).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
