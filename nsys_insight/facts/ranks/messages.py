"""Match the messages between ranks, each send with its receive, and find who waits for whom.

NCCL runs the messages between two ranks of a communicator in the order of their calls. So the k-th send to a rank is
the k-th receive there, and sizes and times have to confirm it. The processes state their rank in the communicator to
NCCL. Where they do not, two assignments are tried: the ranks' numbers, and their order.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight.facts.arrays import Ints, np
from nsys_insight.ingest.catalogs import use_catalog
from nsys_insight.sql.rows import fetch_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nsys_insight.facts.context import Context
    from nsys_insight.facts.ranks.clocks import Clock
    from nsys_insight.facts.ranks.rank import Rank

# At least this share of the messages between ranks with traces has to match; otherwise none is matched.
_MIN_MATCHED = 0.9
# A capture begins at most this number of messages before another one.
_MAX_SHIFT = 200


class Message(NamedTuple):
    """A message from one rank to another.

    `send_kernel` and `receive_kernel` are the indices of its kernels on the two ranks. `is_alone`: it is the only
    message in its direction in both kernels.
    """

    communicator: str
    sender: int
    receiver: int
    bytes: int
    send_kernel: int
    receive_kernel: int
    is_alone: bool


@dataclass(frozen=True)
class Messages:
    """The matched messages, and how long each kernel of each rank waited for the other side of its messages, in ns."""

    matches: list[Message]
    waiting: dict[int, Ints]

    @property
    def pairs(self) -> set[tuple[int, int]]:
        """Return the pairs of ranks that send to each other, the lower rank first."""
        return {
            (min(message.sender, message.receiver), max(message.sender, message.receiver)) for message in self.matches
        }


class _Side(NamedTuple):
    """The messages of a rank to or from a peer: the kernel of each, and its size."""

    kernel: list[int]
    bytes: list[int]


_Sides = dict[tuple[int, bool, int], _Side]  # rank, whether it sends, rank of the peer in the communicator


def match_messages(
    context: Context, ranks: Sequence[Rank], numbers: Sequence[int], clocks: Mapping[int, Clock]
) -> Messages:
    """Match the messages between ranks whose traces have aligned clocks.

    Args:
        context: The traces.
        ranks: The ranks.
        numbers: Their numbers.
        clocks: Conversion of each trace's time to the run's time.
    """
    sides_by_communicator, stated_ranks = _read_messages(context, ranks, clocks)
    times = {
        index: (clocks[rank.trace].apply(rank.start), clocks[rank.trace].apply(rank.end))
        for index, rank in enumerate(ranks) if rank.trace in clocks
    }  # fmt: skip
    matches: list[Message] = []
    for communicator, sides in sides_by_communicator.items():
        members = sorted({index for index, _, _ in sides}, key=lambda index: numbers[index])
        for assignment in _guess_assignments(members, numbers, stated_ranks.get(communicator, {})):
            if (messages := _match_members(communicator, sides, assignment, times)) is not None:
                matches += messages
                break
    waiting = {index: np.zeros(len(start), dtype=np.int64) for index, (start, _) in times.items()}
    for message in matches:
        (send_start, send_end), (receive_start, receive_end) = (
            (times[index][0][kernel], times[index][1][kernel])
            for index, kernel in (
                (message.sender, message.send_kernel), (message.receiver, message.receive_kernel)
            )
        )  # fmt: skip
        sender, receiver = waiting[message.sender], waiting[message.receiver]
        receiver[message.receive_kernel] = max(
            receiver[message.receive_kernel], min(max(send_start - receive_start, 0), receive_end - receive_start)
        )
        # A message that fits into NCCL's buffers is sent before the receiver arrives.
        if send_end > receive_start:
            sender[message.send_kernel] = max(sender[message.send_kernel], receive_start - send_start)
    return Messages(matches, waiting)


def _read_messages(
    context: Context, ranks: Sequence[Rank], clocks: Mapping[int, Clock]
) -> tuple[dict[str, _Sides], dict[str, dict[int, int]]]:
    """Read what ranks send and receive by communicator, and the rank that each process states in it."""
    statements = context.statements("ranks", "sent", "members")
    sides: dict[str, _Sides] = defaultdict(dict)
    stated_ranks: dict[str, dict[int, int]] = defaultdict(dict)
    for number, catalog in enumerate(context.catalogs):
        ranks_of_trace = {
            (rank.process_id, rank.device_id, rank.gpu_id): index
            for index, rank in enumerate(ranks) if rank.trace == number
        }  # fmt: skip
        if not ranks_of_trace or number not in clocks:
            continue
        kernels = {
            index: {int(start): kernel for kernel, start in enumerate(ranks[index].start)}
            for index in ranks_of_trace.values()
        }
        with use_catalog(context.connection, catalog):
            message_rows = fetch_rows(context.connection, statements["sent"])
            member_rows = fetch_rows(context.connection, statements["members"])
        for row in message_rows:
            index = ranks_of_trace.get((row.process_id, row.device_id, row.gpu_id))
            if index is not None:
                side = sides[row.communicator].setdefault((index, row.is_send, row.peer), _Side([], []))
                side.kernel.append(kernels[index][row.start_ns])
                side.bytes.append(row.bytes)
        for row in member_rows:
            candidates = [index for (process, *_), index in ranks_of_trace.items() if process == row.process_id]
            if len(candidates) == 1:
                stated_ranks[row.communicator][candidates[0]] = row.rank
    return sides, stated_ranks


def _guess_assignments(
    members: Sequence[int], numbers: Sequence[int], stated_ranks: Mapping[int, int]
) -> Iterator[dict[int, int]]:
    """Yield the possible assignments of communicator ranks to members; only the stated one if it is complete."""
    if stated_ranks.keys() >= set(members):
        yield {stated_ranks[index]: index for index in members}
        return
    yield {numbers[index]: index for index in members}
    yield dict(enumerate(members))


def _match_members(
    communicator: str, sides: _Sides, assignment: Mapping[int, int], times: Mapping[int, tuple[Ints, Ints]]
) -> list[Message] | None:
    """Match the messages of a communicator under an assignment; None if sizes and times contradict it."""
    matches: list[Message] = []
    total = 0
    rank_of = {index: rank for rank, index in assignment.items()}
    for sender, receiver in permutations(rank_of, 2):
        sends = sides.get((sender, True, rank_of[receiver]), _Side([], []))
        receives = sides.get((receiver, False, rank_of[sender]), _Side([], []))
        shift = _find_shift(sends, receives, times[sender], times[receiver])
        if shift is None:
            total += max(len(sends.kernel), len(receives.kernel))
            continue
        total += min(len(sends.kernel), len(receives.kernel))
        send_indices = range(max(shift, 0), len(sends.kernel))
        receive_indices = range(max(-shift, 0), len(receives.kernel))
        matches += [
            Message(
                communicator, sender, receiver, sends.bytes[send], sends.kernel[send], receives.kernel[receive],
                _is_single(sends.kernel, send) and _is_single(receives.kernel, receive),
            )
            for send, receive in zip(send_indices, receive_indices, strict=False)
        ]  # fmt: skip
    # Messages to ranks without a trace neither confirm nor contradict an assignment.
    return matches if matches and len(matches) >= _MIN_MATCHED * total else None


def _is_single(kernels: list[int], index: int) -> bool:
    """Return whether a kernel has one message of a direction; the messages of a kernel are adjacent."""
    return kernels[index] not in kernels[max(index - 1, 0) : index] + kernels[index + 1 : index + 2]


def _find_shift(
    sends: _Side, receives: _Side, sender_times: tuple[Ints, Ints], receiver_times: tuple[Ints, Ints]
) -> int | None:
    """Return the number of sends before the first message in both captures; None if no shift is plausible."""
    if not sends.kernel or not receives.kernel:
        return None
    send_kernels, receive_kernels = np.array(sends.kernel), np.array(receives.kernel)
    send_sizes, receive_sizes = np.array(sends.bytes), np.array(receives.bytes)
    best: tuple[float, int] | None = None
    for shift in sorted(range(-_MAX_SHIFT, _MAX_SHIFT + 1), key=abs):
        first_send, first_receive = max(shift, 0), max(-shift, 0)
        count = min(len(send_kernels) - first_send, len(receive_kernels) - first_receive)
        if 2 * count < min(len(send_kernels), len(receive_kernels)) or count < 1:
            continue
        send_rows, receive_rows = slice(first_send, first_send + count), slice(first_receive, first_receive + count)
        if not np.array_equal(send_sizes[send_rows], receive_sizes[receive_rows]):
            continue
        # No receive ends before its send starts.
        delays = receiver_times[1][receive_kernels[receive_rows]] - sender_times[0][send_kernels[send_rows]]
        if np.count_nonzero(delays >= 0) < _MIN_MATCHED * count:
            continue
        end_differences = receiver_times[1][receive_kernels[receive_rows]] - sender_times[1][send_kernels[send_rows]]
        distance = float(np.median(np.abs(end_differences)))
        if best is None or distance < best[0]:
            best = distance, shift
    return None if best is None else best[1]
