"""The kernels of NCCL in a trace, each with the communicator and the message size of the call that launched it.

NCCL describes its calls in the payloads of its NVTX ranges. A payload is a header of 32 bytes (domain, schema, size of
the payload, all it takes; little-endian) and a struct, whose fields NVTX_PAYLOAD_SCHEMA_ENTRIES places. NCCL names them
in its src/include/nvtx_payload_schemas.h.
"""

from __future__ import annotations

import struct
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.sql.rows import insert, named, named_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import duckdb

    from nsys_insight.facts.context import Context

    Call = tuple[int, str, "Payload"]  # when, its name, what it says

_SEND = "ncclSend"
_COLUMNS = ("process_id", "device_id", "gpu_id", "stream_id", "start_ns", "end_ns", "name_id")
_HEADER = struct.Struct("<QQQQ")
# The fields that are read, as NCCL calls them, and what they are in C.
_FIELDS = {
    "NCCL communicator ID": ("communicator", struct.Struct("<Q")),
    "Message size [bytes]": ("bytes", struct.Struct("<Q")),
    "Rank": ("rank", struct.Struct("<i")),
    "No. of ranks": ("ranks", struct.Struct("<i")),
    "Peer rank": ("peer", struct.Struct("<i")),
}
# No message is larger: a field that says so is none.
_MOST_BYTES = 1 << 50
# NCCL hashes what identifies a communicator, so no other one is 0.
_NO_COMMUNICATOR = 0

# (domain, schema, size of the payload, name of a field, its place)
SchemaRow = tuple[int | None, int, int | None, str | None, int | None]


class Payload(NamedTuple):
    """What a payload says; None where it does not."""

    communicator: int | None = None
    bytes: int | None = None
    rank: int | None = None
    ranks: int | None = None
    peer: int | None = None


class Schemas:
    """The layouts of payloads in one trace."""

    def __init__(self, rows: Iterable[SchemaRow]) -> None:
        """Take the fields that are known; a schema that is laid out in two ways is none."""
        self._size: dict[int, set[int]] = {}
        places: dict[tuple[int, str], set[int]] = {}
        for _, schema, size, name, place in rows:
            if size is not None:
                self._size.setdefault(schema, set()).add(size)
            if name in _FIELDS and place is not None:
                places.setdefault((schema, name), set()).add(place)
        self._places = {key: min(found) for key, found in places.items() if len(found) == 1}

    def __bool__(self) -> bool:
        """Whether there is any layout to read by."""
        return bool(self._places)

    def read(self, data: bytes) -> Payload:
        """Read an event's payload; nothing is said by one that is not as its schema has it."""
        data = _binary(data)
        if len(data) < _HEADER.size:
            return Payload()
        _, schema, size, _ = _HEADER.unpack_from(data)
        if len(data) < _HEADER.size + size or self._size.get(schema, {size}) != {size}:
            return Payload()
        found: dict[str, int] = {}
        for name, (field, kind) in _FIELDS.items():
            place = self._places.get((schema, name))
            if place is not None and place + kind.size <= size:
                (found[field],) = kind.unpack_from(data, _HEADER.size + place)
        if found.get("bytes", 0) > _MOST_BYTES:
            del found["bytes"]
        if found.get("communicator") == _NO_COMMUNICATOR:
            del found["communicator"]
        return Payload(**found)


