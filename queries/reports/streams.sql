/*
title = "CUDA streams: work and overlap"
topic = "program"
place = 2
question = "Which streams are busy, and do they overlap?"
examples = ["", "--device 0"]
main = [
    "device_id", "stream_id", "busy_ns", "wall_pct", "kernels", "copies", "overlap_pct", "stream_name", "stream_type",
]
description = """
Describes each stream that ran operations. busy_ns is the union of its kernels, copies, memsets and whole graphs;
overlap_ns is the part of that in which another stream of the same GPU was busy too, of any process. span_ns is the
time from its first operation to the end of its last. Streams are numbered within a process. A scope keeps
operations that begin (--from, --to) or were launched (--nvtx) in it until they end: busy_ns may extend beyond the
wall time, wall_pct counts only the part within it."""
reading = """
One stream with an overlap of 0: everything runs one after another, so copies and independent kernels could overlap
on streams of their own. Many streams with little overlap: they wait for each other (events, the default stream) or
each kernel fills the GPU. Copies on the stream of the kernels do not overlap with them: put them on another, from
pinned memory. The default stream (null stream) waits for all other streams: use non-blocking ones or
--default-stream per-thread."""
empty = "No GPU operations are recorded in this scope"
advice = "if the program did use the GPU, capture with: nsys profile -t cuda"

[shares]
gpu_busy_pct = "GPU busy time"
overlap_pct = "the stream's busy time"

[columns]
process_id = "Operating system's process id"
device_id = "CUDA device number within the process"
stream_id = "CUDA stream, numbered by CUPTI"
stream_name = "Name that the program gives to it with NVTX (nvtxNameCudaStreamA); NULL without"
stream_type = """\
null stream; default stream, which waits for the null stream and the null stream for it; non-blocking stream; NULL \
when the trace does not say"""
priority = "Lower is more urgent; NULL when the trace does not say"
kernels = "Kernels that ran on it"
copies = "Copies and memsets"
graphs = "CUDA graphs that ran as a whole, traced without their kernels"
busy_ns = "Time in which the stream was busy"
wall_pct = "The part of busy_ns within the wall time, as a share of the wall time"
gpu_busy_pct = "busy_ns as a share of the time in which the GPU was busy with any stream"
overlap_ns = "Part of busy_ns in which another stream of the GPU was busy too"
overlap_pct = "overlap_ns as a share of busy_ns"
span_ns = "From its first operation to the end of its last"
gpu_id = "The machine's GPU where the trace says which, else the CUDA device number"

[notes]
concurrency.text = "{gpus}"
concurrency.items.gpus = ["GPU {gpu_id}: while it is busy", "{streams_busy} of {streams} streams are busy on average"]
concurrency.query = """
SELECT list(g ORDER BY gpu_id) AS gpus
FROM (
    SELECT gpu_id, count(*) AS streams, round(sum(gpu_busy_pct) / 100, 2) AS streams_busy
    FROM answer
    GROUP BY gpu_id
    HAVING count(*) > 1
) AS g
HAVING count(*) > 0"""
*/
SELECT
    m.process_id,
    m.device_id,
    m.stream_id,
    c.stream_name,
    c.stream_type,
    c.priority,
    m.kernels,
    m.copies,
    m.graphs,
    m.busy_ns,
    100.0 * m.within_ns / (SELECT sum(duration_ns) FROM wall) AS wall_pct,
    100.0 * m.busy_ns / nullif(m.gpu_busy_ns, 0) AS gpu_busy_pct,
    m.overlap_ns,
    100.0 * m.overlap_ns / nullif(m.busy_ns, 0) AS overlap_pct,
    m.span_ns,
    m.gpu_id
FROM _stream_times AS m
LEFT JOIN (
    SELECT
        process_id, stream_id, min(stream_name) AS stream_name, min(stream_type) AS stream_type,
        min(priority) AS priority
    FROM cuda_streams
    GROUP BY ALL
) AS c USING (process_id, stream_id)
ORDER BY m.busy_ns DESC, m.process_id, m.device_id, m.stream_id
