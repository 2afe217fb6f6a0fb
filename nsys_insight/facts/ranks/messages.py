"""Messages from one rank to another: each send matched with its receive, and who waited for whom.

NCCL runs the messages between two ranks of a communicator in the order of their calls, so the k-th one that is sent to
a rank is the k-th that it receives from there; sizes and times have to bear it out. Who is which rank of the
communicator is known by what the processes said to NCCL, or else tried: by the ranks' numbers, and by their order.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.ingest import several
from nsys_insight.sql.rows import named_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nsys_insight.facts.context import Context
    from nsys_insight.facts.ranks.clocks import Clock
    from nsys_insight.facts.ranks.rank import Ints, Rank

# So many of the messages between ranks whose traces are there have to be matched, or none are.
_MATCHED = 0.9
# A capture begins at most so many messages before another one.
_FARTHEST = 200


class Message(NamedTuple):
    """A message from one rank to another; `sent` and `received` say which of their kernels has it."""

    communicator: str
    sender: int
    receiver: int
    bytes: int
    sent: int
    received: int
    is_alone: bool  # in its kernels on both sides, in its direction


@dataclass(frozen=True)
class Messages:
    """The matched messages, and how long each kernel of each rank waited for the other side of its own."""

    matched: list[Message]
    waiting: dict[int, Ints]

    @property
    def pairs(self) -> set[tuple[int, int]]:
        """The ranks that send to each other, the lower one first."""
        return {(min(one.sender, one.receiver), max(one.sender, one.receiver)) for one in self.matched}


class _Side(NamedTuple):
    """The messages of a rank to or from a peer: which kernel has each, and how large it is."""

    kernel: list[int]
    bytes: list[int]


_Sides = dict[tuple[int, bool, int], _Side]  # rank, whether it sends, rank of the peer in the communicator


def matched(context: Context, ranks: Sequence[Rank], numbers: Sequence[int], clocks: Mapping[int, Clock]) -> Messages:
    """Match the messages between ranks whose traces' clocks are known.

    Args:
        context: The traces.
        ranks: The ranks.
        numbers: Their numbers.
        clocks: What leads from the time of each trace to that of the run.
    """
    import numpy as np

    sides, said = _read(context, ranks, clocks)
    times = {
        at: (clocks[one.trace].apply(one.start), clocks[one.trace].apply(one.end))
        for at, one in enumerate(ranks) if one.trace in clocks
    }  # fmt: skip
    found: list[Message] = []
    for communicator, of in sides.items():
        members = sorted({rank for rank, _, _ in of}, key=lambda at: numbers[at])
        for places in _places(members, numbers, said.get(communicator, {})):
            if (messages := _with(communicator, of, places, times)) is not None:
                found += messages
                break
    waiting = {at: np.zeros(len(start), dtype=np.int64) for at, (start, _) in times.items()}
    for one in found:
        (sent, sent_end), (received, received_end) = (
            (times[at][0][kernel], times[at][1][kernel])
            for at, kernel in ((one.sender, one.sent), (one.receiver, one.received))
        )
        mine, its = waiting[one.sender], waiting[one.receiver]
        its[one.received] = max(its[one.received], min(max(sent - received, 0), received_end - received))
        # What fits into NCCL's buffers is gone before anybody receives it.
        if sent_end > received:
            mine[one.sent] = max(mine[one.sent], received - sent)
    return Messages(found, waiting)


def _read(
    context: Context, ranks: Sequence[Rank], clocks: Mapping[int, Clock]
) -> tuple[dict[str, _Sides], dict[str, dict[int, int]]]:
    """Read what ranks send and receive by communicator, and which ranks of these they said they are."""
    statements = context.statements("ranks", "sent", "members")
    sides: dict[str, _Sides] = defaultdict(dict)
    said: dict[str, dict[int, int]] = defaultdict(dict)
    for number, catalog in enumerate(context.catalogs):
        of_trace = {
            (one.process_id, one.device_id, one.gpu_id): at for at, one in enumerate(ranks) if one.trace == number
        }
        if not of_trace or number not in clocks:
            continue
        kernels = {at: {int(start): place for place, start in enumerate(ranks[at].start)} for at in of_trace.values()}
        with several.inside(context.connection, catalog):
            rows = named_rows(context.connection, statements["sent"])
            told = named_rows(context.connection, statements["members"])
        for row in rows:
            at = of_trace.get((row.process_id, row.device_id, row.gpu_id))
            if at is not None:
                side = sides[row.communicator].setdefault((at, row.is_send, row.peer), _Side([], []))
                side.kernel.append(kernels[at][row.start_ns])
                side.bytes.append(row.bytes)
        for row in told:
            those = [at for (process, *_), at in of_trace.items() if process == row.process_id]
            if len(those) == 1:
                said[row.communicator][those[0]] = row.rank
    return sides, said


def _places(members: Sequence[int], numbers: Sequence[int], said: Mapping[int, int]) -> Iterator[dict[int, int]]:
    """The ways to tell which member is which rank of the communicator, those that are known first."""
    if said.keys() >= set(members):
        yield {said[at]: at for at in members}
        return
    yield {numbers[at]: at for at in members}
    yield dict(enumerate(members))


def _with(
    communicator: str, of: _Sides, places: Mapping[int, int], times: Mapping[int, tuple[Ints, Ints]]
) -> list[Message] | None:
    """Match the messages where the members are these; None where sizes and times do not bear it out."""
    found: list[Message] = []
    total = 0
    at_place = {at: place for place, at in places.items()}
    for sender, receiver in permutations(at_place, 2):
        sends = of.get((sender, True, at_place[receiver]), _Side([], []))
        receives = of.get((receiver, False, at_place[sender]), _Side([], []))
        shift = _shift(sends, receives, times[sender], times[receiver])
        if shift is None:
            total += max(len(sends.kernel), len(receives.kernel))
            continue
        total += min(len(sends.kernel), len(receives.kernel))
        ones, others = range(max(shift, 0), len(sends.kernel)), range(max(-shift, 0), len(receives.kernel))
        found += [
            Message(
                communicator, sender, receiver, sends.bytes[one], sends.kernel[one], receives.kernel[other],
                _is_once(sends.kernel, one) and _is_once(receives.kernel, other),
            )
            for one, other in zip(ones, others, strict=False)
        ]  # fmt: skip
    # Whoever sends to a rank whose trace is not there tells nothing of who is who.
    return found if found and len(found) >= _MATCHED * total else None


def _is_once(kernels: list[int], at: int) -> bool:
    """Whether a kernel has one message of a direction: those of one kernel follow each other."""
    return kernels[at] not in kernels[max(at - 1, 0) : at] + kernels[at + 1 : at + 2]


def _shift(sends: _Side, receives: _Side, of_sender: tuple[Ints, Ints], of_receiver: tuple[Ints, Ints]) -> int | None:
    """Tell how many sends come before the first that is received in both captures; None if no way bears it out."""
    import numpy as np

    if not sends.kernel or not receives.kernel:
        return None
    sent, received = np.array(sends.kernel), np.array(receives.kernel)
    sizes, its_sizes = np.array(sends.bytes), np.array(receives.bytes)
    best: tuple[float, int] | None = None
    for shift in sorted(range(-_FARTHEST, _FARTHEST + 1), key=abs):
        first, its_first = max(shift, 0), max(-shift, 0)
        count = min(len(sent) - first, len(received) - its_first)
        if 2 * count < min(len(sent), len(received)) or count < 1:
            continue
        one, other = slice(first, first + count), slice(its_first, its_first + count)
        if not np.array_equal(sizes[one], its_sizes[other]):
            continue
        # Nobody has received before it was sent.
        late = of_receiver[1][received[other]] - of_sender[0][sent[one]]
        if np.count_nonzero(late >= 0) < _MATCHED * count:
            continue
        apart = float(np.median(np.abs(of_receiver[1][received[other]] - of_sender[1][sent[one]])))
        if best is None or apart < best[0]:
            best = apart, shift
    return None if best is None else best[1]
