-- The operations of a step with the launch shape, the neighbors, and what the program and its GPU are. A copy or memset
-- has no construct yet.
CREATE OR REPLACE TABLE internal.unnamed_operations AS
WITH names AS (
    SELECT n.name_id, n.name, n.family, n.provenance, c.construct, kernel_base_name(n.name) AS base_name
    FROM kernel_names AS n
    LEFT JOIN kernel_constructs AS c USING (name_id)
),
-- What an operation is called as a neighbor.
labels AS (
    SELECT name_id AS key, coalesce(construct, nullif(family, 'other'), base_name) AS label FROM names
    UNION ALL
    SELECT DISTINCT key, label FROM facts.operation_groups WHERE key < 0
),
-- Kernels of one name, grid and block that use different shared memory or registers: the shape with the most time.
shapes AS (
    SELECT DISTINCT ON (name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z) *
    FROM launch_shapes
    ORDER BY name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, total_ns DESC
),
peaks AS (
    SELECT
        gpu_id, any_value(memory_bytes_per_s) AS memory_bytes_per_s,
        max(1e12 * tflop_per_s) FILTER (precision = 'fp32') AS fp32_flop_per_s,
        max(1e12 * tflop_per_s) FILTER (precision = 'fp16') AS half_flop_per_s,
        any_value(compute_capability) AS compute_capability,
        -- The GPUs of GH200, GB200 and others are linked to the CPU by NVLink.
        any_value(c.host_link_bytes_per_s::DOUBLE) FILTER (NOT regexp_matches(p.gpu, 'G[HB]\d')) AS host_bytes_per_s
    FROM gpu_peaks AS p
    LEFT JOIN compute_capabilities() AS c USING (compute_capability)
    GROUP BY gpu_id
),
-- What a step has on each device.
contents AS (
    SELECT
        g.process_id, g.device_id,
        list_sort(list(DISTINCT n.construct) FILTER (n.construct IS NOT NULL)) AS constructs,
        list_sort(list(DISTINCT n.family) FILTER (n.family IS NOT NULL)) AS families,
        bool_or(regexp_extract(n.name, '(?i)backward|_bwd|_bprop|dgrad|wgrad') <> '') AS has_backward
    FROM facts.operation_groups AS g
    LEFT JOIN names AS n USING (name_id)
    GROUP BY g.process_id, g.device_id
),
programs AS (
    SELECT
        process_id, count(device_id) AS devices, min(device_id) AS first_device_id,
        coalesce(bool_or(has_backward), false) AS has_backward
    FROM contents
    GROUP BY process_id
)
SELECT
    row_number() OVER (
        ORDER BY g.process_id, g.device_id, g.total_ns DESC, g.calls, g.key, g.grid_x, g.grid_y, g.grid_z, g.block_x,
            g.block_y, g.block_z, g.size_bytes
    ) AS row_number,
    g.process_id, coalesce(g.device_id, p.first_device_id) AS device_id, g.kind, coalesce(n.name, g.label) AS name,
    g.name_id, n.construct, n.family,
    n.provenance, n.base_name,
    g.grid_x, g.grid_y, g.grid_z, g.block_x, g.block_y, g.block_z,
    g.grid_x * g.grid_y * g.grid_z AS blocks_count, g.block_x * g.block_y * g.block_z AS threads_per_block,
    s.registers_per_thread, s.static_shared_bytes, s.dynamic_shared_bytes, s.blocks_per_sm,
    least(s.blocks_by_warps, s.block_slots, s.blocks_by_registers) AS blocks_without_shared,
    s.warps_per_block, s.warps_per_sm, s.occupancy_pct, s.waves_per_sm::DOUBLE AS waves_per_sm, s.sm_count,
    g.calls / g.units AS calls, g.steps_pct, if(g.kind = 'call', g.host_ns, g.total_ns) / g.calls AS avg_ns, g.min_ns,
    g.total_ns / g.units AS total_ns, g.pageable_pct, g.faulted_pct,
    least(100, 100.0 * g.total_ns / g.units / nullif(t.wall_ns, 0)) AS step_pct,
    least(100, 100.0 * g.total_ns / g.units / nullif(t.busy_ns, 0)) AS busy_pct,
    g.size_bytes, 1e9 * g.size_bytes * g.calls / nullif(g.total_ns, 0) AS bytes_per_s,
    g.host_ns / g.units AS host_ns, g.idle_before_ns / g.units AS idle_before_ns,
    100.0 * g.in_graph / g.calls AS in_graph_pct, g.streams, g.threads, b.label AS before, a.label AS after,
    100.0 * g.read_backs / g.calls AS read_back_pct, g.read_back_bytes,
    c.constructs, c.families, p.has_backward, f.framework, p.devices,
    t.wall_ns AS step_ns, 100.0 * t.busy_ns / nullif(t.wall_ns, 0) AS step_busy_pct, t.launch_calls AS step_launches,
    t.has_steps, k.memory_bytes_per_s, k.fp32_flop_per_s, k.half_flop_per_s, k.compute_capability,
    k.host_bytes_per_s
FROM facts.operation_groups AS g
JOIN programs AS p ON p.process_id = g.process_id
JOIN contents AS c ON c.process_id = g.process_id AND c.device_id = coalesce(g.device_id, p.first_device_id)
CROSS JOIN _step_totals AS t
LEFT JOIN names AS n ON n.name_id = g.name_id
LEFT JOIN shapes AS s
    ON s.name_id = g.name_id AND s.grid_x = g.grid_x AND s.grid_y = g.grid_y AND s.grid_z = g.grid_z
        AND s.block_x = g.block_x AND s.block_y = g.block_y AND s.block_z = g.block_z
LEFT JOIN labels AS b ON b.key = g.before_key
LEFT JOIN labels AS a ON a.key = g.after_key
LEFT JOIN peaks AS k ON k.gpu_id = gpu_of(g.process_id, coalesce(g.device_id, p.first_device_id))
LEFT JOIN frameworks AS f ON f.is_program
