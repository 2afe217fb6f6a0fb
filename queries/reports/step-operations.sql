/*
title = "Operations of one step"
topic = "steps"
place = 6
question = "What does one step run on the GPU: kernels, copies, memsets and graphs in one list?"
examples = ["", "--limit 0"]
page = false
main = ["gpu_pct", "time_ns", "calls", "avg_ns", "name", "idle_before_ns", "grid", "block"]
details = ["family", "construct", "provenance", "local_bytes", "source_memory", "target_memory", "devices", "streams"]
description = """
Counts the kernels, copies, memsets and graphs of the steady steps (see steps; of the whole scope where no steps were
found) per step: per token where --tokens says how many there are. An operation belongs to the step in which its
launch call begins; one without a call to the step in whose step time it starts. Kernels of one name with the same
grid and block are one row. Copies and memsets are one row for each direction, memories and power of two in size.
idle_before_ns is the time per step in which the GPU was idle until an operation of the row started."""
reading = """
Many calls with a short avg_ns: one operation on all the data replaces them, or a CUDA graph launches them together.
idle_before_ns longer than time_ns: the GPU waits more than it works there. loop-iteration has the same operations in
their order, top the kernels of the whole trace."""
empty = "No kernel, copy, memset or graph is in this scope"

[shares]
gpu_pct = "the time of all operations of a step"

[columns]
kind = "kernel, copy, memset or graph"
name = "The kernel, or H2D copy, memset, graph 4"
calls = "Executions per step"
avg_ns = "Mean duration"
time_ns = "Sum of the durations per step"
gpu_pct = "time_ns as a share of that of all rows"
idle_before_ns = """\
Time per step in which a GPU was idle until an operation of this row started, summed over GPUs; idle time between \
steps that are interrupted is left out"""
grid = "Blocks in the grid, x × y × z; NULL for the other kinds"
block = "Threads in a block, x × y × z"
registers_per_thread = "Registers per thread, the most of these launches"
shared_bytes = "Static and dynamic shared memory per block, the most of these launches"
local_bytes = "Local memory (spills, stack) per thread, the most of these launches"
occupancy_pct = """\
Theoretical occupancy: the warps that fit on an SM as a share of those that it can hold, the least of these launches"""
size_bytes = "Mean bytes copied or set; NULL for the other kinds"
bandwidth_bytes_per_s = "Bytes over durations; NULL for the other kinds"
source_memory = "Memory that was read: pageable, pinned, device, array, managed"
target_memory = "Memory that was written"
devices = "CUDA devices that it ran on"
streams = "CUDA streams that it ran on"
family = "Family of the kernel"
construct = "What the kernel does, by the catalog of constructs; NULL if no entry has its name"
provenance = "Where the kernel comes from"

[notes]
whole.use = "whole_scope"

processes.query = "FROM _other_processes WHERE EXISTS (FROM answer) AND EXISTS (FROM steps WHERE phase = 'steady')"
processes.use = "processes"
*/
WITH step_count AS (
    SELECT count(*) * any_value(tokens) AS units FROM _steady_windows
),
operations AS (
    SELECT
        'kernel' AS kind, name_id, NULL::VARCHAR AS label, dims_of(grid_x, grid_y, grid_z) AS grid,
        dims_of(block_x, block_y, block_z) AS block, registers_per_thread,
        static_shared_bytes + dynamic_shared_bytes AS shared_bytes, local_per_thread_bytes AS local_bytes,
        NULL::BIGINT AS size_bytes, NULL::VARCHAR AS source_memory, NULL::VARCHAR AS target_memory, device_id,
        stream_id, start_ns AS gpu_start_ns, duration_ns, process_id, correlation_id
    FROM kernel_events
    UNION ALL BY NAME
    SELECT
        'copy' AS kind, copy_kind || ' copy' AS label, size_bytes, source_memory, target_memory, device_id, stream_id,
        start_ns AS gpu_start_ns, duration_ns, process_id, correlation_id
    FROM memcpys
    UNION ALL BY NAME
    SELECT
        'memset' AS kind, 'memset' AS label, size_bytes, target_memory, device_id, stream_id,
        start_ns AS gpu_start_ns, duration_ns, process_id, correlation_id
    FROM memsets
    UNION ALL BY NAME
    SELECT
        'graph' AS kind, 'graph ' || graph_id AS label, device_id, stream_id, start_ns AS gpu_start_ns, duration_ns,
        process_id, correlation_id
    FROM graph_launches
),
-- When each operation belongs to a step: at its call on the host, else when it starts on the GPU.
timed_operations AS (
    SELECT o.*, c.start_ns AS call_ns
    FROM operations AS o
    LEFT JOIN (
        SELECT process_id, correlation_id, start_ns
        FROM api_calls
        WHERE call_group IN ('launch', 'graph launch', 'copy', 'memset')
    ) AS c USING (process_id, correlation_id)
    WHERE o.process_id = coalesce((SELECT any_value(process_id) FROM _steady_windows), o.process_id)
),
called_operations AS NOT MATERIALIZED (
    SELECT *, call_ns AS start_ns FROM timed_operations WHERE call_ns IS NOT NULL
),
host_windows AS (
    SELECT host_start_ns AS start_ns, host_end_ns AS end_ns FROM _steady_windows
),
operations_of_steps AS (
    SELECT * EXCLUDE (start_ns, call_ns, window_ns, window_end_ns) FROM begun_in('called_operations', 'host_windows')
    UNION ALL
    SELECT o.* EXCLUDE (call_ns)
    FROM (FROM timed_operations WHERE call_ns IS NULL) AS o
    ASOF JOIN _steady_windows AS w ON w.start_ns <= o.gpu_start_ns
    WHERE o.gpu_start_ns < w.end_ns
),
gap_times AS (
    SELECT gpu_id, start_ns, end_ns, next_ns FROM gpu_gaps
),
gpu_windows AS (
    SELECT start_ns, end_ns FROM _steady_windows
),
-- The parts of gaps that are in steady steps: what lies between steps that are interrupted belongs to none.
gaps AS (
    SELECT gpu_id, next_ns, sum(end_ns - start_ns)::BIGINT AS duration_ns
    FROM cut_to('gap_times', 'gpu_windows')
    GROUP BY ALL
),
-- Of several operations that start together, one ends the gap.
numbered_operations AS (
    SELECT
        o.*, CASE
            WHEN row_number() OVER (PARTITION BY g.gpu_id, g.next_ns ORDER BY o.stream_id, o.correlation_id) = 1
                THEN g.duration_ns
        END AS idle_ns,
        CASE WHEN o.size_bytes > 0 THEN floor(log2(o.size_bytes)) END AS size_class
    FROM operations_of_steps AS o
    LEFT JOIN gaps AS g ON g.next_ns = o.gpu_start_ns AND g.gpu_id = gpu_of(o.process_id, o.device_id)
),
occupancies AS (
    SELECT
        name_id, dims_of(grid_x, grid_y, grid_z) AS grid, dims_of(block_x, block_y, block_z) AS block,
        min(occupancy_pct) AS occupancy_pct
    FROM launch_shapes
    GROUP BY ALL
),
totals AS MATERIALIZED (
    SELECT
        kind, name_id, label, grid, block, source_memory, target_memory, size_class,
        count(*) AS calls, sum(duration_ns)::BIGINT AS time_ns, coalesce(sum(idle_ns), 0)::BIGINT AS idle_ns,
        max(registers_per_thread) AS registers_per_thread, max(shared_bytes) AS shared_bytes,
        max(local_bytes) AS local_bytes, sum(size_bytes)::DOUBLE AS all_bytes,
        list(DISTINCT device_id) AS devices, list(DISTINCT stream_id) AS streams
    FROM numbered_operations
    GROUP BY ALL
)
SELECT
    t.kind,
    coalesce(n.name, t.label, '(no name)') AS name,
    t.calls / c.units AS calls,
    t.time_ns / t.calls AS avg_ns,
    t.time_ns / c.units AS time_ns,
    100.0 * t.time_ns / nullif((SELECT sum(time_ns) FROM totals), 0)::BIGINT AS gpu_pct,
    t.idle_ns / c.units AS idle_before_ns,
    x_of(t.grid) || 'x' || y_of(t.grid) || 'x' || z_of(t.grid) AS grid,
    x_of(t.block) || 'x' || y_of(t.block) || 'x' || z_of(t.block) AS block,
    t.registers_per_thread,
    t.shared_bytes,
    t.local_bytes,
    l.occupancy_pct,
    t.all_bytes / t.calls AS size_bytes,
    1e9 * t.all_bytes / nullif(t.time_ns, 0) AS bandwidth_bytes_per_s,
    t.source_memory,
    t.target_memory,
    array_to_string(list_sort(t.devices), ', ') AS devices,
    array_to_string(list_sort(t.streams), ', ') AS streams,
    n.family,
    k.construct,
    n.provenance
FROM totals AS t
CROSS JOIN step_count AS c
LEFT JOIN kernel_names AS n USING (name_id)
LEFT JOIN kernel_constructs AS k USING (name_id)
LEFT JOIN occupancies AS l USING (name_id, grid, block)
ORDER BY time_ns DESC, calls DESC, name, grid, block, source_memory, target_memory, size_bytes
