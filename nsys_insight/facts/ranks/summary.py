"""The columns of `rank_run` about what the times do not show: clocks, missing ranks, and what could not be matched."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.arrays import np
from nsys_insight.facts.ranks.matching import MIN_COMMON, subtract_starts
from nsys_insight.facts.ranks.pipeline import Pipeline, measure_bubble
from nsys_insight.facts.ranks.rank import POINT_TO_POINT, Rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.rank_numbers import RankNumbering
    from nsys_insight.facts.ranks.judge import Table
    from nsys_insight.facts.ranks.run import Run

Columns = dict[str, Any]
# The smallest offset and drift of clocks worth reporting.
_MIN_OFFSET_NS, _MIN_DRIFT = 1_000_000, 1e-6
# A stage sets the pace if it works longer than the others by this share of a step.
_PACE_SHARE = 0.05


def summarize_clocks(run: Run, trace_starts: Sequence[int | None]) -> Columns:
    """Return how much the clocks of the traces differ and drift, where it is enough to report."""
    first = next(iter(run.clocks))
    max_offset, max_drift = 0.0, 0.0
    for trace, clock in run.clocks.items():
        start_offset = subtract_starts(trace_starts[first], trace_starts[trace])
        if start_offset is not None:
            max_offset = max(max_offset, abs(clock.offset + start_offset))
        max_drift = max(max_drift, abs(clock.drift))
    return {
        "clocks": len(run.clocks),
        "max_offset_ns": max_offset if max_offset >= _MIN_OFFSET_NS else None,
        "max_drift_ppm": max_drift * 1e6 if max_drift >= _MIN_DRIFT else None,
    }


def summarize_numbers(numbering: RankNumbering, copies: Sequence[tuple[str, str]]) -> Columns:
    """Return the missing ranks, those without NCCL kernels, and traces with the same content or the same number."""
    number, labels = numbering.duplicate or (None, [])
    return {
        "missing_ranks": list(numbering.missing) or None,
        "silent_ranks": sorted(numbering.ranks_without_nccl.values()) or None,
        "copies": list(copies) or None,
        "claimed_rank": number,
        "claimants": list(labels) or None,
    }


def explain_unmatched(ranks: Sequence[Rank]) -> Columns:
    """Return why the collectives of several ranks are not matched; nothing for a single rank."""
    if len(ranks) < 2:
        return {}
    process_ids = {rank.process_id for rank in ranks}
    collectives = [
        Counter(
            group for group, operation in zip(rank.group, rank.operation, strict=True)
            if operation not in POINT_TO_POINT
        )
        for rank in ranks
    ]  # fmt: skip
    if not any(collectives):
        return {"unmatched": "only messages"}
    if len(process_ids) == 1 and len({rank.trace for rank in ranks}) == len(ranks):
        return {"unmatched": "one process", "one_process_id": ranks[0].process_id}
    return {"unmatched": _compare_collectives(collectives), "min_common": MIN_COMMON}


def _compare_collectives(collectives: Sequence[Counter[str]]) -> str:
    if sum(bool(groups) for groups in collectives) < 2:
        return "one rank"
    shared_counts = [
        min(first[group], second[group]) for first, second in combinations(collectives, 2) for group in first & second
    ]
    if not shared_counts:
        return "other runs"
    return "few in common" if max(shared_counts) < MIN_COMMON else "different"


def summarize_matches(run: Run, numbering: RankNumbering, counted_by: int | None) -> Columns:
    """Return which ranks and collectives are not matched, and which groups of ranks do the same side by side."""
    numbers = numbering.numbers
    members = {number for collectives in run.collectives for number in collectives.group.ranks}
    partial = sum(len(collectives.is_complete) - int(collectives.is_complete.sum()) for collectives in run.collectives)
    main = run.main.group.ranks
    return {
        "unmatched_ranks": [numbers[index] for index in range(len(run.ranks)) if index not in members] or None,
        "judged_ranks": [numbers[index] for index in main] if len(main) < len(members) else None,
        "partial_collectives": partial or None,
        "collectives": sum(len(collectives.is_complete) for collectives in run.collectives),
        "counted_by": None if counted_by is None else numbers[counted_by],
        "groups": [
            sorted(sorted(numbers[index] for index in group.ranks) for group in division) for division in run.divisions
        ]
        or None,
    }


def summarize_pipeline(
    stages: Pipeline | None, numbers: Sequence[int], times: tuple[Table, Table, Table, Table]
) -> Columns:
    """Return how long the stages of a pipeline usually wait for each other, and whether one stage sets the pace.

    `numbers` are the ranks of the columns. `times` has, for each step and rank in ns: step time, busy time, waiting
    time, and delay.
    """
    wall, busy, waiting, late = times
    if stages is None:
        return {}
    usual_busy = np.median(busy[~late.any(axis=1)], axis=0)
    longest = int(usual_busy.argmax())
    others_median = float(np.median(np.delete(usual_busy, longest)))
    sets_pace = bool(usual_busy[longest] - others_median >= _PACE_SHARE * float(np.median(wall)))
    return {
        "stages": stages.stages,
        "stage_ranks": stages.ranks,
        "stage_chunks": stages.chunks,
        "stage_messages": stages.messages,
        "bubble_pct": 100 * measure_bubble(wall, waiting, late),
        "ideal_bubble_pct": None if stages.ideal_bubble is None else 100 * stages.ideal_bubble,
        "pace_rank": numbers[longest] if sets_pace else None,
        "pace_ratio": float(usual_busy[longest]) / others_median if sets_pace and others_median else None,
    }
