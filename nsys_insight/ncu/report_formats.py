"""Write the report: for a terminal, as Markdown, and as one JSON object."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from nsys_insight.ncu.report import KernelReport, NcuReport, Priority, format_dimensions
from nsys_insight.ncu.strategies import Strategy, scale_saving
from nsys_insight.render import markdown, table
from nsys_insight.render.json_ import SCHEMA, make_plain
from nsys_insight.session.answer import Answer, Column, build_answer
from nsys_insight.text.cells import printable, wrap
from nsys_insight.text.kernel_names import fit, make_readable
from nsys_insight.text.units import count_noun, label, value, value_or_unknown

if TYPE_CHECKING:
    from nsys_insight.ncu.rules import KernelFinding, Target

_MAX_PRIORITIES = 10
_SUMMARY_COLUMNS = (
    ("name", "VARCHAR"), ("implementation", "VARCHAR"), ("launches", "BIGINT"), ("duration_ns", "DOUBLE"),
    ("share_pct", "DOUBLE"), ("bound", "VARCHAR"), ("sm_pct", "DOUBLE"), ("dram_pct", "DOUBLE"),
    ("occupancy_pct", "DOUBLE"), ("worst", "VARCHAR"),
)  # fmt: skip
_PRIORITY_COLUMNS = (
    ("what", "VARCHAR"), ("name", "VARCHAR"), ("severity", "VARCHAR"), ("saving_ns", "DOUBLE"),
    ("saving_pct", "DOUBLE"), ("basis", "VARCHAR"),
)  # fmt: skip
_MAX_REMARKS = 3


def write_text(report: NcuReport, stream: TextIO, width: int | None, detailed: int) -> None:
    """Write the report for a terminal: all kernels in one table, and details of the first `detailed` kernels."""
    page = _Terminal(stream, width)
    page.write_paragraph(_format_headline(report))
    stream.write("\n")
    page.write_rows(_build_summary(report))
    for number, kernel in enumerate(report.kernels[:detailed], 1):
        page.write_kernel(number, kernel)
    page.write_rows(_build_priorities(report))


def write_summary(report: NcuReport, stream: TextIO, width: int | None) -> None:
    """Write all kernels in one table, what to do first, and the first strategy of each kernel."""
    page = _Terminal(stream, width)
    page.write_paragraph(_format_headline(report))
    stream.write("\n")
    page.write_rows(_build_summary(report))
    page.write_rows(_build_priorities(report))
    for kernel in report.kernels:
        name = fit(make_readable(kernel.row["kernel"]), 60)
        if not kernel.strategies:
            page.write_paragraph(f"{name}: no strategy follows from the measurements")
            continue
        first_strategy = kernel.strategies[0]
        page.write_paragraph(f"{name}: {first_strategy.title}; {_format_strategy(kernel, first_strategy)[0]}")


@dataclass(frozen=True)
class _Terminal:
    """A terminal that is `width` columns wide; None means that lines are not wrapped."""

    stream: TextIO
    width: int | None

    def write_kernel(self, kernel_number: int, kernel: KernelReport) -> None:
        """Write the details of one kernel."""
        name = make_readable(kernel.row["kernel"])
        self.write_paragraph(f"{kernel_number}. {name if self.width is None else fit(name, self.width - 4)}")
        self.write_paragraph(_summarize_kernel(kernel), "   ")
        self.stream.write("\n")
        self.write_fields(kernel.diagnostics)
        for finding in kernel.findings:
            self.write_paragraph(f"{finding.severity.upper()}: {finding.title} [{finding.rule}]", "   ")
            self.write_paragraph(f"because {_format_evidence(finding)}{_format_estimate(finding)}", "     ")
            self.write_paragraph(f"do: {finding.action}", "     ")
        if not kernel.findings:
            self.write_paragraph("No rule applies.", "   ")
        for line in _format_remarks(kernel):
            self.write_paragraph(line, "   ")
        self.stream.write("\n")
        for number, strategy in enumerate(kernel.strategies, 1):
            self.write_paragraph(f"Strategy {number}: {strategy.title}", "   ")
            for line in _format_strategy(kernel, strategy):
                self.write_paragraph(line, "     ")
        self.stream.write("\n" if kernel.strategies else "")
        self.write_fields({target.target: text for target, text in _format_targets(kernel)}, "Targets", 48)
        self.write_fields(kernel.conclusion, "Conclusion")
        for line in kernel.next_steps:
            self.write_paragraph(f"Next: {line}", "   ")
        self.stream.write("\n")

    def write_paragraph(self, words: str, indent: str = "") -> None:
        """Write a text in lines, wrapped between words."""
        for line in wrap(printable(words), (self.width or 10_000) - len(indent)):
            self.stream.write(f"{indent}{line}\n")

    def write_fields(self, texts: dict[str, str], title: str = "", name_width: int = 17) -> None:
        """Write one line per name, with its text."""
        self.stream.write(f"   {title}\n" if title and texts else "")
        for name, text in texts.items():
            first_line, *other_lines = wrap(printable(text), (self.width or 10_000) - name_width - 3)
            self.stream.write(f"   {name:<{name_width}}{first_line}\n")
            self.stream.writelines(f"{'':<{name_width + 3}}{line}\n" for line in other_lines)
        self.stream.write("\n")

    def write_rows(self, answer: Answer) -> None:
        """Write a table."""
        table.write(table.build_lines(answer, None, self.width, full_names=False), self.stream, color=False)
        self.stream.write("\n")


def write_markdown(report: NcuReport, stream: TextIO, detailed: int) -> None:
    """Write the report as Markdown."""
    stream.write(f"# ncu report: {_escape(report.name)}\n\n{_escape(_format_headline(report))}\n\n")
    _write_table(_build_summary(report), stream)
    for number, kernel in enumerate(report.kernels[:detailed], 1):
        name = _escape(fit(make_readable(kernel.row["kernel"]), 100))
        stream.write(f"\n## {number}. {name}\n\n{_summarize_kernel(kernel)}\n\n")
        stream.write("| diagnostic | |\n|---|---|\n")
        stream.writelines(f"| {section} | {_escape(text)} |\n" for section, text in kernel.diagnostics.items())
        stream.write("\n")
        for finding in kernel.findings:
            stream.write(f"- **{finding.severity.upper()}: {finding.title}** (`{finding.rule}`)\n")
            evidence = _escape(_format_evidence(finding)) + _format_estimate(finding)
            stream.write(f"  because {evidence}.\n  *Do:* {_escape(finding.action)}\n")
        if not kernel.findings:
            stream.write("No rule applies.\n")
        stream.writelines(f"\n{_escape(line)}\n" for line in _format_remarks(kernel))
        if kernel.strategies:
            stream.write("\n")
        stream.writelines(
            f"{rank}. **{_escape(strategy.title)}**: {'. '.join(map(_escape, _format_strategy(kernel, strategy)))}\n"
            for rank, strategy in enumerate(kernel.strategies, 1)
        )
        if kernel.targets:
            stream.write("\n| target | |\n|---|---|\n")
            stream.writelines(f"| {target.target} | {text} |\n" for target, text in _format_targets(kernel))
        stream.write("\n| conclusion | |\n|---|---|\n")
        stream.writelines(f"| {key} | {_escape(text)} |\n" for key, text in kernel.conclusion.items())
        stream.write("\nNext:\n\n")
        stream.writelines(f"- {_escape(line)}\n" for line in kernel.next_steps)
    stream.write("\n")
    _write_table(_build_priorities(report), stream)


def _build_summary(report: NcuReport) -> Answer:
    rows = [
        (
            kernel.row["kernel"], kernel.row["implementation"], len(kernel.launches), kernel.row["duration_ns"],
            kernel.share_pct, kernel.conclusion["class"], kernel.row["sm_pct"], kernel.row["dram_pct"],
            kernel.row["occupancy_pct"], kernel.worst_severity or None,
        )
        for kernel in report.kernels
    ]  # fmt: skip
    return _build_answer("Kernels", _SUMMARY_COLUMNS, rows)


def _build_priorities(report: NcuReport) -> Answer:
    def build_row(priority: Priority) -> tuple[Any, ...]:
        finding, name = priority.finding, priority.kernel.row["kernel"]
        return finding.title, name, finding.severity, priority.saving_ns, priority.saving_pct, priority.basis

    rows = [build_row(priority) for priority in report.priorities[:_MAX_PRIORITIES]]
    return _build_answer("What to do first", _PRIORITY_COLUMNS, rows)


def _build_answer(title: str, columns: tuple[tuple[str, str], ...], rows: list[tuple[Any, ...]]) -> Answer:
    """Make an answer of rows, so that the renderers of all reports can write it."""
    return build_answer(
        [Column(*column) for column in columns], rows, report="ncu report", title=title, empty="nothing"
    )


def _write_table(answer: Answer, stream: TextIO) -> None:
    markdown.write(answer, stream, None, full_names=False)


def _escape(words: str) -> str:
    return printable(words).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _format_targets(kernel: KernelReport) -> list[tuple[Target, str]]:
    """Format each target with the value that the kernel reaches and the value that it should reach."""
    return [
        (target, f"{'met' if target.is_met else 'missed'}: {target.value_pct:.1f}% of at least {target.target_pct:g}%")
        for target in kernel.targets
    ]


def _format_strategy(kernel: KernelReport, strategy: Strategy) -> list[str]:
    """Format a strategy: what it may save, the reasons for it, what it costs, and its conflicts."""
    gain = f"saves {strategy.min_pct:.0f} to {strategy.max_pct:.0f}% of the kernel's time, effort {strategy.effort}"
    if kernel.wall_pct is not None:
        low, high = scale_saving(kernel.wall_pct, strategy.min_pct), scale_saving(kernel.wall_pct, strategy.max_pct)
        gain += f"; {low:.2g} to {high:.2g}% of the trace's wall time, of which the kernel takes {kernel.wall_pct:.3g}%"
    costs = [
        f"{abs(count):,} {'more' if count > 0 else less_word} {resource}"
        for count, less_word, resource in (
            (strategy.more_registers, "fewer", "registers per thread"),
            (strategy.more_shared_bytes, "less", "bytes of shared memory per block"),
        )
        if count
    ]
    numbers = {other_strategy.name: number for number, other_strategy in enumerate(kernel.strategies, 1)}
    return [
        gain,
        f"because {'; '.join(f'{finding.rule}: {_format_evidence(finding)}' for finding in strategy.findings)}",
        *([f"takes {' and '.join(costs)}"] if costs else []),
        *(f"not together with {numbers[name]}: {reason}" for name, reason in strategy.conflicts.items()),
        f"calculated as: {strategy.gain}",
    ]


def _format_headline(report: NcuReport) -> str:
    """Format the headline: the number of launches and kernels, the GPU, and the total time."""
    launches = sum(len(kernel.launches) for kernel in report.kernels)
    total_ns = sum(kernel.total_ns for kernel in report.kernels)
    total_time = value("duration_ns", total_ns) if total_ns else "unknown time"
    kernels = count_noun(len(report.kernels), "kernel")
    headline = (
        f"{report.name}: {count_noun(launches, 'launch', 'launches')} of {kernels} on"
        f" {report.gpu or 'no GPU'}, {total_time} under ncu, which serializes kernels: compare shares, not durations."
    )
    return " ".join([headline, *report.notes])


def _summarize_kernel(kernel: KernelReport) -> str:
    """Summarize a kernel: its class, its launch configuration, and its time under ncu and in the trace."""
    row, trace_row = kernel.row, kernel.trace_row
    summary = (
        f"{kernel.conclusion['class']}; {kernel.conclusion['implementation']}; grid"
        f" {format_dimensions(row, 'grid')}, block {format_dimensions(row, 'block')}; {_format_launches(kernel)}"
        f" {value_or_unknown('duration_ns', row['duration_ns'])}"
    )
    if kernel.share_pct is not None:
        summary += f", {value('share_pct', kernel.share_pct)} of the time under ncu"
    if trace_row:
        summary += (
            f"; in the trace {trace_row['calls']:,} calls, {value('total_ns', trace_row['total_ns'])},"
            f" {value('share_pct', trace_row['kernel_time_pct'])} of kernel time (matched by {trace_row['match']})"
        )
        if trace_row["recoverable_ns"]:
            summary += (
                f", {value('total_ns', trace_row['recoverable_ns'])} less at its ceiling ({trace_row['ceiling']})"
            )
        if trace_row["recoverable_per_token_ns"]:
            summary += f", {value('total_ns', trace_row['recoverable_per_token_ns'])} per token"
    return summary


def _format_launches(kernel: KernelReport) -> str:
    count = len(kernel.launches)
    return "one launch profiled," if count == 1 else f"{count:,} launches profiled, typically"


def _format_evidence(finding: KernelFinding) -> str:
    """Format the values that prove a finding."""
    return ", ".join(f"{label(column)} {value(column, number)}" for column, number in finding.evidence.items())


def _format_estimate(finding: KernelFinding) -> str:
    """Format ncu's estimate for a finding; "" without an estimate."""
    if finding.saving_pct is None:
        return ""
    return f"; ncu's {finding.estimate} estimates {value('saving_pct', finding.saving_pct)} less time"


