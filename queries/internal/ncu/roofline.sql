-- Profiled launches on the roofline, from ncu's counts only. One row per kernel and launch configuration of a report.
WITH kernels AS (
    SELECT
        any_value(l.kernel) AS name,
        l.report,
        concat_ws('x', l.grid_x, l.grid_y, l.grid_z) AS grid,
        count(*) AS launches,
        list(launch ORDER BY launch) AS members,
        sum(r.duration_ns) AS total_ns,
        min(launch) AS first_launch,
        median(r.duration_ns) AS duration_ns,
        mode(r.precision) AS precision,
        median(r.flop_count) AS flop_count,
        median(r.other_flop_count) AS other_flop_count,
        median(r.dram_bytes) AS bytes,
        median(r.l2_bytes) AS l2_bytes,
        median(r.l1_bytes) AS l1_bytes,
        median(r.peak_flop_per_s) AS peak_flop_per_s,
        median(r.peak_bytes_per_s) AS peak_bytes_per_s,
        median(r.l2_read_bytes_per_s) AS l2_bytes_per_s,
        median(r.l2_peak_bytes_per_s) AS l2_peak_bytes_per_s,
        median(r.l1_read_bytes_per_s) AS l1_bytes_per_s,
        median(r.l1_peak_bytes_per_s) AS l1_peak_bytes_per_s,
        median(r.l1_passes_pct) AS l1_passes_pct
    FROM ncu_launches AS l
    JOIN ncu_roofline AS r USING (launch)
    GROUP BY l.report, l.kernel, l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y, l.block_z, l.device_id
)
SELECT
    * EXCLUDE (total_ns, first_launch),
    flop_count / nullif(bytes, 0) AS intensity_ratio,
    flop_count / nullif(l2_bytes, 0) AS l2_intensity_ratio,
    flop_count / nullif(l1_bytes, 0) AS l1_intensity_ratio,
    flop_count / nullif(duration_ns, 0) / 1e3 AS tflop_per_s,
    100 * tflop_per_s * 1e12 / peak_flop_per_s AS compute_pct,
    bytes / nullif(duration_ns, 0) * 1e9 AS bytes_per_s,
    100 * bytes_per_s / peak_bytes_per_s AS bandwidth_pct,
    100 * l2_bytes_per_s / l2_peak_bytes_per_s AS l2_bandwidth_pct,
    100 * l1_bytes_per_s / l1_peak_bytes_per_s AS l1_bandwidth_pct,
    CASE
        WHEN flop_count = 0 AND bytes > 0 THEN 'memory'
        WHEN intensity_ratio * peak_bytes_per_s < peak_flop_per_s THEN 'memory'
        WHEN intensity_ratio * peak_bytes_per_s * peak_flop_per_s IS NOT NULL THEN 'compute'
    END AS roof,
    CASE roof WHEN 'memory' THEN bandwidth_pct WHEN 'compute' THEN compute_pct END AS roof_pct,
    list_filter([
        {'ceiling': 'compute', 'used_pct': compute_pct}, {'ceiling': 'DRAM', 'used_pct': bandwidth_pct},
        {'ceiling': 'L2', 'used_pct': l2_bandwidth_pct},
        {'ceiling': 'L1', 'used_pct': greatest(l1_bandwidth_pct, l1_passes_pct)}
    ], lambda x: x.used_pct IS NOT NULL) AS ceilings,
    list_max(list_transform(ceilings, lambda x: x.used_pct)) AS ceiling_pct,
    list_filter(ceilings, lambda x: x.used_pct = ceiling_pct)[1].ceiling AS ceiling
FROM kernels
ORDER BY total_ns DESC NULLS LAST, first_launch
