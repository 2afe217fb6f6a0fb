"""Rules over ncu's metrics: one `.sql` file each, which says what it looks for, what proves it, and what to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight import packs
from nsys_insight.errors import UsageError
from nsys_insight.ncu.measured import metrics_of
from nsys_insight.paths import queries_folder
from nsys_insight.sql_file import flow, split

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_insight.ncu.measured import Measured

SEVERITIES = ("CRITICAL", "WARNING", "INFO")


@dataclass(frozen=True)
class Rule:
    """One rule. `actions` says what to do by implementation type, and a type that is not there is not judged.

    `evidence` names the columns of `ncu_kernels` that the condition is about; the SQL returns `launch` and these.
    `ncu_rules` names the rules of ncu's own whose estimated saving belongs to this one, with a word of their text.
    """

    name: str
    title: str
    severity: str
    evidence: tuple[str, ...]
    actions: dict[str, str]
    sql: str
    params: dict[str, Any] = field(default_factory=dict)
    ncu_rules: dict[str, str] = field(default_factory=dict)

    def statement(self) -> str:
        """Return the SQL with its thresholds written in."""
        return packs.bind(self.sql, self.params)


@dataclass(frozen=True)
class Finding:
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
class Unjudged:
    """A rule that could not be judged on a launch, and the metrics that it lacks."""

    launch: int
    rule: str
    metrics: tuple[str, ...]


@cache
def all_rules() -> tuple[Rule, ...]:
    """All rules, in alphabetical order."""
    return tuple(parse(path) for path in sorted((queries_folder() / "ncu").glob("*.sql")))


def parse(path: Path) -> Rule:
    """Read a rule's file.

    Raises:
        UsageError: Its header is missing or not complete.
    """
    import tomllib

    header, sql = split(path.read_text(encoding="utf-8"))
    try:
        facts = tomllib.loads(header or "")
        return Rule(
            name=path.stem,
            title=facts["title"],
            severity=SEVERITIES[SEVERITIES.index(facts["severity"])],
            evidence=tuple(facts["evidence"]),
            actions={kind: flow(action) for kind, action in facts["actions"].items()},
            sql=sql,
            params={name: entry["default"] for name, entry in facts.get("params", {}).items()},
            ncu_rules=facts.get("ncu_rules", {}),
        )
    except (tomllib.TOMLDecodeError, KeyError, ValueError) as error:
        raise UsageError(f"the header of {path.name} is not complete: {error}") from None


def judge(measured: Measured) -> tuple[list[Finding], list[Unjudged]]:
    """Run all rules over all launches: what they found, the worst first, and what they could not judge."""
    kernels = {row["launch"]: row for row in measured.rows("FROM ncu_kernels ORDER BY launch")}
    collected: dict[int, set[str]] = {}
    for row in measured.rows("SELECT launch, metric FROM ncu_metrics WHERE value IS NOT NULL OR text IS NOT NULL"):
        collected.setdefault(row["launch"], set()).add(row["metric"])
    remarks = measured.rows("FROM ncu_rules WHERE speedup_type = 'global' AND speedup_pct > 0 ORDER BY ALL")
    findings, unjudged = [], []
    for rule in all_rules():
        fired = {row.pop("launch"): row for row in measured.rows(rule.statement())}
        for launch, kernel in kernels.items():
            action = rule.actions.get(kernel["implementation"])
            if action is None:
                continue
            if launch in fired:
                of_launch = [remark for remark in remarks if remark["launch"] == launch]
                saving, estimate = _estimate(rule, of_launch)
                findings.append(
                    Finding(launch, rule.name, rule.severity, rule.title, fired[launch], action, saving, estimate)
                )
            elif missing := _missing(rule, kernel, collected.get(launch, set())):
                unjudged.append(Unjudged(launch, rule.name, missing))
    findings.sort(key=lambda one: (SEVERITIES.index(one.severity), -(one.saving_pct or 0), one.rule, one.launch))
    return findings, unjudged


def _estimate(rule: Rule, remarks: list[dict[str, Any]]) -> tuple[float | None, str | None]:
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


def _missing(rule: Rule, kernel: dict[str, Any], collected: set[str]) -> tuple[str, ...]:
    """The metrics for want of which a rule could not be judged; a ratio of zero requests is not one of them.

    Where several metrics would do, the first stands for all.
    """
    lacking = [
        next(metric for metric in metrics if metric not in collected)
        for column, metrics in ((column, metrics_of().get(column, ())) for column in rule.evidence)
        if kernel.get(column) in (None, "unknown") and not set(metrics) <= collected
    ]
    return tuple(dict.fromkeys(lacking))
