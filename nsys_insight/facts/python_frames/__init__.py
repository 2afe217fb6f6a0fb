"""Python's own call stacks of CUDA calls: NVTX marks whose payload has functions, files and lines.

NVTX_PAYLOAD_SCHEMAS of the domain describes the payload (nsys 2025.3). It is little-endian. A header of 32 bytes has
the payload's size at offset 16 and its position at offset 24. Then come the thread's id (8 bytes), its state (4) and
the number of frames (4). A frame has 24 bytes: the ids of function and file in StringIds (8 each), the line (4), and 4
bytes without meaning. The innermost frame is first.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from nsys_insight.facts.arrays import np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from nsys_insight.facts.context import Context

    Frames = tuple[tuple[int, int, int], ...]  # the ids of the function and the file, and the line

_HEADER, _COUNT, _FRAME = struct.Struct("<16xQQ"), struct.Struct("<12xI"), struct.Struct("<QQI4x")
# Longer stacks are cut. The innermost frames identify the call site.
_MAX_FRAMES = 1_000


def fill(context: Context) -> None:
    """Fill `facts.python_lines`, `facts.python_frames` and `facts.python_chains`."""
    statements = context.statements("python_frames", "marks", "chains")
    rows = context.connection.execute(statements["marks"]).fetchall()
    if rows:
        _store(context.connection, rows, statements["chains"])


def parse_frames(payload: bytes) -> Frames:
    """Return the frames of a payload, or none if the payload is malformed."""
    if len(payload) < _HEADER.size:
        return ()
    size, position = _HEADER.unpack_from(payload)
    if size < _COUNT.size or position + size > len(payload):
        return ()
    (count,) = _COUNT.unpack_from(payload, position)
    first_frame = position + _COUNT.size
    if count * _FRAME.size > size - _COUNT.size:
        return ()
    return tuple(
        _FRAME.unpack_from(payload, first_frame + depth * _FRAME.size) for depth in range(min(count, _MAX_FRAMES))
    )


def _store(connection: duckdb.DuckDBPyConnection, rows: Sequence[tuple[int, int, int, bytes]], statement: str) -> None:
    frames_by_payload: dict[bytes, Frames] = {}
    chain_ids: dict[Frames, int] = {}
    calls = []
    for process, thread, start_ns, payload in rows:
        if payload not in frames_by_payload:
            frames_by_payload[payload] = parse_frames(payload)
        chain = frames_by_payload[payload]
        if chain:
            calls.append((process, thread, start_ns, chain_ids.setdefault(chain, -1 - len(chain_ids))))
    lines = [(chain_id, depth, *frame) for chain, chain_id in chain_ids.items() for depth, frame in enumerate(chain)]
    if not lines:
        return
    tables = {
        "python_rows": (("chain_id", "depth", "function_id", "file_id", "line"), np.array(lines)),
        "python_calls": (("process_id", "thread_id", "start_ns", "chain_id"), np.array(calls)),
    }
    for name, (columns, values) in tables.items():
        connection.register(name, {column: values[:, index] for index, column in enumerate(columns)})
    connection.execute(statement)
    for name in tables:
        connection.unregister(name)
