/*
title = "Copies and memsets on the GPU"
topic = "memory"
place = 2
in_help = true
question = "What is copied, in which direction, from which kind of memory, how fast?"
examples = ["", "--group-by size"]
aliases = ["cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum", "cuda_memcpy_async", "cuda_memcpy_sync"]
main = [
    "kind", "total_ns", "copy_time_pct", "calls", "size_bytes", "avg_bytes", "bandwidth_bytes_per_s", "source_memory",
    "target_memory",
]
description = """
Adds up the copies and memsets that GPUs executed, by the call that requested them, the kind, and the memory that
they read and wrote. A row of the trace counts once, even where it stands for a batch of copies. bandwidth is all
bytes divided by the time of all copies. Durations are end - start on the GPU: they include neither the time that
the host waits (see syncs) nor the copying between pageable memory and the driver's buffer. Copies that overlap may
add up to more than the wall time."""
reading = """
Pageable memory: the copy goes through a buffer of the driver, at a fraction of the bandwidth, and H2D often slower
than D2H. Even an asynchronous call blocks: to the host until the copy is done, to the GPU until the driver has the
data. Allocate it with cudaMallocHost (pin_memory=True). If the bandwidth is far
below the bus (PCIe 4 ×16: 25 GB/s, PCIe 5: 50 GB/s) and copies are small, latency dominates; combine them, see
--group-by size. H2D in a loop: keep the data on the GPU. D2H in a loop: see syncs.
D2D: a fused kernel would not need it. UM: pages of unified memory, which pinned memory does not speed up: see
unified-memory."""
empty = "No copies or memsets are recorded in this scope"
advice = "if the program did use the GPU, capture with: nsys profile -t cuda"

[params.group_by]
default = "call"
choices = ["call", "size", "stream", "nvtx", "caller", "stack"]
help = """\
What the copies of a kind are split by: the API call, size classes, the stream, the innermost NVTX range that \
requested them"""

[columns]
kind = "H2D, D2H, D2D, P2P … as the trace calls it, or memset"
source_memory = "Memory read: pageable, pinned, device, managed …; NULL for a memset"
target_memory = "Memory written"
name = "The API call, or what --group-by selects"
calls = "Copies or memsets executed"
total_ns = "Sum of their durations"
copy_time_pct = "total_ns as a share of the time of all copies and memsets in scope"
wall_pct = "total_ns as a share of the wall time"
size_bytes = "Sum of their sizes"
bandwidth_bytes_per_s = "size_bytes / total_ns; NULL where their time is not recorded (staged P2P above 1 MiB)"
avg_bytes = "Mean size"
min_bytes = "Smallest"
max_bytes = "Largest"
avg_ns = "Mean duration"
med_ns = "Median duration"
min_ns = "Shortest"
max_ns = "Longest"
stddev_ns = "Sample standard deviation of the durations; NULL for a single one"

[notes]
pageable.text = [
    """{calls:asynchronous copy uses|asynchronous copies use} pageable memory; the CPU is in
    {#calls:its call|their calls} for {host_ns}""",
    "{waiting:call returns|calls return} after the copy< and {early} before, when the driver has the data>",
    "pin the host buffer",
]
pageable.query = """
SELECT
    count(*) AS calls, sum(call_ns)::BIGINT AS host_ns,
    nullif(count(*) FILTER (is_waiting), 0) AS waiting,
    CASE WHEN waiting > 0 THEN nullif(count(*) - waiting, 0) END AS early
FROM (
    SELECT c.end_ns - c.start_ns AS call_ns, c.end_ns >= max(m.end_ns) AS is_waiting
    FROM memcpys AS m
    JOIN api_calls AS c ON c.process_id = m.process_id AND c.correlation_id = m.correlation_id
    WHERE 'pageable' IN (m.source_memory, m.target_memory) AND c.name LIKE '%Async%' AND $group_by = 'call'
        AND c.call_group = 'copy'
    GROUP BY c.process_id, c.correlation_id, c.start_ns, c.end_ns
)
HAVING count(*) > 0"""

batches.text = """
{rows:row of the trace stands|rows of the trace stand} for {copies:copy|copies} in batches: each counts once here"""
batches.query = """
SELECT count(*) AS rows, sum(copy_count) AS copies FROM memcpys WHERE copy_count > 1 HAVING count(*) > 0"""

staged.text = """
{copies:copy|copies} from one GPU to another went through host memory, in two rows each: without peer access, nsys
records only the time of the last MiB"""
staged.query = """
SELECT sum(calls) // 2 AS copies FROM answer WHERE kind = 'staged P2P' AND max_bytes > 1048576 HAVING count(*) > 0"""

graphs.use = "whole_graphs"
graphs.text = """
CUDA graphs ran as a whole {graphs:time}: copies and memsets inside them are not in this table; capture with
--cuda-graph-trace=node to see them"""

[ranks]
by = ["kind", "source_memory", "target_memory", "name"]
spread = "total_ns"
sum = ["calls", "total_ns", "size_bytes"]
mean = ["copy_time_pct", "wall_pct"]
min = ["min_bytes", "min_ns"]
max = ["max_bytes", "max_ns"]
ratio = { avg_bytes = ["size_bytes", "calls"], avg_ns = ["total_ns", "calls"] }
*/
WITH copies AS (
    SELECT
        copy_kind AS kind, source_memory, target_memory, start_ns, duration_ns, size_bytes, device_id, stream_id,
        process_id, correlation_id
    FROM memcpys
    UNION ALL
    SELECT
        'memset', NULL, target_memory, start_ns, duration_ns, size_bytes, device_id, stream_id, process_id,
        correlation_id
    FROM memsets
),
calls AS (
    SELECT process_id, correlation_id, min(thread_id) AS thread_id, min(start_ns) AS start_ns, min(name) AS name
    FROM api_calls
    WHERE $group_by IN ('call', 'nvtx') AND call_group IN ('copy', 'memset', 'graph launch')
    GROUP BY ALL
),
grouped_copies AS (
    SELECT c.*, coalesce(a.name, '(no call in the trace)') AS name, 0 AS turn
    FROM copies AS c LEFT JOIN calls AS a USING (process_id, correlation_id)
    WHERE $group_by = 'call'
    UNION ALL
    SELECT c.*, coalesce(n.path, '(outside NVTX ranges)'), 0
    FROM copies AS c
    LEFT JOIN calls AS a USING (process_id, correlation_id)
    ASOF LEFT JOIN nvtx_places AS p
        ON p.process_id = a.process_id AND p.thread_id = a.thread_id AND p.start_ns <= a.start_ns
    LEFT JOIN nvtx_nesting AS n ON n.range_id = p.range_id
    WHERE $group_by = 'nvtx'
    UNION ALL
    SELECT *, 'process ' || process_id || ' device ' || device_id || ' stream ' || stream_id, 0
    FROM copies
    WHERE $group_by = 'stream'
    UNION ALL
    SELECT c.*, coalesce(p.name, '(no backtrace)'), 0
    FROM copies AS c LEFT JOIN _sync_callers AS p USING (process_id, correlation_id)
    WHERE $group_by = 'caller'
    UNION ALL
    SELECT c.*, coalesce(_stack_text(p.frames, $stack), '(no backtrace)'), 0
    FROM copies AS c LEFT JOIN _sync_callers AS p USING (process_id, correlation_id)
    WHERE $group_by = 'stack'
    UNION ALL
    SELECT c.*, coalesce(s.name, '(size unknown)'), s.turn
    FROM copies AS c
    ASOF LEFT JOIN (
        VALUES (0, 0, 'up to 1 KiB'), (1, 1025, 'up to 64 KiB'), (2, 65537, 'up to 1 MiB'),
        (3, 1048577, 'up to 16 MiB'), (4, 16777217, 'over 16 MiB')
    ) AS s(turn, from_bytes, name)
        ON s.from_bytes <= c.size_bytes
    WHERE $group_by = 'size'
)
SELECT
    kind,
    source_memory,
    target_memory,
    name,
    count(*) AS calls,
    sum(duration_ns)::BIGINT AS total_ns,
    100.0 * sum(duration_ns)::BIGINT / nullif((SELECT sum(duration_ns) FROM grouped_copies)::BIGINT, 0)
        AS copy_time_pct,
    100.0 * sum(duration_ns)::BIGINT / (SELECT sum(duration_ns) FROM wall) AS wall_pct,
    sum(size_bytes)::BIGINT AS size_bytes,
    CASE
        WHEN kind <> 'staged P2P' OR max(size_bytes) <= 1048576
            THEN 1e9 * sum(size_bytes)::BIGINT / nullif(sum(duration_ns), 0)::BIGINT
    END AS bandwidth_bytes_per_s,
    avg(size_bytes) AS avg_bytes,
    min(size_bytes) AS min_bytes,
    max(size_bytes) AS max_bytes,
    avg(duration_ns) AS avg_ns,
    median(duration_ns) AS med_ns,
    min(duration_ns) AS min_ns,
    max(duration_ns) AS max_ns,
    stddev_samp(duration_ns) AS stddev_ns
FROM grouped_copies
GROUP BY kind, source_memory, target_memory, name, turn
ORDER BY turn, total_ns DESC, kind, source_memory, target_memory, name
