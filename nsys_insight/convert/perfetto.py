"""A trace as a timeline for ui.perfetto.dev and `trace_processor`, in Perfetto's own protobuf format.

It is written while the trace is read. Chrome's JSON is no alternative: it nests slices of a track by time alone, so
operations that overlap on a stream are lost, and the viewers read the entire file into memory. The few protobuf fields
are encoded by hand, in a fifth of the time of a general library. Source of the field numbers: protos/perfetto/trace in
google/perfetto (trace_packet.proto, track_event.proto, track_descriptor.proto, interned_data.proto).

Each stream of a GPU, the CUDA API calls of each thread, and the NVTX ranges of each thread have a track. Slices that
overlap without nesting go to another track of the same name, which the viewer draws below. An arrow leads from a call
to the operation that it launched.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO

from nsys_insight.paths import read_query
from nsys_insight.sql.statements import Statement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_insight.session.session import Session

_BEGIN, _END, _COUNTER = 1, 2, 4
_SEQUENCE = b"\x50\x01"  # trusted_packet_sequence_id: all packets share one sequence, and its interned names


def write_timeline(trace: Session, stream: BinaryIO) -> None:
    """Write the part in scope as a timeline. Perfetto has no negative times: such a trace is shifted to start at 0."""
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
        self.shift = -min(0, int(self.trace.rows(read_query("internal/convert/first_time"))[0].first_ns))
        # These queries come first, because a query ends the stream that is being read.
        processes = self.trace.rows("SELECT process_id, min(name) AS name FROM processes GROUP BY ALL")
        self.process_names = {row.process_id: row.name for row in processes}
        threads = self.trace.rows("SELECT process_id, thread_id, name FROM threads")
        self.thread_names = {(row.process_id, row.thread_id): row.name for row in threads}
        self._write_packet(b"\x68\x01")  # sequence_flags: interned names begin here
        self._write_slices(
            "api_slices",
            lambda process, thread, _: self._add_track("CUDA API", self._get_thread_track(process, thread)),
        )
        self._write_slices(
            "nvtx_slices", lambda process, thread, _: self._add_track("NVTX", self._get_thread_track(process, thread))
        )
        self._write_slices(
            "gpu_slices",
            lambda process, device, number: self._add_track(f"stream {number}", self._get_gpu_track(process, device)),
            nests=False,
        )
        self._write_counters()

    def _write_slices(self, query: str, new_track: Any, *, nests: bool = True) -> None:
        track_key, track_group = None, _TrackGroup(self, lambda: 0, nests=nests)
        for process, first, second, category, name, detail, start, end, flow in self._read_rows(query):
            if track_key != (process, first, second):
                track_group.close()
                track_key = (process, first, second)
                track_group = _TrackGroup(self, lambda key=track_key: new_track(*key), nests=nests)
            body = (
                b"\x50"
                + _encode_varint(self._intern_name(name or ""))
                + b"\x18"
                + _encode_varint(self._intern_category(category))
            )
            if detail:
                body += _encode_detail(detail)
            if flow is not None:
                body += b"\xf9\x02" + (process << 40 | flow & 0xFFFFFFFFFF).to_bytes(8, "little")
            track_group.add(start + self.shift, max(start, end) + self.shift, body)
        track_group.close()

    def _write_counters(self) -> None:
        track_key, track = None, 0
        for gpu, name, start, value in self._read_rows("metric_samples"):
            if track_key != (gpu, name):
                track_key = (gpu, name)
                track = self._add_track(f"GPU {gpu}: {name}", 0, b"\x42\x00")
            self.write_event(
                start + self.shift, _COUNTER, track, b"\xf0\x01" + _encode_varint(value & 0xFFFFFFFFFFFFFFFF)
            )

    def write_event(self, time_ns: int, kind: int, track: int, body: bytes = b"") -> None:
        """Write a packet with one event of a track."""
        event = b"\x48" + bytes((kind,)) + b"\x58" + _encode_varint(track) + body
        # sequence_flags 2: the event needs the names that were interned before.
        self._write_packet(
            b"\x40" + _encode_varint(time_ns) + b"\x68\x02" + b"\x5a" + _encode_varint(len(event)) + event
        )

    def _write_packet(self, content: bytes) -> None:
        self.stream.write(b"\x0a" + _encode_varint(len(content) + 2) + content + _SEQUENCE)

    def _read_rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        for batch in self.trace.stream(Statement(read_query(f"internal/convert/{query}"))).batches():
            yield from batch

    def _add_track(self, name: str, parent: int, extra_fields: bytes = b"") -> int:
        self.uuid += 1
        parent_field = b"\x28" + _encode_varint(parent) if parent else b""
        descriptor = (
            b"\x08" + _encode_varint(self.uuid) + (_encode_text(2, name) if name else b"") + parent_field + extra_fields
        )
        self._write_packet(_encode_message(60, descriptor))
        return self.uuid

    def _get_process_track(self, pid: int) -> int:
        if pid not in self.processes:
            process = b"\x08" + _encode_varint(pid) + _encode_text(6, self.process_names.get(pid) or f"process {pid}")
            self.processes[pid] = self._add_track("", 0, _encode_message(3, process))
        return self.processes[pid]

    def _get_thread_track(self, pid: int, tid: int) -> int:
        if (pid, tid) not in self.threads:
            parent = self._get_process_track(pid)
            name = self.thread_names.get((pid, tid)) or f"thread {tid}"
            thread = b"\x08" + _encode_varint(pid) + b"\x10" + _encode_varint(tid) + _encode_text(5, name)
            self.threads[pid, tid] = self._add_track("", parent, _encode_message(4, thread))
        return self.threads[pid, tid]

    def _get_gpu_track(self, pid: int, device: int) -> int:
        if (pid, device) not in self.gpus:
            self.gpus[pid, device] = self._add_track(
                f"GPU: device {device} of process {pid}", self._get_process_track(pid)
            )
        return self.gpus[pid, device]

    def _intern_name(self, name: str) -> int:
        if name not in self.names:
            self.names[name] = len(self.names) + 1
            entry = b"\x08" + _encode_varint(self.names[name]) + _encode_text(2, name)
            self._write_packet(_encode_message(12, _encode_message(2, entry)) + b"\x68\x02")
        return self.names[name]

    def _intern_category(self, name: str) -> int:
        if name not in self.categories:
            self.categories[name] = len(self.categories) + 1
            entry = b"\x08" + _encode_varint(self.categories[name]) + _encode_text(2, name)
            self._write_packet(_encode_message(12, _encode_message(1, entry)) + b"\x68\x02")
        return self.categories[name]


class _TrackGroup:
    """The tracks of one stream or thread: enough of them for the slices of each to nest, or not to overlap at all."""

    def __init__(self, timeline: _Timeline, new_track: Any, *, nests: bool) -> None:
        self.timeline, self.new_track, self.nests = timeline, new_track, nests
        self.tracks: list[tuple[int, list[int]]] = []

    def add(self, start: int, end: int, body: bytes) -> None:
        """Put a slice on the first track with room; slices come in order of start, the longest first."""
        for track, open_ends in self.tracks:
            while open_ends and open_ends[-1] <= start:
                self.timeline.write_event(open_ends.pop(), _END, track)
            if not open_ends or (self.nests and open_ends[-1] >= end):
                break
        else:
            track, open_ends = self.new_track(), []
            self.tracks.append((track, open_ends))
        self.timeline.write_event(start, _BEGIN, track, body)
        open_ends.append(end)

    def close(self) -> None:
        """End the open slices."""
        for track, open_ends in self.tracks:
            while open_ends:
                self.timeline.write_event(open_ends.pop(), _END, track)


@lru_cache(maxsize=4096)
def _encode_detail(text: str) -> bytes:
    return _encode_message(4, _encode_text(10, "detail") + _encode_text(6, text))


def _encode_message(field: int, content: bytes) -> bytes:
    return _encode_varint(field << 3 | 2) + _encode_varint(len(content)) + content


def _encode_text(field: int, text: str) -> bytes:
    return _encode_message(field, text.encode("utf-8", "replace"))


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
