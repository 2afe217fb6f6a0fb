"""The notes on a run that the numbers do not show: its clocks, missing ranks, and what could not be matched."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

from nsys_insight.facts.ranks.matching import MIN_COMMON, subtract_starts
from nsys_insight.facts.ranks.pipeline import measure_bubble
from nsys_insight.facts.ranks.rank import POINT_TO_POINT
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.rank_numbers import RankNumbering
    from nsys_insight.facts.ranks.judge import Table
    from nsys_insight.facts.ranks.pipeline import Pipeline
    from nsys_insight.facts.ranks.rank import Rank
    from nsys_insight.facts.ranks.run import Run

# The smallest offset and drift of clocks worth reporting.
_MIN_OFFSET_NS, _MIN_DRIFT = 1_000_000, 1e-6
_MAX_LISTED, _MAX_GROUPS_LISTED = 8, 3
ONLY_MESSAGES = (
    "these ranks only exchange messages (SendRecv): which rank waits for which can be determined only where "
    "they also reduce or gather"
)
# A stage sets the pace if it works longer than the others by this share of a step.
_PACE_SHARE = 0.05


def describe_clocks(run: Run, trace_starts: Sequence[int | None]) -> str:
    """Return how well the clocks of several traces agree; for a single trace, how well its GPUs' clocks agree."""
    error = f"the ends of collectives agree within {_format_time(run.error)}"
    if len(run.clocks) == 1:
        return f"{error}, so the order of arrivals closer than that is unknown"
    first = next(iter(run.clocks))
    max_offset, max_drift = 0.0, 0.0
    for trace, clock in run.clocks.items():
        start_offset = subtract_starts(trace_starts[first], trace_starts[trace])
        if start_offset is not None:
            max_offset = max(max_offset, abs(clock.offset + start_offset))
        max_drift = max(max_drift, abs(clock.drift))
    offset_text = f"differed by up to {_format_time(max_offset)}" if max_offset >= _MIN_OFFSET_NS else ""
    drift_text = f"drifted by up to {max_drift * 1e6:.2g} µs per second" if max_drift >= _MIN_DRIFT else ""
    before = " and ".join(filter(None, [offset_text, drift_text]))
    subject = f"the traces' clocks {before} and are aligned" if before else "the traces' clocks are aligned"
    ends = f"by the ends of collectives, which then agree within {_format_time(run.error)}"
    return f"{subject} {ends}: the order of arrivals closer than that is unknown"


def describe_missing(numbering: RankNumbering) -> str | None:
    """Return which ranks have no trace, and which ran no NCCL kernels in theirs."""
    silent = sorted(numbering.ranks_without_nccl.values())
    sentences = []
    if numbering.missing:
        verb = "is" if len(numbering.missing) == 1 else "are"
        sentences.append(f"{_list_ranks(numbering.missing)} {verb} not in these traces")
    if silent:
        sentences.append(f"{_list_ranks(silent)} ran no NCCL kernels")
    return "; ".join(sentences) or None


def describe_duplicates(numbering: RankNumbering, copies: Sequence[tuple[str, str]]) -> str | None:
    """Return which traces have the same content as others, and which claim the same rank."""
    sentences = [
        f"{copy} has the same kernels at the same times as {original}, and is left out" for copy, original in copies
    ]
    if numbering.duplicate:
        number, labels = numbering.duplicate
        names = f"{', '.join(labels[:_MAX_LISTED])}{' and others' if len(labels) > _MAX_LISTED else ''}"
        sentences.append(
            f"{names} each claim to be rank {number}, so the ranks are numbered in order; they may be from several runs"
        )
    return "; ".join(sentences) or None


def describe_unaligned(ranks: Sequence[Rank]) -> str | None:
    """Return why the collectives of several ranks are not matched; None for a single rank."""
    collectives = [
        Counter(
            group for group, operation in zip(rank.group, rank.operation, strict=True)
            if operation not in POINT_TO_POINT
        )
        for rank in ranks
    ]  # fmt: skip
    if len(ranks) < 2:
        return None
    if not any(collectives):
        return ONLY_MESSAGES
    return _describe_one_process(ranks) or _describe_collectives(collectives)


def _describe_one_process(ranks: Sequence[Rank]) -> str | None:
    """Say that the traces are captures of one process. None if they are of several."""
    if len({rank.process_id for rank in ranks}) > 1 or len({rank.trace for rank in ranks}) < len(ranks):
        return None
    return (
        f"all traces are of process {ranks[0].process_id}: captures of one process, one after another, are not ranks "
        "(compare two of them: nsys-insight diff)"
    )


