"""Compare the ranks or processes of two runs, one by one, and their collectives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.compare.noise import Difference
from nsys_insight.compare.runs import Member, Run, pool_samples
from nsys_insight.text.units import time_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


# How members were paired, in words. Pairs by rank need none.
_MATCH_TEXTS = {
    "GPU": "by the GPU that they used",
    "command": "by their commands",
    "order": "in the order of their process ids: neither ranks, GPUs nor commands tell which belong together",
}


@dataclass(frozen=True)
class MemberPairs:
    """The ranks or processes of two runs.

    Attributes:
        pairs: Those that belong together.
        matched_by: rank, GPU, command, or order.
        unpaired: Those that only one run has.
    """

    pairs: tuple[tuple[Member, Member], ...]
    matched_by: str
    unpaired: tuple[Member, ...]


def pair_members(before: Sequence[Member], after: Sequence[Member]) -> MemberPairs:
    """Pair the ranks or processes of two runs: by rank, else by GPU, else by command, else in the order of their ids.

    Of these, the first is used that tells all members of each run apart, and that some of both have in common.
    """
    for matched_by, attribute in (("rank", "rank"), ("GPU", "gpus"), ("command", "command")):
        keys = [[getattr(member, attribute) for member in side] for side in (before, after)]
        if all(len({*side}) == len(side) and not {None, ""} & {*side} for side in keys) and {*keys[0]} & {*keys[1]}:
            return _pair_by_keys(matched_by, before, after, keys)
    sides = [sorted(side, key=lambda member: member.process_id) for side in (before, after)]
    return _pair_by_keys("order", sides[0], sides[1], [range(len(side)) for side in sides])


def _pair_by_keys(
    matched_by: str, before: Sequence[Member], after: Sequence[Member], keys: Sequence[Iterable[Any]]
) -> MemberPairs:
    old, new = (dict(zip(side_keys, side, strict=True)) for side_keys, side in zip(keys, (before, after), strict=True))
    pairs = tuple((old[key], new[key]) for key in old if key in new)
    unpaired = [member for key, member in old.items() if key not in new]
    return MemberPairs(pairs, matched_by, (*unpaired, *(member for key, member in new.items() if key not in old)))


def label_pair(before: Member, after: Member) -> str:
    """Return the name of a pair: "rank 0", or "process 12 (python3) → 34 (python3)"."""
    return before.label if before.label == after.label else f"{before.label} → {after.label.removeprefix('process ')}"


def compare_members(
    before: Sequence[Run], after: Sequence[Run], *, by_run: bool
) -> Iterator[tuple[str, str, Difference]]:
    """Yield for each rank or process that both sides have: name, metric, and the samples of both sides.

    The members of further runs of a side are paired with those of its first.
    """
    if max(len(before[0].members), len(after[0].members)) < 2:
        return
    for old, new in pair_members(before[0].members, after[0].members).pairs:
        sides = [_find_in_runs(member, runs) for member, runs in ((old, before), (new, after))]
        for metric in dict.fromkeys([*old.metrics, *new.metrics]):
            samples_before, samples_after = (
                pool_samples([member.metrics.get(metric) if member else None for member in side], by_run=by_run)
                for side in sides
            )
            if samples_before and samples_after:
                yield label_pair(old, new), metric, Difference(samples_before, samples_after)


def _find_in_runs(member: Member, runs: Sequence[Run]) -> list[Member | None]:
    members: list[Member | None] = [member]
    for run in runs[1:]:
        pairs = pair_members(runs[0].members, run.members).pairs
        members.append(next((new for old, new in pairs if old == member), None))
    return members


def compare_collectives(
    before: Sequence[Run], after: Sequence[Run], *, by_run: bool
) -> Iterator[tuple[str, str, Difference]]:
    """Yield for the collectives of each operation and size: name, metric, and the samples of both sides.

    What only one side runs has no samples on the other.
    """
    if not all(run.collectives for run in (*before, *after)):
        return
    names = dict.fromkeys(name for run in (*before, *after) for name in run.collectives)
    metrics = dict.fromkeys(
        metric for run in (*before, *after) for by_metric in run.collectives.values() for metric in by_metric
    )
    for name in names:
        for metric in metrics:
            samples_before, samples_after = (
                pool_samples([run.collectives.get(name, {}).get(metric) for run in side], by_run=by_run)
                for side in (before, after)
            )
            if samples_before or samples_after:
                yield name, metric, Difference(samples_before, samples_after)


def has_same_main_member(before: Sequence[Run], after: Sequence[Run]) -> bool:
    """Return whether figures of the first members of two runs can be compared: they belong together, or are means."""
    if not any(run.is_mixed for run in (*before, *after)) or not before[0].members or not after[0].members:
        return True
    pairs = pair_members(before[0].members, after[0].members).pairs
    return (before[0].members[0], after[0].members[0]) in pairs


def describe_members(before: Sequence[Run], after: Sequence[Run]) -> Iterator[str]:
    """Yield what the figures of runs of several processes are of, how these were paired, and which were not."""
    coverage = [list(dict.fromkeys(run.coverage for run in side if run.coverage)) for side in (before, after)]
    if coverage[0] == coverage[1]:
        yield from coverage[0]
    else:
        for name, texts in zip(("before", "after"), coverage, strict=True):
            yield from (f"{name}, {text}" for text in texts)
    if max(len(before[0].members), len(after[0].members)) < 2:
        return
    pairs = pair_members(before[0].members, after[0].members)
    if text := _MATCH_TEXTS.get(pairs.matched_by):
        yield f"processes are paired {text}"
    if pairs.unpaired:
        yield f"only one side has {', '.join(member.label for member in pairs.unpaired)}"
    if text := describe_lateness(before, after):
        yield text


def describe_lateness(before: Sequence[Run], after: Sequence[Run]) -> str | None:
    """Say which ranks make the others wait, before and after, and how long per step; None if that is unknown."""
    texts = []
    for run in (before[0], after[0]):
        late_ns = {
            member.label: late.mean for member in run.members if (late := member.metrics.get("late_ns")) is not None
        }
        if not late_ns:
            return None
        names = [f"{label} by {time_text(value)}" for label, value in late_ns.items() if value]
        texts.append(", ".join(names) or "none")
    if texts == ["none", "none"]:
        return None
    return f"late ranks, per step on average: before, {texts[0]}; after, {texts[1]}"
