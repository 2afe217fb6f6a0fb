"""Evaluate ncu's metrics: rules (a `.sql` file each in `queries/ncu_rules`), and targets for a tuned kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nsys_insight.ncu.data import NcuData, read_column_metrics
from nsys_insight.packs.rules import SEVERITIES, Rule, read_rules
from nsys_insight.paths import read_catalog
from nsys_insight.sql.quoting import literal


@dataclass(frozen=True, kw_only=True)
class NcuRule(Rule):
    """One rule.

    Attributes:
        evidence: The columns of `ncu_kernels` that the condition uses. The SQL returns `launch` and these.
        actions: What to do, by implementation type. The rule skips types that are not listed.
        ncu_rules: ncu's own rules whose estimated saving applies here, each with a word that its text must contain.
    """

    evidence: tuple[str, ...]
    actions: dict[str, str]
    ncu_rules: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KernelFinding:
    """A rule that fired on a launch, with the values that prove it.

    `saving_pct` is the share of the launch's duration that ncu itself estimates could be saved; None without an
    estimate. `estimate` names the ncu rule that made it. Estimates of one launch overlap.
    """

    launch: int
    rule: str
    severity: str
    title: str
    evidence: dict[str, Any]
    action: str
    saving_pct: float | None
    estimate: str | None


@dataclass(frozen=True)
class SkippedRule:
    """A rule that could not be evaluated on a launch, and the metrics that are missing."""

    launch: int
    rule: str
    metrics: tuple[str, ...]


def load_ncu_rules() -> tuple[NcuRule, ...]:
    """Load all rules, in alphabetical order."""
    return read_rules("ncu_rules", NcuRule)


def evaluate_rules(ncu_data: NcuData) -> tuple[list[KernelFinding], list[SkippedRule]]:
    """Run all rules on all launches. Return the findings, the worst first, and the rules that lacked metrics."""
    kernels = {row["launch"]: row for row in ncu_data.rows("FROM ncu_kernels ORDER BY launch")}
    collected_metrics: dict[int, set[str]] = {}
    for row in ncu_data.rows("SELECT launch, metric FROM ncu_metrics WHERE value IS NOT NULL OR text IS NOT NULL"):
        collected_metrics.setdefault(row["launch"], set()).add(row["metric"])
    remarks = ncu_data.rows("FROM ncu_rules WHERE speedup_type = 'global' AND speedup_pct > 0 ORDER BY ALL")
    findings, skipped_rules = [], []
    for rule in load_ncu_rules():
        evidence_by_launch = {row.pop("launch"): row for row in ncu_data.rows(rule.statement())}
        for launch, kernel in kernels.items():
            action = rule.actions.get(kernel["implementation"])
            if action is None:
                continue
            if launch in evidence_by_launch:
                launch_remarks = [remark for remark in remarks if remark["launch"] == launch]
                saving, estimate = _find_estimate(rule, launch_remarks)
                findings.append(
                    KernelFinding(
                        launch,
                        rule.name,
                        rule.severity,
                        rule.title,
                        evidence_by_launch[launch],
                        action,
                        saving,
                        estimate,
                    )
                )
            elif missing_metrics := _find_missing_metrics(rule, kernel, collected_metrics.get(launch, set())):
                skipped_rules.append(SkippedRule(launch, rule.name, missing_metrics))
    findings.sort(
        key=lambda finding: (
            SEVERITIES.index(finding.severity), -(finding.saving_pct or 0), finding.rule, finding.launch
        )
    )  # fmt: skip
    return findings, skipped_rules


def _find_estimate(rule: NcuRule, remarks: list[dict[str, Any]]) -> tuple[float | None, str | None]:
    """Find the largest saving that ncu's matching rules estimate, and the name of that rule."""
    return max(
        (
            (remark["speedup_pct"], remark["rule"])
            for remark in remarks
            for name, word in rule.ncu_rules.items()
            if name in remark["rule"] and word.lower() in remark["description"].lower()
        ),
        default=(None, None),
    )


def _find_missing_metrics(rule: NcuRule, kernel: dict[str, Any], collected_metrics: set[str]) -> tuple[str, ...]:
    """Find the metrics that a rule needs but the launch lacks. A ratio over zero requests does not count as missing.

    If a column accepts several metrics, only the first is named.
    """
    missing_metrics = [
        next(metric for metric in metrics if metric not in collected_metrics)
        for column, metrics in ((column, read_column_metrics().get(column, ())) for column in rule.evidence)
        if kernel.get(column) in (None, "unknown") and not set(metrics) <= collected_metrics
    ]
    return tuple(dict.fromkeys(missing_metrics))


@dataclass(frozen=True)
class Target:
    """A target for a kernel in % (`queries/catalog/ncu_targets.toml`), and the value that the kernel reaches."""

    target: str
    value_pct: float
    target_pct: float

    @property
    def is_met(self) -> bool:
        """Return whether the kernel reaches the target."""
        return self.value_pct >= self.target_pct


def check_targets(ncu_data: NcuData) -> dict[int, list[Target]]:
    """Check the targets of each launch: those that apply to its kernel and whose metrics were collected."""
    selects = [
        f"SELECT launch, {number} AS number, {literal(entry['target'])} AS target,"
        f" ({entry['value']})::DOUBLE AS value_pct, {entry['above']}::DOUBLE AS target_pct"
        f" FROM ncu_kernels WHERE ({entry['value']}) IS NOT NULL AND {entry['only']}"
        for number, entry in enumerate(read_catalog("ncu_targets")["targets"])
    ]
    targets_by_launch: dict[int, list[Target]] = {}
    for row in ncu_data.rows(" UNION ALL ".join(selects) + " ORDER BY launch, number"):
        targets_by_launch.setdefault(row["launch"], []).append(
            Target(row["target"], row["value_pct"], row["target_pct"])
        )
    return targets_by_launch