def fill(context: Context) -> None:
    """Fill `facts.nccl_kernels`, `facts.nccl_messages` and `facts.nccl_ranks`."""
    connection = context.connection
    statements = context.statements("nccl", "schemas", "payloads", "kernels")
    schemas = Schemas(connection.execute(statements["schemas"]).fetchall())
    said = list(_described(connection, statements["payloads"], schemas)) if schemas else []
    kernels = context.runner("nccl")("launched") if said else named_rows(connection, statements["kernels"])
    own = _calls(kernels, said) if said else {}
    called = {at: found for at, calls in own.items() if (found := _called(kernels[at], calls))}
    insert(
        connection,
        "facts.nccl_kernels",
        (
            {
                **{name: getattr(kernel, name) for name in _COLUMNS},
                "operation": kernel.operation,
                "communicator": None,
                "bytes": None,
                **called.get(at, {}),
            }
            for at, kernel in enumerate(kernels)
        ),
    )
    insert(
        connection,
        "facts.nccl_messages",
        (
            {
                **{name: getattr(kernels[at], name) for name in _COLUMNS[:3]}, "start_ns": kernels[at].start_ns,
                "communicator": called[at]["communicator"], "is_send": name == _SEND, "peer": payload.peer,
                "bytes": payload.bytes, "place": place,
            }
            for at in sorted(called, key=lambda at: kernels[at].start_ns)
            if kernels[at].operation == "SendRecv"
            for place, (_, name, payload) in enumerate(own[at])
            if payload.peer is not None
        ),
    )  # fmt: skip
    insert(
        connection,
        "facts.nccl_ranks",
        (
            {
                "process_id": event.process_id, "thread_id": event.thread_id, "start_ns": event.start_ns,
                "end_ns": event.end_ns, "communicator": _id(payload.communicator), "rank": payload.rank,
                "ranks": payload.ranks,
            }
            for event, payload in said
            if payload.rank is not None and payload.ranks is not None
        ),
    )  # fmt: skip


def _described(
    connection: duckdb.DuckDBPyConnection, statement: str, schemas: Schemas
) -> Iterator[tuple[Any, Payload]]:
    """The NVTX ranges of NCCL with their payloads, thread by thread in order of time."""
    cursor = connection.execute(statement)
    names = [column[0] for column in cursor.description or ()]
    while rows := cursor.fetchmany(50_000):
        for event in named(names, rows):
            yield event, schemas.read(event.binaryData)


def _calls(kernels: Sequence[Any], said: Sequence[tuple[Any, Payload]]) -> dict[int, list[Call]]:
    """Tell which calls each kernel runs: those on its thread since the kernel before it, up to its launch."""
    calls: dict[tuple[int, int], list[Call]] = {}
    for event, payload in said:
        if payload.bytes is not None:
            calls.setdefault((event.process_id, event.thread_id), []).append((event.start_ns, event.name, payload))
    order = sorted(
        (kernel.process_id, kernel.thread_id, kernel.called_ns, at)
        for at, kernel in enumerate(kernels)
        if kernel.thread_id is not None and kernel.called_ns is not None
    )
    found: dict[int, list[Call]] = {}
    for (process, thread), launched in groupby(order, key=lambda row: row[:2]):
        waiting = iter(calls.get((process, thread), ()))
        following = next(waiting, None)
        for _, _, called_ns, at in launched:
            found[at] = own = []
            while following is not None and following[0] <= called_ns:
                own.append(following)
                following = next(waiting, None)
    return found


def _called(kernel: Any, own: Sequence[Call]) -> dict[str, Any] | None:
    """Tell what a kernel is that runs these calls; None where that is not known.

    Within ncclGroupStart and ncclGroupEnd several calls become one kernel for each communicator. Their sizes are added
    up where there is but one communicator; with several, it is not known which kernel is whose.
    """
    communicators = {payload.communicator for _, _, payload in own}
    if len(communicators) != 1 or None in communicators:
        return None
    return {
        "communicator": _id(*communicators),
        "bytes": sum(payload.bytes or 0 for _, _, payload in own),
        "operation": kernel.operation or _operation({name for _, name, _ in own}),
    }


def _operation(names: set[str]) -> str | None:
    """What a kernel does that can do anything: what all its calls are named."""
    return min(names).removeprefix("nccl") if len(names) == 1 else None


def _id(communicator: int | None) -> str | None:
    return None if communicator is None else f"{communicator:016x}"


def _binary(data: bytes) -> bytes:
    """Some exports have the bytes themselves, others write them in hexadecimal."""
    try:
        return bytes.fromhex(data.decode("ascii")) if len(data) >= 2 * _HEADER.size else data
    except ValueError:
        return data
