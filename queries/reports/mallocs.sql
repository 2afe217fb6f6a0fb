/*
title = "Allocating and freeing memory"
topic = "memory"
place = 3
in_help = true
question = "What is allocated and freed in the loop, and what does it stall?"
examples = ["", "--steady"]
aliases = ["allocations"]
main = ["total_ns", "calls", "steady_count", "gpu_idle_ns", "name", "avg_ns", "size_bytes", "memory"]
description = """
Adds up the runtime and driver calls that allocate and free memory, by function; calls inside other calls are not
counted. steady_count is the number of calls that began in a steady step (see steps), startup_count that of calls
that began before the first one. Sizes are those of nsys's memory usage events. gpu_idle_ns is the GPU idle time in
which the thread that launched the next operation was in such a call, as idle, classify and host count it;
steady_idle_ns is the part of it in the wall time of a steady step. Whether a call makes the host and the GPU wait
for each other follows from its name, as CUDA documents it. Allocations served from a framework's own pool are not
CUDA calls."""
reading = """
steady_count should be 0. Hundreds per step are a framework's allocator at work: PyTorch's caching allocator keeps
what is freed, unless memory is short, empty_cache is called or shapes grow from step to step. Allocate before the
loop, reuse buffers, or use a pool (cudaMallocAsync, cudaFreeAsync), whose calls do not synchronize. Pinned host
memory is slow to allocate: do it once. A first call of milliseconds creates the context; it is not the allocation."""
empty = """\
No calls that allocate or free memory are recorded in this scope. The program may allocate before the capture or use \
its own pool."""

[params.group_by]
default = "call"
choices = ["call", "caller", "stack"]
help = "What one row stands for: the function"

[columns]
name = "The function, without its version suffix, or what --group-by selects"
memory = """\
What it allocates or frees, by its name: device (cudaFree also frees managed memory), stream-ordered, pinned host, \
managed, array, virtual"""
calls = "Calls in scope"
startup_count = """\
Calls before the first steady step; calls in neither count came between or after steady steps; NULL where no steps \
were found"""
steady_count = "Calls in steady steps; NULL where no steps were found"
calls_per_range = "Calls per range of --nvtx, NULL without it"
total_ns = "Sum of the calls' durations"
avg_ns = "Mean duration"
max_ns = "Longest"
wall_pct = "total_ns as a share of the wall time"
gpu_idle_ns = "GPU idle time that the calls cause"
steady_idle_ns = "The part of gpu_idle_ns in steady steps; NULL where no steps were found"
size_bytes = "Bytes allocated or freed; NULL if not captured"
max_size_bytes = "The largest allocation or deallocation of one call; NULL if not captured"
failed_count = "Calls that returned an error"
synchronizes = "Whether the call makes host and GPU wait for each other: yes, may, no; NULL where CUDA does not say"
call_group = "alloc or free"

[notes]
sizes.text = "sizes are unknown; capture with --cuda-memory-usage=true"
sizes.query = "SELECT count(*) AS rows FROM answer HAVING count(*) > 0 AND count(size_bytes) = 0"

peak.text = "peak device memory that nsys saw allocated: {devices}"
peak.items.devices = "{peak_bytes} on device {device_id}< of process {process_id}>"
peak.query = """
SELECT
    list({
        'peak_bytes': peak_bytes, 'device_id': device_id, 'process_id': CASE WHEN process_count > 1 THEN process_id END
    } ORDER BY process_id, device_id) AS devices
FROM (
    SELECT
        process_id, device_id, max(held_bytes) AS peak_bytes,
        (SELECT count(DISTINCT process_id) FROM memory_blocks WHERE memory = 'device') AS process_count
    FROM _held_memory WHERE memory = 'device'
    GROUP BY process_id, device_id
)
WHERE EXISTS (FROM scope WHERE nvtx IS NULL AND from_ns IS NULL AND stream_id IS NULL) HAVING count(*) > 0"""

unfreed.text = "not freed in this capture: {memories}"
unfreed.items.memories = [
    "{size_bytes} of {memory} memory in {blocks:block}",
    "the largest of {largest_bytes}<; {steady_blocks} of them allocated in steady steps>",
]
unfreed.query = """
SELECT list(m ORDER BY size_bytes DESC, memory) AS memories
FROM (
    SELECT
        memory, count(*) AS blocks, sum(size_bytes)::BIGINT AS size_bytes, max(size_bytes) AS largest_bytes,
        nullif(count(CASE WHEN b.start_ns < s.host_end_ns THEN 1 END), 0) AS steady_blocks
    FROM (
        FROM memory_blocks WHERE end_ns IS NULL AND start_ns > 0
    ) AS b
    ASOF LEFT JOIN _steady_windows AS s ON s.process_id = b.process_id AND s.host_start_ns <= b.start_ns
    GROUP BY memory
) AS m
WHERE EXISTS (FROM scope WHERE nvtx IS NULL AND from_ns IS NULL AND stream_id IS NULL) HAVING count(*) > 0"""

device.use = "all_devices"

steps.use = "no_steady_steps"
steps.text = """
no steady steps were found, so startup_count, steady_count and steady_idle_ns are unknown; name an NVTX range with
--step-range"""

[ranks]
by = ["name", "memory", "synchronizes", "call_group"]
spread = "total_ns"
sum = ["calls", "total_ns", "gpu_idle_ns", "size_bytes", "failed_count"]
mean = ["wall_pct"]
max = ["max_ns", "max_size_bytes"]
ratio = { avg_ns = ["total_ns", "calls"] }
*/
WITH places_by_call AS (
    SELECT NULL::BIGINT AS process_id, NULL::BIGINT AS correlation_id, NULL::VARCHAR AS place WHERE false
    UNION ALL
    SELECT process_id, correlation_id, name FROM _sync_callers WHERE $group_by = 'caller'
    UNION ALL
    SELECT process_id, correlation_id, _stack_text(frames, $stack) FROM _sync_callers WHERE $group_by = 'stack'
),
calls AS (
    SELECT
        a.name AS function,
        CASE WHEN $group_by = 'call' THEN a.name ELSE coalesce(p.place, '(no backtrace)') END AS name,
        a.call_group, a.process_id, a.thread_id, a.correlation_id, a.start_ns, a.duration_ns, a.return_value,
        a.start_ns < s.host_end_ns AS is_steady
    FROM (FROM outer_api_calls WHERE call_group IN ('alloc', 'free')) AS a
    ASOF LEFT JOIN _steady_windows AS s ON s.process_id = a.process_id AND s.host_start_ns <= a.start_ns
    LEFT JOIN places_by_call AS p ON p.process_id = a.process_id AND p.correlation_id = a.correlation_id
),
call_totals AS (
    SELECT
        c.name,
        _memory_kind(c.function) AS memory,
        c.call_group,
        count(*) AS calls,
        count(*) FILTER (WHERE c.start_ns < (SELECT min(host_start_ns) FROM _steady_windows)) AS startup_count,
        count(*) FILTER (WHERE c.is_steady) AS steady_count,
        coalesce(sum(i.idle_ns), 0)::BIGINT AS idle_ns,
        coalesce(sum(i.steady_ns), 0)::BIGINT AS steady_ns,
        sum(c.duration_ns)::BIGINT AS total_ns,
        max(c.duration_ns) AS max_ns,
        sum(z.size_bytes)::BIGINT AS size_bytes,
        max(z.size_bytes) AS max_size_bytes,
        CASE WHEN count(c.return_value) > 0 THEN count(*) FILTER (WHERE c.return_value <> 0) END AS failed_count
    FROM calls AS c
    LEFT JOIN _call_sizes AS z USING (process_id, correlation_id)
    LEFT JOIN _allocation_idle AS i USING (process_id, thread_id, start_ns)
    GROUP BY ALL
)
SELECT
    m.name,
    m.memory,
    m.calls,
    CASE WHEN EXISTS (FROM steps WHERE phase = 'steady') THEN m.startup_count END AS startup_count,
    CASE WHEN EXISTS (FROM steps WHERE phase = 'steady') THEN m.steady_count END AS steady_count,
    CASE WHEN scope.nvtx IS NOT NULL THEN m.calls / scope.range_count END AS calls_per_range,
    m.total_ns,
    m.total_ns / m.calls AS avg_ns,
    m.max_ns,
    100.0 * m.total_ns / (SELECT sum(duration_ns) FROM wall) AS wall_pct,
    m.idle_ns AS gpu_idle_ns,
    CASE WHEN EXISTS (FROM steps WHERE phase = 'steady') THEN m.steady_ns END AS steady_idle_ns,
    m.size_bytes,
    m.max_size_bytes,
    m.failed_count,
    CASE
        WHEN m.memory = 'stream-ordered' THEN 'no'
        WHEN m.memory = 'pinned host' THEN 'yes'
        WHEN m.memory = 'virtual' THEN NULL
        WHEN m.memory = 'device' AND m.call_group = 'free' THEN 'yes'
        ELSE 'may'
    END AS synchronizes,
    m.call_group
FROM call_totals AS m, scope
ORDER BY m.total_ns DESC, m.name, m.memory, m.call_group
