"""Backtraces that Python gives of its CUDA calls: marks of NVTX whose payload has functions, files and lines.

The payload (nsys 2025.3; NVTX_PAYLOAD_SCHEMAS of the domain describes it, little-endian): a header of 32 bytes with the
payload's size at 16 and its place at 24; then the thread's id (8 bytes) and state (4), how many frames (4), and
frames of 24 bytes, the innermost first: the ids of function and file in StringIds, the line (4), and 4 bytes
that mean nothing.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from nsys_insight.facts.context import Context

    Frames = tuple[tuple[int, int, int], ...]

_HEADER, _COUNT, _FRAME = struct.Struct("<16xQQ"), struct.Struct("<12xI"), struct.Struct("<QQI4x")
# A chain is cut here: its innermost frames tell the place.
_MOST = 1_000


def fill(context: Context) -> None:
    """Fill `facts.python_lines`, `facts.python_frames` and `facts.python_chains`."""
    statements = context.statements("python_frames", "marks", "chains")
    rows = context.connection.execute(statements["marks"]).fetchall()
    if rows:
        _store(context.connection, rows, statements["chains"])


def frames(payload: bytes) -> Frames:
    """The frames of a payload as ids of function and file, and lines; none where it is not as it should be."""
    if len(payload) < _HEADER.size:
        return ()
    size, place = _HEADER.unpack_from(payload)
    if size < _COUNT.size or place + size > len(payload):
        return ()
    (count,) = _COUNT.unpack_from(payload, place)
    first = place + _COUNT.size
    if count * _FRAME.size > size - _COUNT.size:
        return ()
    return tuple(_FRAME.unpack_from(payload, first + at * _FRAME.size) for at in range(min(count, _MOST)))


def _store(connection: duckdb.DuckDBPyConnection, rows: Sequence[tuple[int, int, int, bytes]], statement: str) -> None:
    import numpy as np

    read: dict[bytes, Frames] = {}
    chains: dict[Frames, int] = {}
    calls = []
    for process, thread, start, payload in rows:
        if payload not in read:
            read[payload] = frames(payload)
        chain = read[payload]
        if chain:
            calls.append((process, thread, start, chains.setdefault(chain, -1 - len(chains))))
    lines = [(number, depth, *frame) for chain, number in chains.items() for depth, frame in enumerate(chain)]
    if not lines:
        return
    tables = {
        "python_rows": (("chain_id", "depth", "function_id", "file_id", "line"), np.array(lines)),
        "python_calls": (("process_id", "thread_id", "start_ns", "chain_id"), np.array(calls)),
    }
    for name, (columns, values) in tables.items():
        connection.register(name, {column: values[:, at] for at, column in enumerate(columns)})
    connection.execute(statement)
    for name in tables:
        connection.unregister(name)
