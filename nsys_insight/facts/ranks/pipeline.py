"""Pipelines: stages that wait for each other equally in every step, as opposed to a rank that is late in some steps.

A stage is idle before its first message arrives and after its last one. So the ranks of a pipeline wait unequally even
if no rank is late (the bubble). Each rank is then compared with its own usual time, and not with the other ranks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_insight.facts.arrays import Ints, np
from nsys_insight.facts.ranks.judge import (
    ERROR_FACTOR,
    EXPLAINED_SHARE,
    FLOOR_NS,
    FLOOR_SHARE,
    MAIN_SHARE,
    MOVING_SHARE,
    Delay,
    Verdict,
    find_cause,
)
from nsys_insight.facts.ranks.rank import POINT_TO_POINT, Rank

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsys_insight.facts.ranks.judge import Table
    from nsys_insight.facts.ranks.messages import Message, Messages

# Messages are relevant if they take at least this share of the steps.
_MIN_MESSAGE_SHARE = 0.01
# Two ranks are consecutive stages if this share of their steps begins with a message in the same direction.
_CONSISTENT_SHARE = 0.9
# The shortest quarter of the steps is without delays.
_UNDELAYED_QUANTILE = 0.25


@dataclass(frozen=True)
class Pipeline:
    """Ranks in a row. `ranks` is the length of the longest row, `messages` the messages to the next rank in a step.

    Each rank has one stage. If the last rank sends on to the first, stages are interleaved: each rank has `chunks`.
    """

    ranks: int
    messages: int
    chunks: int = 1

    @property
    def stages(self) -> int:
        """Return the number of stages that a microbatch passes through."""
        return self.ranks * self.chunks

    @property
    def ideal_bubble(self) -> float | None:
        """Return the share of a step that a rank waits if messages are microbatches and stages take equally long.

        (p - 1) / (m + p - 1) for p ranks and m microbatches (Huang et al., GPipe, 2019). With v stages a rank, v m
        takes the place of m (Narayanan et al., Megatron-LM, 2021): that is the number of messages. None with fewer
        messages than stages: pipelines do not run that way.
        """
        is_filled = self.messages >= self.stages
        return (self.ranks - 1) / (self.messages + self.ranks - 1) if is_filled else None


def measure_bubble(wall: Table, waiting: Table, late: Table) -> float:
    """Return the share of the usual step that a rank waits, averaged over ranks; only steps without a late rank."""
    is_usual = ~late.any(axis=1)
    return float(np.median(waiting[is_usual], axis=0).mean() / np.median(wall[is_usual]))


def has_relevant_messages(ranks: Sequence[Rank], members: Sequence[int], wall: Table) -> bool:
    """Return whether messages between ranks take enough time to be a reason for waiting."""
    total = 0
    for index in members:
        rank = ranks[index]
        total += sum(
            int(end - start)
            for operation, start, end in zip(rank.operation, rank.start, rank.end, strict=True)
            if operation in POINT_TO_POINT
        )
    return total >= _MIN_MESSAGE_SHARE * float(wall.sum()) > 0


def find_pipeline(messages: Messages, ranks: Sequence[Rank], edges: Mapping[int, tuple[Ints, Ints]]) -> Pipeline | None:
    """Return the pipeline if each step sends along rows of ranks, from the first rank on; otherwise None.

    A circle is a row that each microbatch passes several times, if one rank sends on fewer messages: the microbatches
    that have finished do not go on. Otherwise it is a ring, which has no first rank.

    Args:
        messages: The matched messages.
        ranks: The ranks.
        edges: Starts and ends of the steps, by rank, each in its own trace's time.
    """
    first_messages: dict[tuple[int, int], dict[int, tuple[int, Message]]] = defaultdict(dict)
    counts: Counter[tuple[int, int, int]] = Counter()
    exchanges: dict[tuple[int, int], set[int]] = defaultdict(set)
    for message in messages.matches:
        if message.sender not in edges:
            continue
        step_starts, step_ends = edges[message.sender]
        send_start = int(ranks[message.sender].start[message.send_kernel])
        step = int(np.searchsorted(step_starts, send_start, side="right")) - 1
        if step < 0 or send_start >= step_ends[step]:
            continue
        pair = min(message.sender, message.receiver), max(message.sender, message.receiver)
        counts[message.sender, message.receiver, step] += 1
        kernel = message.send_kernel if message.sender == pair[0] else message.receive_kernel
        start = int(ranks[pair[0]].start[kernel])
        first = first_messages[pair].get(step)
        if first is None or start < first[0]:
            first_messages[pair][step] = start, message
            exchanges[pair].discard(step)
        elif start == first[0] and first[1].sender != message.sender:
            exchanges[pair].add(step)  # both directions in one kernel
    next_rank: dict[int, int] = {}
    for pair, steps in first_messages.items():
        directions = Counter(
            (message.sender, message.receiver)
            for step, (_, message) in steps.items() if step not in exchanges[pair]
        )  # fmt: skip
        (direction, count), *_ = directions.most_common(1) or [((0, 0), 0)]
        if count < _CONSISTENT_SHARE * len(steps) or direction[0] in next_rank or direction[1] in next_rank.values():
            return None
        next_rank[direction[0]] = direction[1]
    counts_by_sender: dict[int, list[int]] = defaultdict(list)
    for (sender, receiver, _), count in counts.items():
        if next_rank.get(sender) == receiver:
            counts_by_sender[sender].append(count)
    per_step = {sender: int(np.median(step_counts)) for sender, step_counts in counts_by_sender.items()}
    return _build_pipeline(next_rank, per_step)


def _build_pipeline(next_rank: Mapping[int, int], messages: Mapping[int, int]) -> Pipeline | None:
    """Return the pipeline of ranks that send this number of messages per step to the next rank; None for a ring."""
    highest = max(messages.values(), default=0)
    # The ranks at the end of a pass. Data-parallel replicas have one each.
    missing = {sender: highest - count for sender, count in messages.items() if count < highest}
    is_closed = next_rank.keys() == set(next_rank.values())
    row = {sender: receiver for sender, receiver in next_rank.items() if not (is_closed and sender in missing)}
    heads = row.keys() - set(row.values())
    lengths = {head: _count_row(head, row) for head in heads}
    if not lengths or sum(lengths.values()) != len({*next_rank, *next_rank.values()}):
        return None  # no ranks, or a ring
    longest = max(lengths.values())
    if not is_closed:
        return Pipeline(longest, sorted(messages.values())[len(messages) // 2])
    microbatches = max(missing.values())
    is_uniform = len(set(missing.values())) == len(set(lengths.values())) == 1
    return Pipeline(longest, highest, highest // microbatches) if is_uniform and highest % microbatches == 0 else None


def is_even(messages: Messages, members: Sequence[int]) -> bool:
    """Return whether all ranks send and receive about equally many messages, so that none has to wait longer."""
    send_counts = Counter(message.sender for message in messages.matches)
    receive_counts = Counter(message.receiver for message in messages.matches)
    counts = [[counter[index] for index in members] for counter in (send_counts, receive_counts)]
    return all(min(of_ranks) >= _CONSISTENT_SHARE * max(of_ranks) for of_ranks in counts)


def _count_row(head: int, next_rank: Mapping[int, int]) -> int:
    count = 1
    while head in next_rank:
        head, count = next_rank[head], count + 1
    return count


def judge_against_other_steps(wall: Table, waiting: Table, transfer: Table, error_ns: float) -> Verdict:
    """Find late ranks by comparison with their own usual time: extra time of a late rank makes the step longer."""
    even = Verdict("even", [], np.zeros_like(waiting))
    if len(wall) < 3 or wall.shape[1] < 2:
        return even
    own_time = wall - waiting - transfer
    extra = own_time - np.median(own_time, axis=0)
    length = wall.mean(axis=1)
    # Half of the steps or more may have a delay, each by another rank. The shortest steps have none.
    longer = length - np.quantile(length, _UNDELAYED_QUANTILE)
    floor = max(FLOOR_NS, ERROR_FACTOR * error_ns, FLOOR_SHARE * float(np.median(length)))
    delays = np.minimum(extra, longer[:, None])
    ascending = np.sort(extra, axis=1)
    is_alone = (extra == ascending[:, -1:]) & (ascending[:, -1:] >= 2 * ascending[:, -2:-1])
    late = np.where(is_alone & (delays >= floor), delays, 0).astype(np.int64)
    # The delays have to explain at least half of the extra step time.
    total = float(late.sum())
    if total <= FLOOR_SHARE * float(length.sum()) or total < EXPLAINED_SHARE * float(longer[longer >= floor].sum()):
        return even
    rank_totals = late.sum(axis=0)
    if rank_totals.max() >= MAIN_SHARE * total:
        latest = int(rank_totals.argmax())
        return Verdict("late", [latest], np.where(np.arange(late.shape[1]) == latest, late, 0))
    if total >= MOVING_SHARE * float(length.sum()):
        return Verdict("moving", [int(rank) for rank in np.flatnonzero(rank_totals)], late)
    return even


def explain_delay_against_other_steps(busy: Table, idle: Table, verdict: Verdict, rank: int) -> Delay:
    """Compare the steps in which a rank is late with its other steps."""
    is_late = verdict.late_ns[:, rank] > 0
    usual_busy, usual_idle = (float(np.median(times[~is_late, rank])) for times in (busy, idle))
    more_busy_ns, more_idle_ns = (
        float((times[is_late, rank] - usual_ns).mean()) for times, usual_ns in ((busy, usual_busy), (idle, usual_idle))
    )
    cause = find_cause(more_busy_ns, more_idle_ns, float(verdict.late_ns[is_late, rank].mean()))
    ratio = float(busy[is_late, rank].mean()) / usual_busy if usual_busy else None
    return Delay(more_busy_ns, more_idle_ns, ratio, cause)