def _format_remarks(kernel: KernelReport) -> list[str]:
    """Format what only ncu's own rules found, and which rules lack metrics."""
    reported_rules = {finding.estimate for finding in kernel.findings}
    sentences = [
        f"ncu's {remark['rule']} (up to {value('speedup_pct', remark['speedup_pct'])}):"
        f" {remark['description'].partition('. ')[0].removesuffix('.')}."
        for remark in kernel.remarks
        if remark["rule"] not in reported_rules and (remark["speedup_pct"] or 0) >= 5
    ][:_MAX_REMARKS]
    if kernel.missing_metrics:
        rules = sorted({rule for rules in kernel.missing_metrics.values() for rule in rules})
        sentences.append(
            f"Not collected: {len(kernel.missing_metrics)} metrics, without which these rules could not be judged:"
            f" {len(rules)} (profile with --set full, import the raw page; --format json names them)."
        )
    return sentences


def write_json(report: NcuReport, stream: TextIO) -> None:
    """Write the complete report: every kernel with all its values, findings and remarks."""
    report_object = {
        "schema": SCHEMA,
        "report": "ncu report",
        "name": report.name,
        "gpu": report.gpu,
        "notes": report.notes,
        "kernels": [_build_kernel_object(kernel) for kernel in report.kernels],
        "priorities": [
            {
                "kernel": priority.kernel.row["kernel"],
                **{name: getattr(priority.finding, name) for name in ("launch", "rule", "severity", "title", "action")},
                "saving_pct": priority.saving_pct,
                "saving_ns": priority.saving_ns,
                "basis": priority.basis,
            }
            for priority in report.priorities
        ],
    }
    json.dump(report_object, stream, indent=2, allow_nan=False)
    stream.write("\n")


