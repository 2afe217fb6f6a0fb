/*
title = "Few warps fit on an SM"
family = "occupancy"
overlaps = true
meaning = """
Registers, shared memory or the block size limit how many warps an SM holds, so it may have none to run while others
wait for memory."""
action = """
Depending on the limit: smaller tiles or __launch_bounds__ (registers), fewer stages (shared memory), 128 to 256 threads
(blocks)."""
caveat = """
ncu shows it near its roof: eight active warps per SM often hide all latency."""
report = "occupancy"
when = """
SELECT 1 FROM launch_shapes JOIN kernel_names USING (name_id)
WHERE family NOT IN ('gemm', 'attention', 'comm')
GROUP BY name, grid_x, grid_y, grid_z, block_x, block_y, block_z
HAVING min(occupancy_pct) < $below_pct AND max(waves_per_sm) >= 1 AND max(max_ns) >= $least_avg_ns
LIMIT 1"""

[params.least_avg_ns]
default = 10000
help = "Shorter kernels are latency-bound, whatever their occupancy (twice the launch cost of classify-kernels)"

[params.below_pct]
default = 40.0
help = "Theoretical occupancy below which it counts as low (40: the usual limit of rules for ncu)"
*/
WITH low_shapes AS (
    SELECT s.*, o.occupancy_pct, o.limited_by, o.next_step
    FROM _steady_shapes AS s
    JOIN (
        FROM occupancy_report QUALIFY row_number() OVER (PARTITION BY name, grid, block ORDER BY total_ns DESC) = 1
    ) AS o USING (name, grid, block)
    -- Matrix products and attention run best with few warps and many registers; communication waits.
    WHERE s.family NOT IN ('gemm', 'attention', 'comm')
        AND o.occupancy_pct < $below_pct AND s.avg_ns >= $least_avg_ns AND o.waves_per_sm >= 1
),
kernel_gpu_time AS (
    SELECT time_ns * (1 - coalesce((SELECT value FROM info_report WHERE metric = 'whole_graph_pct'), 0) / 100) AS gpu_ns
    FROM classify_report WHERE part = 'gpu'
),
largest_shape AS (
    FROM low_shapes ORDER BY total_ns DESC, name, grid, block LIMIT 1
)
SELECT
    NULL AS recoverable_ns,
    k.gpu_ns * l.kernel_time_pct / w.time_ns AS wall_pct,
    (SELECT kernel_base_name(name) FROM largest_shape) AS place,
    (
        SELECT
            'occupancy ' || share_text(occupancy_pct) || ', limited by ' || limited_by || ', '
                || counted_text(calls, 'call') || ' of ' || time_text(avg_ns) || ', ' || share_text(kernel_time_pct)
                || ' of kernel time'
        || coalesce('; for ' || next_step, '') FROM largest_shape)
        || CASE WHEN l.shapes > 1 THEN '; ' || counted_text(l.shapes - 1, 'more kernel') ELSE '' END AS evidence
FROM kernel_gpu_time AS k, (FROM classify_report WHERE part = 'wall') AS w,
    (SELECT sum(kernel_time_pct) AS kernel_time_pct, count(*) AS shapes FROM low_shapes HAVING count(*) > 0) AS l
