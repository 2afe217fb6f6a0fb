/*
title = "Allocating and freeing memory"
topic = "waits"
place = 3
question = "What is allocated and freed in the loop, and what does it stall?"
aliases = ["allocations"]
description = """
Adds up the calls that allocate and free memory, of the runtime and the driver, by function. A call is start-up if it began
before its process ran its first kernel or graph, else steady: calls that a loop repeats. Inside --nvtx ranges and after
--from that start is out of sight; there calls_per_range counts. Sizes are those of nsys's memory usage events. Whether a
call makes the host and the GPU wait for each other is told from its name, as CUDA documents it; its cost is more than
total_ns where it is 'yes', for the GPU runs dry. Calls served from a framework's own pool are not CUDA calls."""
reading = """
Steady calls should be 0. Hundreds per step are a framework's allocator at work: PyTorch's caching allocator keeps what is
freed, unless memory is short, empty_cache is called or shapes grow from step to step. Allocate before the loop, reuse
buffers, or use a pool (cudaMallocAsync, cudaFreeAsync), whose calls do not synchronise. Pinned host memory is slow to
allocate: do it once. A first call of milliseconds creates the context; it is not the allocation."""
empty = "No calls that allocate or free memory in this scope: what the program needs it had before, or took from its own pool"

[columns]
name = "The function, without its version suffix"
memory = "What it allocates or frees, told from its name: device (cudaFree also frees managed memory), stream-ordered, pinned host, managed, array, virtual"
calls = "Calls in scope"
startup_count = "Those before their process ran its first kernel or graph; NULL under --nvtx and --from"
steady_count = "Those after it; NULL under --nvtx and --from"
calls_per_range = "Calls per range of --nvtx, NULL without it"
total_ns = "Sum of the calls' durations"
avg_ns = "Mean duration"
max_ns = "Longest"
wall_pct = "total_ns as a share of the wall"
size_bytes = "Bytes allocated or freed; NULL if not captured"
max_size_bytes = "The largest allocation or deallocation of one call; NULL if not captured"
failed_count = "Calls that returned an error"
synchronizes = "Whether it makes host and GPU wait for each other: yes, may, no; NULL where CUDA does not say"
call_group = "alloc or free"

[notes]
sizes = """
SELECT 'sizes are unknown; capture with --cuda-memory-usage=true' FROM answer HAVING count(*) > 0 AND count(size_bytes) = 0"""
peak = """
SELECT 'peak of the device memory that nsys saw allocated: ' || string_agg(format_bytes(peak_bytes) || ' on device ' || device_id
    || CASE WHEN process_count > 1 THEN ' of process ' || process_id ELSE '' END, ', ' ORDER BY process_id, device_id)
FROM (
    SELECT process_id, device_id, max(live_bytes) AS peak_bytes, (SELECT count(DISTINCT process_id) FROM memory_events) AS process_count
    FROM (
        SELECT process_id, device_id, (sum(sum(CASE operation WHEN 'allocation' THEN size_bytes WHEN 'deallocation' THEN -size_bytes END))
            OVER (PARTITION BY process_id, device_id ORDER BY start_ns))::BIGINT AS live_bytes
        FROM memory_events WHERE memory = 'device' GROUP BY process_id, device_id, start_ns
    )
    GROUP BY process_id, device_id
)
WHERE EXISTS (FROM scope WHERE nvtx IS NULL AND from_ns IS NULL AND stream_id IS NULL) HAVING count(*) > 0"""
device = """
SELECT 'API calls belong to no device or stream: all calls of the scope are counted' FROM scope
WHERE coalesce(device_id, stream_id) IS NOT NULL AND EXISTS (FROM answer)"""
[agent]
rows = 4
columns = ["name", "memory", "calls", "steady_count", "total_ns", "wall_pct"]
*/
-- A call that another of these calls makes is left out; only these few are sorted for it.
WITH calls AS (
    SELECT name, call_group, process_id, correlation_id, start_ns, duration_ns, return_value
    FROM api_calls
    WHERE call_group IN ('alloc', 'free')
    QUALIFY coalesce(end_ns > max(end_ns) OVER (
        PARTITION BY process_id, thread_id ORDER BY start_ns, end_ns DESC, api DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), true)
),
sizes AS (
    SELECT process_id, correlation_id, sum(size_bytes)::BIGINT AS size_bytes
    FROM memory_events
    GROUP BY ALL
),
first_work AS (
    SELECT process_id, min(start_ns) AS start_ns
    FROM (SELECT process_id, start_ns FROM kernel_events UNION ALL SELECT process_id, start_ns FROM graph_launches)
    GROUP BY ALL
),
measured AS (
    SELECT
        c.name,
        c.call_group,
        count(*) AS calls,
        count(*) FILTER (WHERE c.start_ns >= w.start_ns) AS steady_count,
        sum(c.duration_ns)::BIGINT AS total_ns,
        max(c.duration_ns) AS max_ns,
        sum(z.size_bytes)::BIGINT AS size_bytes,
        max(z.size_bytes) AS max_size_bytes,
        CASE WHEN count(c.return_value) > 0 THEN count(*) FILTER (WHERE c.return_value <> 0) END AS failed_count
    FROM calls AS c
    LEFT JOIN sizes AS z USING (process_id, correlation_id)
    LEFT JOIN first_work AS w USING (process_id)
    GROUP BY ALL
),
named AS (
    SELECT
        *,
        CASE
            WHEN name LIKE '%Async' THEN 'stream-ordered'
            WHEN name LIKE '%Host%' THEN 'pinned host'
            WHEN name LIKE '%Managed' THEN 'managed'
            WHEN name LIKE '%Array%' THEN 'array'
            WHEN name IN ('cuMemCreate', 'cuMemRelease') THEN 'virtual'
            ELSE 'device'
        END AS memory
    FROM measured
)
SELECT
    m.name,
    m.memory,
    m.calls,
    CASE WHEN scope.nvtx IS NULL AND scope.from_ns IS NULL THEN m.calls - m.steady_count END AS startup_count,
    CASE WHEN scope.nvtx IS NULL AND scope.from_ns IS NULL THEN m.steady_count END AS steady_count,
    CASE WHEN scope.nvtx IS NOT NULL THEN m.calls / scope.range_count END AS calls_per_range,
    m.total_ns,
    m.total_ns / m.calls AS avg_ns,
    m.max_ns,
    100.0 * m.total_ns / (SELECT sum(duration_ns) FROM wall) AS wall_pct,
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
FROM named AS m, scope
ORDER BY m.total_ns DESC, m.name