def _build_kernel_object(kernel: KernelReport) -> dict[str, Any]:
    def scale(saving_pct: float) -> float | None:
        return None if kernel.wall_pct is None else scale_saving(kernel.wall_pct, saving_pct)

    return {
        **make_plain(kernel.row),
        "launches": list(kernel.launches),
        "total_ns": kernel.total_ns,
        "share_pct": kernel.share_pct,
        "trace": make_plain(kernel.trace_row) if kernel.trace_row else None,
        "diagnostics": kernel.diagnostics,
        "findings": [
            make_plain({name: value for name, value in vars(finding).items() if name != "launch"})
            for finding in kernel.findings
        ],
        "strategies": [
            {
                "strategy": strategy.name,
                "title": strategy.title,
                "effort": strategy.effort,
                "rules": [finding.rule for finding in strategy.findings],
                "least_saving_pct": strategy.min_pct,
                "most_saving_pct": strategy.max_pct,
                "least_wall_pct": scale(strategy.min_pct),
                "most_wall_pct": scale(strategy.max_pct),
                "more_registers": strategy.more_registers,
                "more_shared_bytes": strategy.more_shared_bytes,
                "conflicts": strategy.conflicts,
            }
            for strategy in kernel.strategies
        ],
        "next": kernel.next_steps,
        "wall_pct": kernel.wall_pct,
        "unjudged": kernel.missing_metrics,
        "remarks": list(map(make_plain, kernel.remarks)),
        "conclusion": kernel.conclusion,
        "targets": [
            {"target": goal.target, "value_pct": goal.value_pct, "target_pct": goal.target_pct, "met": goal.is_met}
            for goal in kernel.targets
        ],
    }
