"""The NCCL kernels in a trace, each with the communicator and the message size of the call that launched it.

NCCL describes its calls in the payloads of its NVTX ranges. A payload is a header of 32 bytes (domain, schema, size of
the payload, total size; little-endian) and a struct. NVTX_PAYLOAD_SCHEMA_ENTRIES has the offsets of its fields. NCCL
names the fields in its src/include/nvtx_payload_schemas.h.
"""

from __future__ import annotations

import struct
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.sql.rows import fetch_rows, insert_rows, name_cells

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import duckdb

    from nsys_insight.facts.context import Context

    Call = tuple[int, str, "Payload"]  # the start, the name, the payload

_SEND, _RECEIVE, _ALL_TO_ALL = "ncclSend", "ncclRecv", "ncclAlltoAll"
_COLUMNS = ("process_id", "device_id", "gpu_id", "stream_id", "start_ns", "end_ns", "name_id")
_HEADER = struct.Struct("<QQQQ")
# The fields to read by NCCL's names, each with our name and its C type.
_FIELDS = {
    "NCCL communicator ID": ("communicator", struct.Struct("<Q")),
    "Message size [bytes]": ("bytes", struct.Struct("<Q")),
    "Rank": ("rank", struct.Struct("<i")),
    "No. of ranks": ("ranks", struct.Struct("<i")),
    "Peer rank": ("peer", struct.Struct("<i")),
}
# No message is larger. A field with a larger value is invalid.
_MAX_BYTES = 1 << 44
# The id of a communicator is a hash. 0 means no communicator.
_NO_COMMUNICATOR = 0

# (domain, schema, size of the payload, name of a field, its offset)
SchemaRow = tuple[int | None, int, int | None, str | None, int | None]


class Payload(NamedTuple):
    """The fields of a payload; None for a field that it does not have."""

    communicator: int | None = None
    bytes: int | None = None
    rank: int | None = None
    ranks: int | None = None
    peer: int | None = None


class Schemas:
    """The layouts of payloads in one trace."""

    def __init__(self, rows: Iterable[SchemaRow]) -> None:
        """Take the known fields. A field with two different offsets in its schema is ignored."""
        self._sizes: dict[int, set[int]] = {}
        offsets: dict[tuple[int, str], set[int]] = {}
        for _, schema, size, name, offset in rows:
            if size is not None:
                self._sizes.setdefault(schema, set()).add(size)
            if name in _FIELDS and offset is not None:
                offsets.setdefault((schema, name), set()).add(offset)
        self._offsets = {key: min(values) for key, values in offsets.items() if len(values) == 1}

    def __bool__(self) -> bool:
        """Return whether any known field has an offset."""
        return bool(self._offsets)

    def read(self, data: bytes) -> Payload:
        """Read an event's payload. A payload that does not match its schema has no fields."""
        data = _decode_hex(data)
        if len(data) < _HEADER.size:
            return Payload()
        _, schema, size, _ = _HEADER.unpack_from(data)
        if len(data) < _HEADER.size + size or self._sizes.get(schema, {size}) != {size}:
            return Payload()
        fields: dict[str, int] = {}
        for name, (field, c_type) in _FIELDS.items():
            offset = self._offsets.get((schema, name))
            if offset is not None and 0 <= offset <= size - c_type.size:
                (fields[field],) = c_type.unpack_from(data, _HEADER.size + offset)
        if fields.get("bytes", 0) > _MAX_BYTES:
            del fields["bytes"]
        if fields.get("communicator") == _NO_COMMUNICATOR:
            del fields["communicator"]
        return Payload(**fields)


def fill(context: Context) -> None:
    """Fill `facts.nccl_kernels`, `facts.nccl_messages` and `facts.nccl_ranks`."""
    connection = context.connection
    statements = context.statements("nccl", "schemas", "payloads", "kernels")
    schemas = Schemas(connection.execute(statements["schemas"]).fetchall())
    events = list(_read_events(connection, statements["payloads"], schemas)) if schemas else []
    kernels = context.runner("nccl")("launched") if events else fetch_rows(connection, statements["kernels"])
    calls_by_kernel = _match_calls(kernels, events) if events else {}
    descriptions = {
        index: description
        for index, calls in calls_by_kernel.items()
        if (description := _describe(kernels[index], calls))
    } or _find_exchanges(context, kernels)
    insert_rows(
        connection,
        "facts.nccl_kernels",
        (
            {
                **{name: getattr(kernel, name) for name in _COLUMNS},
                "operation": kernel.operation,
                "communicator": None,
                "bytes": None,
                **descriptions.get(index, {}),
            }
            for index, kernel in enumerate(kernels)
        ),
    )
    insert_rows(
        connection,
        "facts.nccl_messages",
        (
            {
                **{name: getattr(kernels[index], name) for name in _COLUMNS[:3]}, "start_ns": kernels[index].start_ns,
                "communicator": descriptions[index]["communicator"], "is_send": name == _SEND, "peer": payload.peer,
                "bytes": payload.bytes, "place": position,
            }
            for index in sorted(descriptions, key=lambda index: kernels[index].start_ns)
            if index in calls_by_kernel
            and kernels[index].operation == "SendRecv"
            and descriptions[index]["operation"] != "AlltoAll"
            for position, (_, name, payload) in enumerate(calls_by_kernel[index])
            if payload.peer is not None
        ),
    )  # fmt: skip
    insert_rows(
        connection,
        "facts.nccl_ranks",
        (
            {
                "process_id": event.process_id, "thread_id": event.thread_id, "start_ns": event.start_ns,
                "end_ns": event.end_ns, "communicator": _format_id(payload.communicator), "rank": payload.rank,
                "ranks": payload.ranks,
            }
            for event, payload in events
            if payload.rank is not None and payload.ranks is not None
        ),
    )  # fmt: skip


