"""Strategies to speed up a kernel, ranked. Each is a file in `queries/strategies`.

A strategy addresses findings of the rules. It has a gain (calculated from the kernel's own numbers), an effort, and a
need of registers and shared memory. Two strategies conflict if their needs do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

from nsys_insight.packs.rules import Rule, read_rules
from nsys_insight.paths import read_query
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from nsys_insight.ncu.data import NcuData
    from nsys_insight.ncu.rules import KernelFinding

EFFORTS = ("low", "medium", "high")
# Minimum gain of a strategy to be listed, in % of the kernel's time.
_MIN_GAIN_PCT = 1.0
# Least gain of a strategy: this share of the wait that it removes, which the most gain limits. It is less than 1
# because warps without one reason to wait then wait for the next. Checked against ten changes on an H200
# (docs/ncu/worked-example.md).
_MIN_GAIN_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class StrategyRule(Rule):
    """A strategy. `rules` names the rules whose findings it addresses; `gain` describes how the gain is calculated.

    The SQL returns, by launch, `waiting_pct` (the share of a warp's time spent in the waits that the strategy removes),
    `max_pct` (the gain until the next unit is busy all the time), `more_registers` and `more_shared_bytes`.
    """

    effort: str
    rules: tuple[str, ...]
    gain: str


@dataclass(frozen=True)
class Strategy:
    """A strategy for one kernel, with the findings that call for it and its savings in % of the kernel's time.

    `conflicts` gives, by the name of an earlier strategy, the reason why the two cannot be combined.
    """

    name: str
    title: str
    effort: str
    findings: tuple[KernelFinding, ...]
    min_pct: float
    max_pct: float
    more_registers: int
    more_shared_bytes: int
    gain: str
    conflicts: dict[str, str] = field(default_factory=dict)

    @property
    def middle_pct(self) -> float:
        """Return the middle of the range of savings. Strategies are ordered by it."""
        return (self.min_pct + self.max_pct) / 2


def load_strategies() -> tuple[StrategyRule, ...]:
    """Load all strategies, in alphabetical order."""
    return read_rules("strategies", StrategyRule)


def rank_strategies(ncu_data: NcuData, findings: list[KernelFinding]) -> dict[int, list[Strategy]]:
    """Rank the strategies of each launch by gain, the largest first; at equal gain, by effort, the lowest first."""
    findings_by_launch: dict[int, dict[str, KernelFinding]] = {}
    for finding in findings:
        findings_by_launch.setdefault(finding.launch, {})[finding.rule] = finding
    # All strategies read it. Planned for each, it takes half a second: from here on, the macro reads a table.
    ncu_data.connection.execute(
        """CREATE OR REPLACE TABLE stored_roofs AS FROM _ncu_roofs();
            CREATE OR REPLACE MACRO _ncu_roofs() AS TABLE FROM stored_roofs"""
    )
    strategies_by_launch: dict[int, list[Strategy]] = {}
    for rule in load_strategies():
        for row in ncu_data.rows(rule.statement()):
            matching_findings = tuple(
                findings_by_launch[row["launch"]][name]
                for name in rule.rules
                if name in findings_by_launch.get(row["launch"], {})
            )
            max_pct = min(row["max_pct"], 100.0) if row["max_pct"] is not None else None
            if not matching_findings or max_pct is None or max_pct < _MIN_GAIN_PCT:
                continue
            min_pct = _MIN_GAIN_SHARE * min(row["waiting_pct"] or 0, max_pct)
            strategies_by_launch.setdefault(row["launch"], []).append(
                Strategy(
                    rule.name, rule.title, rule.effort, matching_findings, min_pct, max_pct,
                    int(row["more_registers"] or 0), int(row["more_shared_bytes"] or 0), rule.gain,
                )
            )  # fmt: skip
    for strategies in strategies_by_launch.values():
        strategies.sort(key=lambda strategy: (-strategy.middle_pct, EFFORTS.index(strategy.effort), strategy.name))
    _add_conflicts(ncu_data, strategies_by_launch)
    return strategies_by_launch


def scale_saving(kernel_pct: float, saving_pct: float) -> float:
    """Scale a saving of a kernel's time to a total in which the kernel takes `kernel_pct` % (Amdahl's law)."""
    return kernel_pct * saving_pct / 100


def _add_conflicts(ncu_data: NcuData, strategies_by_launch: dict[int, list[Strategy]]) -> None:
    pairs = [
        (launch, first, second)
        for launch, strategies in strategies_by_launch.items()
        for first, second in combinations(strategies, 2)
    ]
    resource_needs = [
        (number, launch, first.more_registers, first.more_shared_bytes, second.more_registers, second.more_shared_bytes)
        for number, (launch, first, second) in enumerate(pairs)
        if any((first.more_registers, first.more_shared_bytes))
        and any((second.more_registers, second.more_shared_bytes))
    ]
    if not resource_needs:
        return
    values = ", ".join(f"({', '.join(map(literal, need))})" for need in resource_needs)
    statement = read_query("internal/ncu/conflicts").replace("$pairs", f"(VALUES {values})")
    for row in ncu_data.rows(statement):
        _, first, second = pairs[row["pair"]]
        reason = _explain_conflict(first, second, row)
        if reason:
            second.conflicts[first.name] = reason


def _explain_conflict(first: Strategy, second: Strategy, row: dict[str, Any]) -> str:
    """Explain why two strategies cannot be combined; "" if they can."""
    for resource, first_change, second_change in (
        ("registers", first.more_registers, second.more_registers),
        ("shared memory", first.more_shared_bytes, second.more_shared_bytes),
    ):
        if first_change * second_change < 0:
            return f"one uses {resource}, the other frees it"
    single_warps = min(row["first_warps"], row["second_warps"])
    if single_warps > row["both_warps"] and row["both_warps"] < row["enough"]:
        warps = "no block fits" if not row["both_warps"] else f"{row['both_warps']} active warps are left on an SM"
        return f"with both {warps}, with one {single_warps}"
    return ""
