"""What must be known of a run beside the numbers: its clocks, who is missing, what could not be matched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts.ranks.matching import apart
from nsys_insight.facts.ranks.pipeline import bubble
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.rank_numbers import Numbered
    from nsys_insight.facts.ranks.judge import Table
    from nsys_insight.facts.ranks.pipeline import Pipeline
    from nsys_insight.facts.ranks.run import Run

# A difference of clocks, or a drift, that is worth a word.
_APART_NS, _DRIFT = 1_000_000, 1e-6
_NAMED = 8
ONLY_MESSAGES = (
    "these ranks only exchange messages (SendRecv): which rank waits for which can be determined only where "
    "they also reduce or gather"
)
# A stage sets the pace that works longer than the others by this share of a step.
_PACE = 0.05


def clock_said(found: Run, began: Sequence[int | None]) -> str:
    """Say how well the clocks of several traces are known to agree; of one trace, how well its GPUs' clocks do."""
    error = f"the ends of collectives agree within {_time(found.error)}"
    if len(found.clocks) == 1:
        return f"{error}, so the order of arrivals closer than that is unknown"
    first = next(iter(found.clocks))
    most, drift = 0.0, 0.0
    for trace, clock in found.clocks.items():
        began_apart = apart(began[first], began[trace])
        if began_apart is not None:
            most = max(most, abs(clock.offset + began_apart))
        drift = max(drift, abs(clock.drift))
    were = f"differed by up to {_time(most)}" if most >= _APART_NS else ""
    drifted = f"drifted by up to {drift * 1e6:.2g} µs a second" if drift >= _DRIFT else ""
    before = " and ".join(filter(None, [were, drifted]))
    said = f"the traces' clocks {before} and are aligned" if before else "the traces' clocks are aligned"
    ends = f"by the ends of collectives, which then agree within {_time(found.error)}"
    return f"{said} {ends}: the order of arrivals closer than that is unknown"


def missing_said(told: Numbered) -> str | None:
    """Say which ranks have no trace, and which ran nothing of NCCL in theirs."""
    silent = sorted(told.silent.values())
    said = []
    if told.missing:
        said.append(f"{_listed(told.missing)} {'is' if len(told.missing) == 1 else 'are'} not in these traces")
    if silent:
        said.append(f"{_listed(silent)} ran no NCCL kernels")
    return "; ".join(said) or None


def doubled_said(told: Numbered, alike: Sequence[tuple[str, str]]) -> str | None:
    """Say which traces hold what others do, and which say that they are one rank."""
    said = [f"{one} has the same kernels at the same times as {other}, and is left out" for one, other in alike]
    if told.doubled:
        number, labels = told.doubled
        names = f"{', '.join(labels[:_NAMED])}{' and others' if len(labels) > _NAMED else ''}"
        said.append(
            f"{names} each claim to be rank {number}, so the ranks are numbered in order; they may be from several runs"
        )
    return "; ".join(said) or None


def unmatched_said(
    found: Run, told: Numbered, counted_by: int | None = None, *, has_messages: bool = False
) -> str | None:
    """Say which ranks, collectives and messages are not matched with others, and by whose capture steps are counted."""
    members = {at for of in found.collectives for at in of.group.ranks}
    outside = [told.numbers[at] for at in range(len(found.ranks)) if at not in members]
    partial = sum(len(of.whole) - int(of.whole.sum()) for of in found.collectives)
    total = sum(len(of.whole) for of in found.collectives)
    said = []
    if outside:
        said.append(f"the collectives of {_listed(outside)} cannot be matched with those of other ranks")
    main = found.main.group.ranks
    if len(main) < len(members):
        of = _listed([told.numbers[at] for at in main])
        said.append(f"lateness is judged in the largest communicator, that of {of}")
    if partial:
        said.append(f"{partial:,} of {total:,} collectives are not in the capture of every rank, and are not counted")
        if counted_by is not None:
            said.append(f"steps are counted as in the capture of rank {told.numbers[counted_by]}")
    if has_messages:
        said.append("messages from rank to rank (SendRecv) are not matched, and count as transfer")
    return "; ".join(said) or None


def pipeline_said(
    stages: Pipeline | None, told: Numbered, members: Sequence[int], parts: tuple[Table, Table, Table, Table]
) -> str | None:
    """Say how long the stages of a pipeline usually wait for each other, and whether one sets the pace.

    `parts` are the length of each step on each rank, how long it works and waits in it, and by how much it is late.
    """
    import numpy as np

    wall, busy, waiting, late = parts
    if stages is None:
        return None
    of = f"{stages.stages} stages" if stages.chunks == 1 else f"{stages.ranks} ranks with {stages.chunks} stages each"
    if stages.ranks == 2:  # messages do not tell whether each has several stages
        of = "2 ranks"
    said = (
        f"the ranks are a pipeline of {of}, {stages.messages} messages a step from one to the next:"
        f" in the usual step a rank waits {bubble(wall, waiting, late):.0%} of the time for the others"
    )
    if stages.ideal is not None:
        once = ", each through both ranks once," if stages.ranks == 2 else ""
        many = "this number of" if stages.chunks == 1 else f"{stages.messages // stages.chunks}"
        said += (
            f"; with {many} equal microbatches{once} and stages that take equally long, it would be {stages.ideal:.0%}"
        )
    usual = np.median(busy[~late.any(axis=1)], axis=0)
    longest = int(usual.argmax())
    others = float(np.median(np.delete(usual, longest)))
    if usual[longest] - others >= _PACE * float(np.median(wall)):
        by = f"{usual[longest] / others:.2g} times as long as the median of the others" if others else "alone"
        said += f"; rank {told.numbers[members[longest]]} works {by}, which sets the pace"
    return said


def _time(ns: float) -> str:
    return value("time_ns", ns)


def _listed(ranks: Sequence[int]) -> str:
    names = ", ".join(map(str, ranks[:_NAMED])) + (f" and {len(ranks) - _NAMED} more" if len(ranks) > _NAMED else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {names}"
