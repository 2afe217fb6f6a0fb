r"""The blocks of a report of ncu: whether the file has all of them to the end.

A report is the text `NVR\0` and a header, then blocks. A block is a header, which states the size of the payload, and
the payload. Each header is a Protocol Buffers message; four bytes before it have its size. NVIDIA's package does not
notice the end of a file that was cut: the last launch then has no name, or is missing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"NVR\0"

_SIZE_BYTES = 4
_PAYLOAD_SIZE = 5  # the number of the field in the header of a block
_VARINT, _FIXED64, _TEXT, _FIXED32 = 0, 1, 2, 5


def is_cut(report: Path) -> bool:
    """Return whether a report ends within a block. False for another file, and for blocks that cannot be read."""
    try:
        with report.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if stream.read(len(MAGIC)) != MAGIC:
                return False
            _read_header(stream, size)
            while stream.tell() < size:
                stream.seek(_find_payload_size(_read_header(stream, size)), os.SEEK_CUR)
            return stream.tell() > size
    except EOFError:
        return True
    except (OSError, ValueError):
        return False


def _read_header(stream: BinaryIO, file_size: int) -> bytes:
    header_size = int.from_bytes(_read_bytes(stream, _SIZE_BYTES), "little")
    if header_size > file_size - stream.tell():
        raise EOFError
    return _read_bytes(stream, header_size)


def _read_bytes(stream: BinaryIO, count: int) -> bytes:
    content = stream.read(count)
    if len(content) < count:
        raise EOFError
    return content


def _find_payload_size(header: bytes) -> int:
    """Find the size of the payload in the header of a block.

    Raises:
        ValueError: The header is not such a message.
    """
    position = payload_size = 0
    while position < len(header):
        key, position = _read_varint(header, position)
        kind = key & 7
        if kind == _VARINT:
            number, position = _read_varint(header, position)
            if key >> 3 == _PAYLOAD_SIZE:
                payload_size = number
        elif kind == _TEXT:
            length, position = _read_varint(header, position)
            position += length
        elif kind in (_FIXED64, _FIXED32):
            position += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(kind)
    if position > len(header) or payload_size >= 1 << 63:
        raise ValueError(position)
    return payload_size


def _read_varint(content: bytes, position: int) -> tuple[int, int]:
    """Read a number of 7 bits per byte, lowest first; return it and the position after it."""
    for end in range(position, min(position + 10, len(content))):
        if content[end] < 1 << 7:
            bits = content[position : end + 1]
            return sum((byte & 0x7F) << 7 * place for place, byte in enumerate(bits)), end + 1
    raise ValueError(position)
