"""The report as one JSON object, with raw values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

from nsys_insight.ncu.strategies import step_pct
from nsys_insight.render.json_ import SCHEMA, plain

if TYPE_CHECKING:
    from nsys_insight.ncu.report import KernelReport, NcuReport


def write(report: NcuReport, stream: TextIO) -> None:
    """Write the whole report: every kernel with all its values, findings and remarks."""
    object_ = {
        "schema": SCHEMA,
        "report": "ncu report",
        "name": report.name,
        "gpu": report.gpu,
        "notes": report.notes,
        "kernels": [_kernel(kernel) for kernel in report.kernels],
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


def _kernel(kernel: KernelReport) -> dict[str, Any]:
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
