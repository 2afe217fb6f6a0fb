"""What ncu's metrics are judged by: rules, a `.sql` file each in `queries/ncu_rules`, and targets of a tuned kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.ncu.data import metrics_of_columns
from nsys_insight.packs.rules import SEVERITIES, Rule, rules_of
from nsys_insight.paths import catalog
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from nsys_insight.ncu.data import NcuData


@dataclass(frozen=True, kw_only=True)
class NcuRule(Rule):
    """One rule. `actions` says what to do by implementation type, and a type that is not there is not judged.

    `evidence` names the columns of `ncu_kernels` that the condition is about; the SQL returns `launch` and these.
    `ncu_rules` names the rules of ncu's own whose estimated saving belongs to this one, with a word of their text.
    """

    evidence: tuple[str, ...]
    actions: dict[str, str]
    ncu_rules: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KernelFinding:
    """A rule that fired on a launch, with the values that prove it.

    `saving_pct` is what ncu itself estimates could be saved of the launch's duration, None where it says nothing;
    `estimate` names its rule. Estimates of one launch overlap.
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
class UnjudgedRule:
    """A rule that could not be judged on a launch, and the metrics that it lacks."""

    launch: int
    rule: str
    metrics: tuple[str, ...]


def ncu_rules() -> tuple[NcuRule, ...]:
    """All rules, in alphabetical order."""
    return rules_of("ncu_rules", NcuRule)


def judge(measured: NcuData) -> tuple[list[KernelFinding], list[UnjudgedRule]]:
    """Run all rules over all launches: what they found, the worst first, and what they could not judge."""
    kernels = {row["launch"]: row for row in measured.rows("FROM ncu_kernels ORDER BY launch")}
    collected: dict[int, set[str]] = {}
    for row in measured.rows("SELECT launch, metric FROM ncu_metrics WHERE value IS NOT NULL OR text IS NOT NULL"):
        collected.setdefault(row["launch"], set()).add(row["metric"])
    remarks = measured.rows("FROM ncu_rules WHERE speedup_type = 'global' AND speedup_pct > 0 ORDER BY ALL")
    findings, unjudged = [], []
    for rule in ncu_rules():
        fired = {row.pop("launch"): row for row in measured.rows(rule.statement())}
        for launch, kernel in kernels.items():
            action = rule.actions.get(kernel["implementation"])
            if action is None:
                continue
            if launch in fired:
                of_launch = [remark for remark in remarks if remark["launch"] == launch]
                saving, estimate = _estimate(rule, of_launch)
                findings.append(
                    KernelFinding(launch, rule.name, rule.severity, rule.title, fired[launch], action, saving, estimate)
                )
            elif missing := _missing(rule, kernel, collected.get(launch, set())):
                unjudged.append(UnjudgedRule(launch, rule.name, missing))
    findings.sort(key=lambda one: (SEVERITIES.index(one.severity), -(one.saving_pct or 0), one.rule, one.launch))
    return findings, unjudged


def _estimate(rule: NcuRule, remarks: list[dict[str, Any]]) -> tuple[float | None, str | None]:
    """The largest saving that ncu's own rules about the same thing estimate, and which rule that was."""
    return max(
        (
            (remark["speedup_pct"], remark["rule"])
            for remark in remarks
            for name, word in rule.ncu_rules.items()
            if name in remark["rule"] and word.lower() in remark["description"].lower()
        ),
        default=(None, None),
    )


def _missing(rule: NcuRule, kernel: dict[str, Any], collected: set[str]) -> tuple[str, ...]:
    """The metrics that a rule lacks on a launch; a ratio of zero requests does not count as missing.

    Where several metrics would do, the first stands for all.
    """
    lacking = [
        next(metric for metric in metrics if metric not in collected)
        for column, metrics in ((column, metrics_of_columns().get(column, ())) for column in rule.evidence)
        if kernel.get(column) in (None, "unknown") and not set(metrics) <= collected
    ]
    return tuple(dict.fromkeys(lacking))


@dataclass(frozen=True)
class Target:
    """A target of a kernel in % (`queries/catalog/ncu_targets.toml`), and the value that the kernel reaches."""

    target: str
    value_pct: float
    target_pct: float

    @property
    def is_met(self) -> bool:
        """Whether it is reached."""
        return self.value_pct >= self.target_pct


def targets_of(measured: NcuData) -> dict[int, list[Target]]:
    """The targets of each launch that apply to its kernel and whose metrics were collected."""
    parts = [
        f"SELECT launch, {number} AS number, {literal(one['target'])} AS target,"
        f" ({one['value']})::DOUBLE AS value_pct, {one['above']}::DOUBLE AS target_pct"
        f" FROM ncu_kernels WHERE ({one['value']}) IS NOT NULL AND {one['only']}"
        for number, one in enumerate(catalog("ncu_targets")["targets"])
    ]
    found: dict[int, list[Target]] = {}
    for row in measured.rows(" UNION ALL ".join(parts) + " ORDER BY launch, number"):
        found.setdefault(row["launch"], []).append(Target(row["target"], row["value_pct"], row["target_pct"]))
    return found
