"""Pipelines: stages that wait for each other in every step alike, told apart from a rank that is late in some.

A stage has nothing to do before the first message has reached it, and after its last one; so the ranks of a pipeline
wait unequally though nobody is late (the bubble). What each does by itself is then compared with what it usually does,
and not with what the others do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_insight.facts.ranks.judge import (
    ERRORS,
    EXPLAINED,
    FLOOR_NS,
    FLOOR_SHARE,
    MAIN,
    MOVING_SHARE,
    Delay,
    Verdict,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsys_insight.facts.ranks.judge import Table
    from nsys_insight.facts.ranks.messages import Message, Messages
    from nsys_insight.facts.ranks.rank import Ints, Rank

# Messages matter from this share of the steps on.
_MATTER = 0.01
# A pair of stages is told by its steps: so many of them begin with a message in the same direction.
_ALIKE = 0.9
# As long as a quarter of the steps are at most, a step is without delays.
_USUAL = 0.25


@dataclass(frozen=True)
class Pipeline:
    """Ranks in a row, as many as the longest row has; `messages` go from one to the next in a step.

    Each has one stage, or where the last one sends on to the first, `chunks`: then stages are interleaved.
    """

    ranks: int
    messages: int
    chunks: int = 1

    @property
    def stages(self) -> int:
        """How many stages a microbatch goes through."""
        return self.ranks * self.chunks

    @property
    def ideal(self) -> float | None:
        """The share of a step that a rank waits if messages are microbatches, and all stages take equally long.

        (p - 1) / (m + p - 1) for p ranks and m microbatches (Huang et al., GPipe, 2019), and v m of them with v stages
        a rank (Narayanan et al., Megatron-LM, 2021): as many as there are messages. None with fewer messages than
        stages: a pipeline is not run so.
        """
        fits = self.messages >= self.stages
        return (self.ranks - 1) / (self.messages + self.ranks - 1) if fits else None


def bubble(wall: Table, waiting: Table, late: Table) -> float:
    """The share of the usual step, in which no rank is late, that a rank waits, on average over the ranks."""
    import numpy as np

    usual = ~late.any(axis=1)
    return float(np.median(waiting[usual], axis=0).mean() / np.median(wall[usual]))


def matter(ranks: Sequence[Rank], members: Sequence[int], wall: Table) -> bool:
    """Whether messages between ranks take enough time to be a reason why these wait."""
    total = 0
    for at in members:
        one = ranks[at]
        total += sum(
            int(end - start)
            for what, start, end in zip(one.operation, one.start, one.end, strict=True)
            if what in ("SendRecv", "Send", "Recv")
        )
    return total >= _MATTER * float(wall.sum()) > 0


def rows(messages: Messages, ranks: Sequence[Rank], edges: Mapping[int, tuple[Ints, Ints]]) -> Pipeline | None:
    """Tell whether the ranks send along rows, each step from the first one on; None where they do anything else.

    A circle is a row that is gone through several times, if one of its ranks sends on so many messages less as there
    are microbatches, for these are through. Else it is a ring, in which no rank is the first one.

    Args:
        messages: The matched messages.
        ranks: The ranks.
        edges: When the steps begin and end, by rank, each in its own trace's time.
    """
    import numpy as np

    first: dict[tuple[int, int], dict[int, tuple[int, Message]]] = defaultdict(dict)
    counts: Counter[tuple[int, int, int]] = Counter()
    both: dict[tuple[int, int], set[int]] = defaultdict(set)
    for one in messages.matched:
        if one.sender not in edges:
            continue
        begins, ends = edges[one.sender]
        start = int(ranks[one.sender].start[one.sent])
        step = int(np.searchsorted(begins, start, side="right")) - 1
        if step < 0 or start >= ends[step]:
            continue
        pair = min(one.sender, one.receiver), max(one.sender, one.receiver)
        counts[one.sender, one.receiver, step] += 1
        kernel = one.sent if one.sender == pair[0] else one.received
        at = int(ranks[pair[0]].start[kernel])
        known = first[pair].get(step)
        if known is None or at < known[0]:
            first[pair][step] = at, one
            both[pair].discard(step)
        elif at == known[0] and known[1].sender != one.sender:
            both[pair].add(step)  # an exchange: there and back in one kernel
    following: dict[int, int] = {}
    for pair, steps in first.items():
        ways = Counter((one.sender, one.receiver) for step, (_, one) in steps.items() if step not in both[pair])
        (way, often), *_ = ways.most_common(1) or [((0, 0), 0)]
        if often < _ALIKE * len(steps) or way[0] in following or way[1] in following.values():
            return None
        following[way[0]] = way[1]
    per_step: dict[int, list[int]] = defaultdict(list)
    for (sender, receiver, _), count in counts.items():
        if following.get(sender) == receiver:
            per_step[sender].append(count)
    return _of_row(following, {sender: int(np.median(each)) for sender, each in per_step.items()})


def _of_row(following: Mapping[int, int], messages: Mapping[int, int]) -> Pipeline | None:
    """Tell what ranks are that send so many messages a step to those that follow; None if they go around in a ring."""
    most = max(messages.values(), default=0)
    # Where a round ends; replicas side by side have an end each.
    fewer = {sender: most - count for sender, count in messages.items() if count < most}
    is_closed = following.keys() == set(following.values())
    row = {one: other for one, other in following.items() if not (is_closed and one in fewer)}
    heads = row.keys() - set(row.values())
    lengths = {head: _length(head, row) for head in heads}
    if not lengths or sum(lengths.values()) != len({*following, *following.values()}):
        return None  # nothing, or a ring
    longest = max(lengths.values())
    if not is_closed:
        return Pipeline(longest, sorted(messages.values())[len(messages) // 2])
    microbatches = max(fewer.values())
    is_alike = len(set(fewer.values())) == len(set(lengths.values())) == 1
    return Pipeline(longest, most, most // microbatches) if is_alike and most % microbatches == 0 else None


def is_even(messages: Messages, members: Sequence[int]) -> bool:
    """Tell whether each rank sends about as many messages as every other one, so that none has to wait for longer."""
    sent = Counter(one.sender for one in messages.matched)
    received = Counter(one.receiver for one in messages.matched)
    counts = [[of[at] for at in members] for of in (sent, received)]
    return all(min(each) >= _ALIKE * max(each) for each in counts)


def _length(head: int, following: Mapping[int, int]) -> int:
    count = 1
    while head in following:
        head, count = following[head], count + 1
    return count


def judge_by_itself(wall: Table, waiting: Table, transfer: Table, error_ns: float) -> Verdict:
    """Tell who is late in a step by what it does longer than it usually does, where the step lasts longer for it."""
    import numpy as np

    nobody = Verdict("even", [], np.zeros_like(waiting))
    if len(wall) < 3 or wall.shape[1] < 2:
        return nobody
    own = wall - waiting - transfer
    more = own - np.median(own, axis=0)
    length = wall.mean(axis=1)
    # Delays may come in half of the steps or more, each time of another rank: the shorter steps are without.
    longer = length - np.quantile(length, _USUAL)
    floor = max(FLOOR_NS, ERRORS * error_ns, FLOOR_SHARE * float(np.median(length)))
    by = np.minimum(more, longer[:, None])
    two = np.sort(more, axis=1)
    is_alone = (more == two[:, -1:]) & (two[:, -1:] >= 2 * two[:, -2:-1])
    late = np.where(is_alone & (by >= floor), by, 0).astype(np.int64)
    # What makes steps longer has to be what is told of: half of it at least.
    total = float(late.sum())
    if total < FLOOR_SHARE * float(length.sum()) or total < EXPLAINED * float(longer[longer >= floor].sum()):
        return nobody
    of_rank = late.sum(axis=0)
    if of_rank.max() >= MAIN * total:
        worst = int(of_rank.argmax())
        return Verdict("late", [worst], np.where(np.arange(late.shape[1]) == worst, late, 0))
    if total >= MOVING_SHARE * float(length.sum()):
        return Verdict("moving", [int(rank) for rank in np.flatnonzero(of_rank)], late)
    return nobody


def delay_of_itself(busy: Table, idle: Table, verdict: Verdict, rank: int) -> Delay:
    """Compare what a late rank does in the steps in which it is late with what it does in the others."""
    import numpy as np

    is_late = verdict.late_ns[:, rank] > 0
    usual_busy, usual_idle = (float(np.median(of[~is_late, rank])) for of in (busy, idle))
    more_busy, more_idle = (
        float((of[is_late, rank] - usual).mean()) for of, usual in ((busy, usual_busy), (idle, usual_idle))
    )
    total = max(more_busy, 0) + max(more_idle, 0)
    cause = None
    if total >= EXPLAINED * float(verdict.late_ns[is_late, rank].mean()):
        cause = "gpu" if more_busy >= MAIN * total else "host" if more_idle >= MAIN * total else "both"
    ratio = float(busy[is_late, rank].mean()) / usual_busy if usual_busy else None
    return Delay(more_busy, more_idle, ratio, cause)
