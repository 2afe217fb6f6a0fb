/*
description = """The samples of GPU metrics that belong to one kernel: executions of one launch shape fill their
    interval."""
columns_of = "gpu_samples"
[columns]
shape_id = "The kernel and its launch, as in `launch_shapes`"
*/
-- A sample belongs to a kernel if executions of one launch shape on one stream fill at least nine tenths of its
-- interval, and all other GPU work, in scope or not, fills at most one tenth. A sample in which no SM has a warp says
-- nothing about a kernel that runs: some GPUs are sampled for a few milliseconds of each tenth of a second.
WITH windows AS (
    SELECT *, row_number() OVER (PARTITION BY gpu_id ORDER BY start_ns) AS number FROM gpu_samples
),
sampled_spans AS (
    SELECT gpu_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM windows GROUP BY gpu_id
),
-- All operations once (without shape), and the kernels in scope a second time with their shape and stream.
operations AS (
    SELECT gpu_id, NULL::UBIGINT AS shape_id, NULL::BIGINT AS stream_id, process_id, start_ns, end_ns FROM _gpu_work
    UNION ALL
    SELECT gpu_of(process_id, device_id), shape_id, stream_id, process_id, start_ns, end_ns FROM kernel_events
),
sampled_operations AS (
    SELECT o.*
    FROM operations AS o
    JOIN sampled_spans AS s USING (gpu_id)
    WHERE o.start_ns < s.end_ns AND o.end_ns > s.start_ns
),
-- The numbers of the first and last window of each operation.
window_ranges AS (
    SELECT o.*, coalesce(f.number, 1) AS first, l.number AS last
    FROM sampled_operations AS o
    ASOF LEFT JOIN windows AS f ON f.gpu_id = o.gpu_id AND f.start_ns <= o.start_ns
    ASOF JOIN windows AS l ON l.gpu_id = o.gpu_id AND l.start_ns < o.end_ns
),
-- One row per operation and window.
operation_windows AS (
    SELECT gpu_id, shape_id, stream_id, process_id, start_ns, end_ns, unnest(range(first, last + 1)) AS number
    FROM window_ranges
),
-- The time in each window that operations of one shape, stream and process fill.
filled_times AS (
    SELECT
        w.gpu_id, w.number, p.shape_id, p.stream_id, p.process_id,
        any_value(w.end_ns - w.start_ns) AS duration_ns,
        sum(greatest(least(p.end_ns, w.end_ns) - greatest(p.start_ns, w.start_ns), 0))::BIGINT AS inside_ns
    FROM operation_windows AS p
    JOIN windows AS w ON w.gpu_id = p.gpu_id AND w.number = p.number
    GROUP BY w.gpu_id, w.number, p.shape_id, p.stream_id, p.process_id
),
shape_times AS (
    SELECT
        gpu_id, number, shape_id,
        any_value(duration_ns) AS duration_ns,
        max(inside_ns) AS stream_ns,
        sum(inside_ns) AS shape_ns,
        sum(sum(inside_ns)) FILTER (shape_id IS NULL) OVER (PARTITION BY gpu_id, number) AS all_ns
    FROM filled_times
    GROUP BY gpu_id, number, shape_id
)
SELECT
    s.shape_id,
    s.gpu_id,
    w.start_ns,
    w.sms_active_pct,
    w.issue_pct,
    w.tensor_pct,
    w.dram_pct
FROM shape_times AS s
JOIN windows AS w ON w.gpu_id = s.gpu_id AND w.number = s.number
WHERE s.shape_id IS NOT NULL AND s.stream_ns >= 0.9 * s.duration_ns AND s.all_ns - s.shape_ns <= 0.1 * s.duration_ns
    AND w.sms_active_pct IS DISTINCT FROM 0;
