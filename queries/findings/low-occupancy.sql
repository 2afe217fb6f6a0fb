/*
title = "Few warps fit on an SM"
family = "occupancy"
overlaps = true
meaning = """
Registers, shared memory or the block size let an SM hold few warps, so it may have none to run while others wait for
memory."""
action = """
By the limit: smaller tiles or __launch_bounds__ (registers), fewer stages (shared memory), 128 to 256 threads (blocks)."""
caveat = """
ncu shows it near its roof: eight active warps on an SM often hide all latency."""
report = "occupancy"

[params.least_avg_ns]
default = 10000
help = "Shorter kernels are bound by latency, whatever their occupancy (twice the launch cost of classify-kernels)"

[params.below_pct]
default = 40.0
help = "Theoretical occupancy that counts as low (40: the usual limit of rules for ncu)"
*/
WITH low AS (
    SELECT o.* EXCLUDE (calls, total_ns, avg_ns, kernel_time_pct), s.calls, s.total_ns, s.total_ns / s.calls AS avg_ns, s.kernel_time_pct
    FROM _steady_shapes AS s
    JOIN kernel_names AS n USING (name_id)
    JOIN (
        SELECT
            *,
            row_number() OVER (PARTITION BY name, grid, block, registers_per_thread, shared_bytes ORDER BY total_ns DESC, gpu) AS turn
        FROM occupancy_report
    ) AS o
        ON o.turn = 1 AND o.name = n.name
    JOIN (
        SELECT DISTINCT shape_id, grid_x || 'x' || grid_y || 'x' || grid_z AS grid, block_x || 'x' || block_y || 'x' || block_z AS block,
            registers_per_thread, static_shared_bytes + dynamic_shared_bytes AS shared_bytes
        FROM launch_shapes
    ) AS l ON l.shape_id = s.shape_id AND l.grid = o.grid AND l.block = o.block
        AND l.registers_per_thread = o.registers_per_thread AND l.shared_bytes = o.shared_bytes
    -- Matrix products and attention run best with few warps and many registers; communication waits.
    WHERE n.family NOT IN ('gemm', 'attention', 'comm')
        AND o.occupancy_pct < $below_pct AND s.total_ns / s.calls >= $least_avg_ns AND o.waves_per_sm >= 1
),
known AS (
    SELECT time_ns * (1 - coalesce((SELECT value FROM info_report WHERE metric = 'whole_graph_pct'), 0) / 100) AS gpu_ns
    FROM classify_report WHERE part = 'gpu'
),
largest AS (
    FROM low ORDER BY total_ns DESC, name, grid, block LIMIT 1
)
SELECT
    NULL AS recoverable_ns,
    k.gpu_ns * l.kernel_time_pct / w.time_ns AS wall_pct,
    (SELECT kernel_base_name(name) FROM largest) AS place,
    (SELECT 'occupancy ' || share_text(occupancy_pct) || ', limited by ' || limited_by || ', ' || calls || CASE calls WHEN 1 THEN ' call of ' ELSE ' calls of ' END
        || time_text(avg_ns) || ', ' || share_text(kernel_time_pct) || ' of kernel time'
        || coalesce('; for ' || next_step, '') FROM largest)
        || CASE WHEN l.shapes > 1 THEN '; ' || (l.shapes - 1) || ' more kernels' ELSE '' END AS evidence
FROM known AS k, (FROM classify_report WHERE part = 'wall') AS w,
    (SELECT sum(kernel_time_pct) AS kernel_time_pct, count(*) AS shapes FROM low HAVING count(*) > 0) AS l
