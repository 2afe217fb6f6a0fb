"""The report written out for people: for a terminal, and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from nsys_insight.ncu import phrases
from nsys_insight.render import table
from nsys_insight.render.markdown import write as write_markdown
from nsys_insight.session.answer import Answer, Column, of_rows
from nsys_insight.text.cells import printable, wrap
from nsys_insight.text.kernel_names import fit, readable

if TYPE_CHECKING:
    from nsys_insight.ncu.diff import Compared
    from nsys_insight.ncu.report import KernelReport, NcuReport, Priority

_PRIORITIES = 10
_SUMMARY = (
    ("name", "VARCHAR"), ("implementation", "VARCHAR"), ("launches", "BIGINT"), ("duration_ns", "DOUBLE"),
    ("share_pct", "DOUBLE"), ("bound", "VARCHAR"), ("sm_pct", "DOUBLE"), ("dram_pct", "DOUBLE"),
    ("occupancy_pct", "DOUBLE"), ("worst", "VARCHAR"),
)  # fmt: skip
DIFF = (
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
    page = _Terminal(stream, width)
    page.paragraph(phrases.headline(report))
    stream.write("\n")
    page.rows(_summary(report))
    for place, kernel in enumerate(report.kernels[:detailed], 1):
        page.kernel(place, kernel)
    page.rows(_to_do(report))


def summary(report: NcuReport, stream: TextIO, width: int | None) -> None:
    """Write all kernels in one table, what to do first, and the first strategy of each kernel."""
    page = _Terminal(stream, width)
    page.paragraph(phrases.headline(report))
    stream.write("\n")
    page.rows(_summary(report))
    page.rows(_to_do(report))
    for kernel in report.kernels:
        name = fit(readable(kernel.row["kernel"]), 60)
        if not kernel.strategies:
            page.paragraph(f"{name}: no strategy follows from the measurements")
            continue
        first = kernel.strategies[0]
        page.paragraph(f"{name}: {first.title}; {phrases.strategy(kernel, first)[0]}")


@dataclass(frozen=True)
class _Terminal:
    """A terminal, `width` columns wide; None is as wide as it takes."""

    stream: TextIO
    width: int | None

    def kernel(self, place: int, kernel: KernelReport) -> None:
        """Write about one kernel at length."""
        name = readable(kernel.row["kernel"])
        self.paragraph(f"{place}. {name if self.width is None else fit(name, self.width - 4)}")
        self.paragraph(phrases.subject(kernel), "   ")
        self.stream.write("\n")
        self.facts(kernel.diagnostics)
        for finding in kernel.findings:
            self.paragraph(f"{finding.severity.upper()}: {finding.title} [{finding.rule}]", "   ")
            self.paragraph(f"because {phrases.proof(finding)}{phrases.estimate(finding)}", "     ")
            self.paragraph(f"do: {finding.action}", "     ")
        if not kernel.findings:
            self.paragraph("No rule applies.", "   ")
        for line in phrases.beside(kernel):
            self.paragraph(line, "   ")
        self.stream.write("\n")
        for number, one in enumerate(kernel.strategies, 1):
            self.paragraph(f"Strategy {number}: {one.title}", "   ")
            for line in phrases.strategy(kernel, one):
                self.paragraph(line, "     ")
        self.stream.write("\n" if kernel.strategies else "")
        self.facts({one.target: said for one, said in phrases.targets(kernel)}, "Targets", 48)
        self.facts(kernel.conclusion, "Conclusion")
        for line in kernel.next:
            self.paragraph(f"Next: {line}", "   ")
        self.stream.write("\n")

    def paragraph(self, words: str, indent: str = "") -> None:
        """Write lines of whole words."""
        for line in wrap(printable(words), (self.width or 10_000) - len(indent)):
            self.stream.write(f"{indent}{line}\n")

    def facts(self, said: dict[str, str], title: str = "", wide: int = 17) -> None:
        """Write names with what is said of each beside them."""
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


def markdown(report: NcuReport, stream: TextIO, detailed: int) -> None:
    """Write the report as Markdown, to be kept beside the code."""
    stream.write(f"# ncu report: {_escaped(report.name)}\n\n{_escaped(phrases.headline(report))}\n\n")
    _plain_table(_summary(report), stream)
    for place, kernel in enumerate(report.kernels[:detailed], 1):
        stream.write(
            f"\n## {place}. {_escaped(fit(readable(kernel.row['kernel']), 100))}\n\n{phrases.subject(kernel)}\n\n"
        )
        stream.write("| diagnostic | |\n|---|---|\n")
        stream.writelines(f"| {name} | {_escaped(said)} |\n" for name, said in kernel.diagnostics.items())
        stream.write("\n")
        for finding in kernel.findings:
            stream.write(f"- **{finding.severity.upper()}: {finding.title}** (`{finding.rule}`)\n")
            proof = _escaped(phrases.proof(finding)) + phrases.estimate(finding)
            stream.write(f"  because {proof}.\n  *Do:* {_escaped(finding.action)}\n")
        if not kernel.findings:
            stream.write("No rule applies.\n")
        stream.writelines(f"\n{_escaped(line)}\n" for line in phrases.beside(kernel))
        if kernel.strategies:
            stream.write("\n")
        stream.writelines(
            f"{number}. **{_escaped(one.title)}**: {'. '.join(map(_escaped, phrases.strategy(kernel, one)))}\n"
            for number, one in enumerate(kernel.strategies, 1)
        )
        if kernel.targets:
            stream.write("\n| target | |\n|---|---|\n")
            stream.writelines(f"| {one.target} | {said} |\n" for one, said in phrases.targets(kernel))
        stream.write("\n| conclusion | |\n|---|---|\n")
        stream.writelines(f"| {key} | {_escaped(said)} |\n" for key, said in kernel.conclusion.items())
        stream.write("\nNext:\n\n")
        stream.writelines(f"- {_escaped(line)}\n" for line in kernel.next)
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
    return _answer("Before and after", DIFF, rows, "ncu diff")


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