def _read_events(
    connection: duckdb.DuckDBPyConnection, statement: str, schemas: Schemas
) -> Iterator[tuple[Any, Payload]]:
    """Read NCCL's NVTX ranges with their payloads, thread by thread in order of time."""
    cursor = connection.execute(statement)
    names = [column[0] for column in cursor.description or ()]
    while rows := cursor.fetchmany(50_000):
        for event in name_cells(names, rows):
            yield event, schemas.read(event.binaryData)


def _find_exchanges(context: Context, kernels: Sequence[Any]) -> dict[int, dict[str, Any]]:
    """Find the kernels in which a rank sends and receives several messages, by the names of NCCL's ranges alone."""
    if not any(kernel.operation == "SendRecv" for kernel in kernels):
        return {}
    run = context.runner("nccl")
    events = [(event, Payload(bytes=0)) for event in run("names")]
    exchanges = {}
    for index, calls in (_match_calls(run("launched"), events) if events else {}).items():
        names = [name for _, name, _ in calls]
        if kernels[index].operation != "SendRecv":
            continue
        if set(names) == {_ALL_TO_ALL}:
            exchanges[index] = {"operation": "AlltoAll"}
        elif names.count(_SEND) == names.count(_RECEIVE) > 1:
            exchanges[index] = {"operation": "Exchange"}
    return exchanges


def _match_calls(kernels: Sequence[Any], events: Sequence[tuple[Any, Payload]]) -> dict[int, list[Call]]:
    """Return the calls that each kernel runs: those on its thread since the kernel before it, up to its launch."""
    calls_by_thread: dict[tuple[int, int], list[Call]] = {}
    for event, payload in events:
        if payload.bytes is not None:
            calls = calls_by_thread.setdefault((event.process_id, event.thread_id), [])
            calls.append((event.start_ns, event.name, payload))
    launches = sorted(
        (kernel.process_id, kernel.thread_id, kernel.called_ns, index)
        for index, kernel in enumerate(kernels)
        if kernel.thread_id is not None and kernel.called_ns is not None
    )
    calls_by_kernel: dict[int, list[Call]] = {}
    for (process, thread), thread_launches in groupby(launches, key=lambda row: row[:2]):
        remaining_calls = iter(calls_by_thread.get((process, thread), ()))
        next_call = next(remaining_calls, None)
        for _, _, launch_ns, index in thread_launches:
            calls_by_kernel[index] = kernel_calls = []
            while next_call is not None and next_call[0] <= launch_ns:
                kernel_calls.append(next_call)
                next_call = next(remaining_calls, None)
    return calls_by_kernel


def _describe(kernel: Any, calls: Sequence[Call]) -> dict[str, Any] | None:
    """Return the communicator, size and operation of a kernel that runs these calls; None if they are ambiguous.

    Within ncclGroupStart and ncclGroupEnd, several calls become one kernel per communicator. With one communicator,
    their sizes are summed; of an AlltoAll, the mean over the ranks is taken. With several, the trace does not show
    which kernel belongs to which communicator.
    """
    communicators = {payload.communicator for _, _, payload in calls}
    if len(communicators) != 1 or None in communicators:
        return None
    operation = kernel.operation or _operation_of({name for _, name, _ in calls})
    is_to_all = operation == "SendRecv" and _is_to_all(calls)
    sent_calls = [payload for _, name, payload in calls if not is_to_all or name in (_SEND, _ALL_TO_ALL)]
    size = sum(payload.bytes or 0 for payload in sent_calls)
    return {
        "communicator": _format_id(*communicators),
        # ncclAlltoAll states what it sends to each rank.
        "bytes": size // len({payload.peer for payload in sent_calls}) if is_to_all else size,
        "operation": "AlltoAll" if is_to_all else operation,
    }


def _is_to_all(calls: Sequence[Call]) -> bool:
    """Return whether calls are an exchange of all ranks: messages to and from each of them, this one included."""
    if {name for _, name, _ in calls} == {_ALL_TO_ALL}:
        return True
    peers = {kind: {payload.peer for _, name, payload in calls if name == kind} for kind in (_SEND, _RECEIVE)}
    return len(peers[_SEND]) > 1 and peers[_SEND] == peers[_RECEIVE] == set(range(len(peers[_SEND])))


def _operation_of(names: set[str]) -> str | None:
    """Return the operation of a generic kernel, from the common name of its calls."""
    return min(names).removeprefix("nccl") if len(names) == 1 else None


def _format_id(communicator: int | None) -> str | None:
    return None if communicator is None else f"{communicator:016x}"


def _decode_hex(data: bytes) -> bytes:
    """Decode a payload that an export wrote in hexadecimal. Other exports have the bytes themselves."""
    try:
        return bytes.fromhex(data.decode("ascii")) if len(data) >= 2 * _HEADER.size else data
    except ValueError:
        return data
