/*
title = "Kernels are too small for the GPU"
family = "grid"
meaning = """
They have fewer blocks than the GPU has SMs, so part of the GPU does nothing while they run."""
action = """
Use more blocks: split the work along another dimension, give each thread less, batch; or run them concurrently with
other kernels."""
caveat = """
Other kernels run concurrently, or the work cannot be split."""
report = "launch-configs"

[params.least_avg_ns]
default = 10000
help = "Shorter kernels are latency-bound, whatever their grid (twice the launch cost of classify-kernels)"
*/
-- Only blocks_count / sm_count of the SMs have a block: that share of the time would suffice. Kernels that communicate
-- take as many blocks as they need.
WITH shape_blocks AS (
    SELECT
        coalesce(n.name, '(no name)') AS name, grid_x || 'x' || grid_y || 'x' || grid_z AS grid,
        block_x || 'x' || block_y || 'x' || block_z AS block,
        max_by(blocks_count, total_ns) AS blocks_count, max_by(sm_count, total_ns) AS sm_count
    FROM launch_shapes LEFT JOIN kernel_names AS n USING (name_id)
    GROUP BY ALL
),
small_shapes AS (
    SELECT s.*, l.sm_count, s.kernel_time_pct * (1 - l.blocks_count / l.sm_count) AS saved_pct
    FROM _steady_shapes AS s
    JOIN shape_blocks AS l USING (name, grid, block)
    WHERE l.blocks_count < l.sm_count AND s.avg_ns >= $least_avg_ns AND s.family IS DISTINCT FROM 'comm'
),
-- The GPU time that is known by kernel: without graphs that ran as one operation.
kernel_gpu_time AS (
    SELECT time_ns * (1 - coalesce((SELECT value FROM info_report WHERE metric = 'whole_graph_pct'), 0) / 100) AS gpu_ns
    FROM classify_report WHERE part = 'gpu'
),
largest_saving AS (
    FROM small_shapes ORDER BY saved_pct DESC, name, grid, block LIMIT 1
)
SELECT
    k.gpu_ns * s.saved_pct / 100 AS recoverable_ns,
    k.gpu_ns * s.saved_pct / w.time_ns AS wall_pct,
    (SELECT kernel_base_name(name) FROM largest_saving) AS place,
    (SELECT 'grid ' || grid || ' on ' || sm_count || ' SMs, '
        || counted_text(calls, 'call') || ' of ' || time_text(avg_ns) || ', ' || share_text(kernel_time_pct)
        || ' of kernel time'
    FROM largest_saving)
        || CASE WHEN s.shapes > 1 THEN '; ' || (s.shapes - 1) || ' more' ELSE '' END AS evidence
FROM kernel_gpu_time AS k, (FROM classify_report WHERE part = 'wall') AS w,
    (SELECT sum(saved_pct) AS saved_pct, count(*) AS shapes FROM small_shapes HAVING count(*) > 0) AS s