def _describe_collectives(collectives: Sequence[Counter[str]]) -> str:
    """Say why the collectives of several ranks are not matched."""
    sentence = "the collectives of these ranks cannot be matched with each other: "
    if sum(bool(groups) for groups in collectives) < 2:
        return f"{sentence}only one of them runs collectives"
    shared_counts = [
        min(first[group], second[group]) for first, second in combinations(collectives, 2) for group in first & second
    ]
    if not shared_counts:
        return (
            f"{sentence}each communicator is in the capture of one rank only, so they belong to different runs, or the "
            "ranks that they communicate with are missing"
        )
    if max(shared_counts) < MIN_COMMON:
        return f"{sentence}no two of them have {MIN_COMMON} or more in common"
    return (
        f"{sentence}their operations, sizes or times differ, so they belong to different runs, or the captures do not "
        "overlap in time"
    )


def describe_unmatched(
    run: Run, numbering: RankNumbering, counted_by: int | None = None, *, has_messages: bool = False
) -> str | None:
    """Return which ranks, collectives and messages are not matched, and by whose capture the steps are counted."""
    numbers = numbering.numbers
    members = {number for collectives in run.collectives for number in collectives.group.ranks}
    unmatched = [numbers[index] for index in range(len(run.ranks)) if index not in members]
    partial = sum(len(collectives.is_complete) - int(collectives.is_complete.sum()) for collectives in run.collectives)
    total = sum(len(collectives.is_complete) for collectives in run.collectives)
    sentences = []
    if unmatched:
        sentences.append(f"the collectives of {_list_ranks(unmatched)} cannot be matched with those of other ranks")
    main = run.main.group.ranks
    if len(main) < len(members):
        main_ranks = _list_ranks([numbers[index] for index in main])
        sentences.append(f"lateness is judged among {main_ranks}")
    if partial:
        sentences.append(
            f"{partial:,} of {total:,} collectives are not in the capture of every rank, and are not counted"
        )
        if counted_by is not None:
            sentences.append(f"steps are counted as in the capture of rank {numbers[counted_by]}")
    if has_messages:
        sentences.append("messages from rank to rank (SendRecv) are not matched, and count as transfer")
    return "; ".join(sentences) or None


def describe_groups(run: Run, numbering: RankNumbering) -> str | None:
    """Return which groups of ranks do the same side by side; None if one communicator has all ranks."""
    sentences: list[str] = []
    for division in run.divisions:
        groups = sorted(sorted(numbering.numbers[index] for index in group.ranks) for group in division)
        names = "; ".join(map(_list_ranks, groups[:_MAX_GROUPS_LISTED]))
        ending = f"; {len(groups) - _MAX_GROUPS_LISTED} more" if len(groups) > _MAX_GROUPS_LISTED else ""
        of_ranks = f"{len(groups)} groups of {len(groups[0])} ranks"
        subject = f"so do {of_ranks}" if sentences else f"{of_ranks} do the same side by side"
        sentences.append(f"{subject}: {names}{ending}")
    return "; ".join(sentences) or None


def describe_pipeline(
    stages: Pipeline | None, numbering: RankNumbering, members: Sequence[int], times: tuple[Table, Table, Table, Table]
) -> str | None:
    """Return how long the stages of a pipeline usually wait for each other, and whether one stage sets the pace.

    `times` has, for each step and rank in ns: step time, busy time, waiting time, and delay.
    """
    import numpy as np

    wall, busy, waiting, late = times
    if stages is None:
        return None
    size = f"{stages.stages} stages" if stages.chunks == 1 else f"{stages.ranks} ranks with {stages.chunks} stages each"
    if stages.ranks == 2:  # messages do not show whether each rank has several stages
        size = "2 ranks"
    sentence = (
        f"the ranks are a pipeline of {size}, {stages.messages} messages per step from one to the next:"
        f" in the usual step a rank waits {measure_bubble(wall, waiting, late):.0%} of the time for the others"
    )
    if stages.ideal_bubble is not None:
        once = ", each through both ranks once," if stages.ranks == 2 else ""
        count = "this number of" if stages.chunks == 1 else f"{stages.messages // stages.chunks}"
        sentence += (
            f"; with {count} equal microbatches{once} and stages that take equally long, it would be"
            f" {stages.ideal_bubble:.0%}"
        )
    usual_busy = np.median(busy[~late.any(axis=1)], axis=0)
    longest = int(usual_busy.argmax())
    others_median = float(np.median(np.delete(usual_busy, longest)))
    if usual_busy[longest] - others_median >= _PACE_SHARE * float(np.median(wall)):
        ratio = usual_busy[longest] / others_median if others_median else None
        share = f"{ratio:.2g} times as long as the median of the others" if ratio is not None else "alone"
        sentence += f"; rank {numbering.numbers[members[longest]]} works {share}, which sets the pace"
    return sentence


def _format_time(ns: float) -> str:
    return value("time_ns", ns)


def _list_ranks(ranks: Sequence[int]) -> str:
    names = ", ".join(map(str, ranks[:_MAX_LISTED]))
    suffix = f" and {len(ranks) - _MAX_LISTED} more" if len(ranks) > _MAX_LISTED else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {names}{suffix}"
