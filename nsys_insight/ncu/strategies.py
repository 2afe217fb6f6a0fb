"""What can be done about a kernel, ranked: `queries/strategies`, one file each.

A strategy answers findings of the rules, and has a gain from the kernel's own numbers, an effort, and what it takes of
registers and shared memory; which two do not go together follows from that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

from nsys_insight.packs.rules import Rule, rules_of
from nsys_insight.paths import query
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from nsys_insight.ncu.data import NcuData
    from nsys_insight.ncu.rules import KernelFinding

EFFORTS = ("low", "medium", "high")
# Minimum gain of a listed strategy, in % of the kernel's time.
_WORTH_PCT = 1.0
# The least gain of a strategy, as a share of the wait that it removes and of the most gain: without one cause, warps
# wait for the next. Checked against ten changes on an H200 (docs/ncu/worked-example.md).
_HALF = 0.5


@dataclass(frozen=True, kw_only=True)
class StrategyRule(Rule):
    """A strategy. `rules` names the rules whose findings it answers, `gain` says how the gain is calculated.

    The SQL returns, by launch, `waiting_pct` (the part of a warp's time in which it waits for what goes), `most_pct`
    (what is gained until the next unit is busy all the time), `more_registers` and `more_shared_bytes`.
    """

    effort: str
    rules: tuple[str, ...]
    gain: str


@dataclass(frozen=True)
class Strategy:
    """A strategy for one kernel, with the findings that call for it and what it may save of the kernel's time, in %.

    `conflicts` says of strategies before it why the two do not go together.
    """

    name: str
    title: str
    effort: str
    findings: tuple[KernelFinding, ...]
    least_pct: float
    most_pct: float
    more_registers: int
    more_shared_bytes: int
    gain: str
    conflicts: dict[str, str] = field(default_factory=dict)

    @property
    def middle_pct(self) -> float:
        """The middle of the range, by which strategies are ordered."""
        return (self.least_pct + self.most_pct) / 2


def catalog() -> tuple[StrategyRule, ...]:
    """All strategies, in alphabetical order."""
    return rules_of("strategies", StrategyRule)


def strategies_of(measured: NcuData, findings: list[KernelFinding]) -> dict[int, list[Strategy]]:
    """The strategies of each launch, those that bring most first; at equal gain, those of less effort."""
    by_launch: dict[int, dict[str, KernelFinding]] = {}
    for finding in findings:
        by_launch.setdefault(finding.launch, {})[finding.rule] = finding
    found: dict[int, list[Strategy]] = {}
    for rule in catalog():
        for row in measured.rows(rule.statement()):
            called = tuple(
                by_launch[row["launch"]][name] for name in rule.rules if name in by_launch.get(row["launch"], {})
            )
            most = min(row["most_pct"], 100.0) if row["most_pct"] is not None else None
            if not called or most is None or most < _WORTH_PCT:
                continue
            least = _HALF * min(row["waiting_pct"] or 0, most)
            found.setdefault(row["launch"], []).append(
                Strategy(
                    rule.name, rule.title, rule.effort, called, least, most,
                    int(row["more_registers"] or 0), int(row["more_shared_bytes"] or 0), rule.gain,
                )
            )  # fmt: skip
    for strategies in found.values():
        strategies.sort(key=lambda one: (-one.middle_pct, EFFORTS.index(one.effort), one.name))
    _add_conflicts(measured, found)
    return found


def step_pct(kernel_pct: float, saving_pct: float) -> float:
    """A saving of a kernel's time as a share of a whole, of which the kernel takes `kernel_pct` (Amdahl's law)."""
    return kernel_pct * saving_pct / 100


def _add_conflicts(measured: NcuData, found: dict[int, list[Strategy]]) -> None:
    pairs = [
        (launch, first, second) for launch, strategies in found.items() for first, second in combinations(strategies, 2)
    ]
    needs = [
        (
            number,
            launch,
            first.more_registers,
            first.more_shared_bytes,
            second.more_registers,
            second.more_shared_bytes,
        )
        for number, (launch, first, second) in enumerate(pairs)
        if any((first.more_registers, first.more_shared_bytes))
        and any((second.more_registers, second.more_shared_bytes))
    ]
    if not needs:
        return
    rows = ", ".join(f"({', '.join(map(literal, one))})" for one in needs)
    statement = query("internal/ncu/conflicts").replace("$pairs", f"(VALUES {rows})")
    for row in measured.rows(statement):
        _, first, second = pairs[row["pair"]]
        why = _why(first, second, row)
        if why:
            second.conflicts[first.name] = why


def _why(first: Strategy, second: Strategy, row: dict[str, Any]) -> str:
    """Say why two strategies do not go together, or nothing."""
    for what, one, other in (
        ("registers", first.more_registers, second.more_registers),
        ("shared memory", first.more_shared_bytes, second.more_shared_bytes),
    ):
        if one * other < 0:
            return f"one uses {what}, the other frees it"
    alone = min(row["first_warps"], row["second_warps"])
    if alone > row["both_warps"] and row["both_warps"] < row["enough"]:
        warps = "no block fits" if not row["both_warps"] else f"{row['both_warps']} active warps are left on an SM"
        return f"with both {warps}, with one {alone}"
    return ""
