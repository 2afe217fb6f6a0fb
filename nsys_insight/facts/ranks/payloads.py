"""What NCCL says of its calls: the payloads of its NVTX ranges, with communicator, message size and rank.

An event's payload is a header of 32 bytes (domain, schema, size of the payload, all it takes; little-endian) and a
struct, whose fields NVTX_PAYLOAD_SCHEMA_ENTRIES places. NCCL names them in its src/include/nvtx_payload_schemas.h.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def _binary(data: bytes) -> bytes:
    """Some exports have the bytes themselves, others write them in hexadecimal."""
    try:
        return bytes.fromhex(data.decode("ascii")) if len(data) >= 2 * _HEADER.size else data
    except ValueError:
        return data
