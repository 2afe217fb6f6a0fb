-- Launch shapes of the given kernels, the most time first.
WITH kernel_list AS (
    SELECT unnest($names)::BIGINT AS name_id
)
SELECT
    s.name_id,
    s.grid_x || 'x' || s.grid_y || 'x' || s.grid_z AS grid, s.block_x || 'x' || s.block_y || 'x' || s.block_z AS block,
    s.calls, s.avg_ns, s.registers_per_thread, s.static_shared_bytes + s.dynamic_shared_bytes AS shared_bytes,
    s.occupancy_pct, s.waves_per_sm
FROM launch_shapes AS s
SEMI JOIN kernel_list USING (name_id)
QUALIFY row_number() OVER (
    PARTITION BY s.name_id ORDER BY s.total_ns DESC, grid, block, s.registers_per_thread, shared_bytes, s.shape_id
)
    <= $max_rows
ORDER BY s.name_id, s.total_ns DESC, grid, block, s.registers_per_thread, shared_bytes, s.shape_id
