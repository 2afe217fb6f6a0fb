"""A trace as a timeline for ui.perfetto.dev and `trace_processor`: Perfetto's own protobuf, written while it is read.

Not Chrome's JSON: that nests slices of a track by time alone, so operations that overlap on a stream get lost, and the
viewers read it whole into memory. The few fields used here are written by hand, in a fifth of the time of a general
library. Source of the field numbers: protos/perfetto/trace in google/perfetto (trace_packet.proto, track_event.proto,
track_descriptor.proto, interned_data.proto).

Each stream of a GPU, each thread's CUDA API calls and its NVTX ranges are a track. What overlaps without nesting goes
to another track of the same name, which the viewer draws below. An arrow leads from a call to what it launched.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO

from nsys_insight.sql.statements import Statement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_insight.session.session import Session

_BEGIN, _END, _COUNTER = 1, 2, 4
_SEQUENCE = b"\x50\x01"  # trusted_packet_sequence_id: all packets are of one sequence, which shares interned names

# Of all: track (process_id, a, b), category, name, detail, start_ns, end_ns, flow (a call and what it launched).
_GPU = """
    WITH first AS (
        SELECT process_id, correlation_id, min(start_ns) AS start_ns FROM kernel_events
        WHERE coalesce(graph_node_id, 0) <> 0 GROUP BY ALL
    ), ops AS (
        SELECT k.process_id, k.device_id, k.stream_id, 'kernel' AS category, s.name,
            'grid (' || k.grid_x || ', ' || k.grid_y || ', ' || k.grid_z || '), block (' || k.block_x || ', '
                || k.block_y || ', ' || k.block_z || ')' || coalesce(', ' || k.registers_per_thread || ' registers', '')
                AS detail,
            k.start_ns, k.end_ns,
            CASE WHEN coalesce(k.graph_node_id, 0) = 0 OR f.process_id IS NOT NULL THEN k.correlation_id END AS flow
        FROM kernel_events AS k
        LEFT JOIN strings AS s USING (name_id)
        LEFT JOIN first AS f USING (process_id, correlation_id, start_ns)
        UNION ALL
        SELECT process_id, device_id, stream_id, 'copy', copy_kind,
            size_bytes || ' bytes, ' || source_memory || ' to ' || target_memory, start_ns, end_ns, correlation_id
        FROM memcpys
        UNION ALL
        SELECT process_id, device_id, stream_id, 'memset', 'memset', size_bytes || ' bytes', start_ns, end_ns,
            correlation_id
        FROM memsets
        UNION ALL
        SELECT process_id, device_id, stream_id, 'graph', 'graph ' || graph_id, NULL, start_ns, end_ns, correlation_id
        FROM graph_launches
    )
    SELECT * FROM ops ORDER BY process_id, device_id, stream_id, start_ns, end_ns DESC, name"""
_API = """
    SELECT process_id, thread_id, 0 AS place, 'api' AS category, name, NULL AS detail, start_ns, end_ns,
        CASE WHEN call_group IN ('launch', 'graph launch', 'copy', 'memset') THEN correlation_id END AS flow
    FROM api_calls ORDER BY process_id, thread_id, start_ns, end_ns DESC, name"""
_NVTX = """
    SELECT process_id, thread_id, 0 AS place, 'nvtx' AS category, name, nullif(domain, '') AS detail, start_ns,
        coalesce(end_ns, (SELECT max(end_ns) FROM wall), start_ns) AS end_ns, NULL AS flow
    FROM nvtx_ranges ORDER BY process_id, thread_id, start_ns, end_ns DESC, name"""
_METRICS = "SELECT gpu_id, name, start_ns, value FROM gpu_metrics ORDER BY gpu_id, name, start_ns"
_EARLIEST = """
    SELECT least((SELECT min(start_ns) FROM wall), (SELECT min(start_ns) FROM nvtx_ranges),
        (SELECT min(start_ns) FROM gpu_metrics), 0) AS earliest"""


def write_timeline(trace: Session, stream: BinaryIO) -> None:
    """Write what is in scope as a timeline. Perfetto knows no time before 0: such a trace is moved to begin there."""
    _Timeline(trace, stream).write()


class _Timeline:
    def __init__(self, trace: Session, stream: BinaryIO) -> None:
        self.trace, self.stream = trace, stream
        self.processes: dict[int, int] = {}
        self.threads: dict[tuple[int, int], int] = {}
        self.gpus: dict[tuple[int, int], int] = {}
        self.names: dict[str, int] = {}
        self.categories: dict[str, int] = {}
        self.process_names: dict[int, str | None] = {}
        self.thread_names: dict[tuple[int, int], str | None] = {}
        self.uuid = 0
        self.shift = 0

    def write(self) -> None:
        self.shift = -min(0, int(self.trace.rows(_EARLIEST)[0].earliest))
        # Before all else: a query ends the stream that is being read.
        processes = self.trace.rows("SELECT process_id, min(name) AS name FROM processes GROUP BY ALL")
        self.process_names = {row.process_id: row.name for row in processes}
        self.thread_names = {
            row[:2]: row[2] for row in self.trace.query("SELECT process_id, thread_id, name FROM threads").rows()
        }
        self._packet(b"\x68\x01")  # sequence_flags: interned names begin here
        self._slices(_API, lambda process, thread, _: self._track("CUDA API", self._thread(process, thread)))
        self._slices(_NVTX, lambda process, thread, _: self._track("NVTX", self._thread(process, thread)))
        self._slices(
            _GPU,
            lambda process, device, number: self._track(f"stream {number}", self._gpu(process, device)),
            nests=False,
        )
        self._counters()

    def _slices(self, query: str, new_track: Any, *, nests: bool = True) -> None:
        place, lanes = None, _Lanes(self, lambda: 0, nests=nests)
        for process, first, second, category, name, detail, start, end, flow in self._rows(query):
            if place != (process, first, second):
                lanes.close()
                place = (process, first, second)
                lanes = _Lanes(self, lambda place=place: new_track(*place), nests=nests)
            body = b"\x50" + _varint(self._name(name or "")) + b"\x18" + _varint(self._category(category))
            if detail:
                body += _detail(detail)
            if flow is not None:
                body += b"\xf9\x02" + (process << 40 | flow & 0xFFFFFFFFFF).to_bytes(8, "little")
            lanes.add(start + self.shift, max(start, end) + self.shift, body)
        lanes.close()

    def _counters(self) -> None:
        place, track = None, 0
        for gpu, name, start, value in self._rows(_METRICS):
            if place != (gpu, name):
                place = (gpu, name)
                track = self._track(f"GPU {gpu}: {name}", 0, b"\x42\x00")
            self.event(start + self.shift, _COUNTER, track, b"\xf0\x01" + _varint(value & 0xFFFFFFFFFFFFFFFF))

    def event(self, at: int, kind: int, track: int, body: bytes = b"") -> None:
        """Write a packet with one event of a track."""
        event = b"\x48" + bytes((kind,)) + b"\x58" + _varint(track) + body
        # sequence_flags 2: the event needs what was interned before.
        self._packet(b"\x40" + _varint(at) + b"\x68\x02" + b"\x5a" + _varint(len(event)) + event)

    def _packet(self, content: bytes) -> None:
        self.stream.write(b"\x0a" + _varint(len(content) + 2) + content + _SEQUENCE)

    def _rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        for batch in self.trace.stream(Statement(query)).batches():
            yield from batch

    def _track(self, name: str, parent: int, more: bytes = b"") -> int:
        self.uuid += 1
        above = b"\x28" + _varint(parent) if parent else b""
        descriptor = b"\x08" + _varint(self.uuid) + (_text(2, name) if name else b"") + above + more
        self._packet(_message(60, descriptor))
        return self.uuid

    def _process(self, pid: int) -> int:
        if pid not in self.processes:
            process = b"\x08" + _varint(pid) + _text(6, self.process_names.get(pid) or f"process {pid}")
            self.processes[pid] = self._track("", 0, _message(3, process))
        return self.processes[pid]

    def _thread(self, pid: int, tid: int) -> int:
        if (pid, tid) not in self.threads:
            parent = self._process(pid)
            name = self.thread_names.get((pid, tid)) or f"thread {tid}"
            thread = b"\x08" + _varint(pid) + b"\x10" + _varint(tid) + _text(5, name)
            self.threads[pid, tid] = self._track("", parent, _message(4, thread))
        return self.threads[pid, tid]

    def _gpu(self, pid: int, device: int) -> int:
        if (pid, device) not in self.gpus:
            self.gpus[pid, device] = self._track(f"GPU: device {device} of process {pid}", self._process(pid))
        return self.gpus[pid, device]

    def _name(self, name: str) -> int:
        if name not in self.names:
            self.names[name] = len(self.names) + 1
            entry = b"\x08" + _varint(self.names[name]) + _text(2, name)
            self._packet(_message(12, _message(2, entry)) + b"\x68\x02")
        return self.names[name]

    def _category(self, name: str) -> int:
        if name not in self.categories:
            self.categories[name] = len(self.categories) + 1
            entry = b"\x08" + _varint(self.categories[name]) + _text(2, name)
            self._packet(_message(12, _message(1, entry)) + b"\x68\x02")
        return self.categories[name]


class _Lanes:
    """The tracks of one place: as many as it takes for the slices of each to nest, or not to overlap at all."""

    def __init__(self, timeline: _Timeline, new_track: Any, *, nests: bool) -> None:
        self.timeline, self.new_track, self.nests = timeline, new_track, nests
        self.lanes: list[tuple[int, list[int]]] = []

    def add(self, start: int, end: int, body: bytes) -> None:
        """Put a slice on the first track that has room; slices come in order of start, the longest first."""
        for track, open_ends in self.lanes:
            while open_ends and open_ends[-1] <= start:
                self.timeline.event(open_ends.pop(), _END, track)
            if not open_ends or (self.nests and open_ends[-1] >= end):
                break
        else:
            track, open_ends = self.new_track(), []
            self.lanes.append((track, open_ends))
        self.timeline.event(start, _BEGIN, track, body)
        open_ends.append(end)

    def close(self) -> None:
        """End what is still open."""
        for track, open_ends in self.lanes:
            while open_ends:
                self.timeline.event(open_ends.pop(), _END, track)


@lru_cache(maxsize=4096)
def _detail(text: str) -> bytes:
    return _message(4, _text(10, "detail") + _text(6, text))


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode("utf-8", "replace"))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
