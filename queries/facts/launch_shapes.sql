-- GPUs of one model count as one: a kernel that ran on all eight has one row. Each of an SM's resources allows so many
-- blocks, and the least of them counts. Clusters, barriers and what else ran beside the kernel are not in it.
CREATE TABLE IF NOT EXISTS facts.launch_shapes (
    shape_id UBIGINT, name_id BIGINT, grid_x BIGINT, grid_y BIGINT, grid_z BIGINT, block_x BIGINT, block_y BIGINT,
    block_z BIGINT,
    cluster_x BIGINT, cluster_y BIGINT, cluster_z BIGINT, registers_per_thread BIGINT, static_shared_bytes BIGINT,
    dynamic_shared_bytes BIGINT, local_per_thread_bytes BIGINT, calls BIGINT, total_ns BIGINT, avg_ns DOUBLE,
    med_ns DOUBLE,
    min_ns BIGINT, max_ns BIGINT, blocks_count BIGINT, threads_per_block BIGINT, warps_per_block BIGINT,
    block_slots BIGINT,
    blocks_by_warps BIGINT, blocks_by_registers BIGINT, blocks_by_shared BIGINT, blocks_per_sm BIGINT,
    occupancy_pct DOUBLE,
    waves_per_sm DOUBLE, warps_per_sm BIGINT, registers_per_sm BIGINT, shared_per_sm_bytes BIGINT,
    shared_per_block_bytes BIGINT,
    shared_unit_bytes INTEGER, shared_driver_bytes INTEGER, sm_count BIGINT, threads_per_warp BIGINT, model_id BIGINT,
    gpu VARCHAR,
    compute_capability VARCHAR
);

INSERT INTO facts.launch_shapes BY NAME
WITH limits_of_gpus AS MATERIALIZED (
    FROM gpu_limits
),
measured AS (
    SELECT
        k.name_id,
        k.grid_x, k.grid_y, k.grid_z,
        k.block_x, k.block_y, k.block_z,
        k.cluster_x, k.cluster_y, k.cluster_z,
        k.registers_per_thread,
        k.static_shared_bytes,
        k.dynamic_shared_bytes,
        k.local_per_thread_bytes,
        l.model_id,
        count(*) AS calls,
        sum(k.duration_ns)::BIGINT AS total_ns,
        quantile_cont(k.duration_ns, 0.5) AS med_ns,
        min(k.duration_ns) AS min_ns,
        max(k.duration_ns) AS max_ns,
        max(k.shared_executed_bytes) AS shared_executed_bytes
    FROM kernel_events AS k
    LEFT JOIN limits_of_gpus AS l ON l.gpu_id = gpu_of(k.process_id, k.device_id)
    GROUP BY ALL
),
sized AS (
    SELECT
        m.*,
        l.gpu, l.compute_capability, l.sm_count, l.warps_per_sm, l.blocks_per_sm AS block_slots, l.registers_per_sm,
        l.shared_per_sm_bytes, l.shared_per_block_bytes, l.shared_unit_bytes, l.shared_driver_bytes,
        coalesce(l.warp_size, 32) AS threads_per_warp,
        m.grid_x * m.grid_y * m.grid_z AS blocks_count,
        m.block_x * m.block_y * m.block_z AS threads_per_block,
        warps_of(threads_per_block, threads_per_warp) AS warps_per_block,
        m.static_shared_bytes + m.dynamic_shared_bytes AS shared_bytes,
        shared_allocated_of(shared_bytes, l.shared_unit_bytes, l.shared_driver_bytes) AS shared_allocated_bytes,
        -- The driver divides an SM's memory into L1 and shared memory for each launch; what it chose is what limits.
        CASE WHEN m.shared_executed_bytes >= shared_allocated_bytes THEN m.shared_executed_bytes
            ELSE l.shared_per_sm_bytes END AS shared_config_bytes
    FROM measured AS m
    LEFT JOIN limits_of_gpus AS l ON l.gpu_id = m.model_id
),
limits AS (
    SELECT
        *,
        warps_per_sm // nullif(warps_per_block, 0) AS blocks_by_warps,
        blocks_by_registers_of(
            registers_per_sm, registers_per_thread, warps_per_block, threads_per_warp
        ) AS blocks_by_registers,
        shared_config_bytes // nullif(shared_allocated_bytes, 0) AS blocks_by_shared,
        CASE WHEN blocks_by_warps + block_slots + blocks_by_registers IS NOT NULL AND shared_config_bytes IS NOT NULL
            THEN least(blocks_by_warps, block_slots, blocks_by_registers, blocks_by_shared) END AS blocks_per_sm
    FROM sized
)
SELECT
    shape_id_of(
        name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, cluster_x, cluster_y, cluster_z,
        registers_per_thread,
        static_shared_bytes, dynamic_shared_bytes, local_per_thread_bytes
    ) AS shape_id,
    name_id,
    grid_x, grid_y, grid_z,
    block_x, block_y, block_z,
    cluster_x, cluster_y, cluster_z,
    registers_per_thread,
    static_shared_bytes,
    dynamic_shared_bytes,
    local_per_thread_bytes,
    calls,
    total_ns,
    total_ns / calls AS avg_ns,
    med_ns,
    min_ns,
    max_ns,
    blocks_count,
    threads_per_block,
    warps_per_block,
    block_slots,
    blocks_by_warps,
    blocks_by_registers,
    blocks_by_shared,
    blocks_per_sm,
    100.0 * blocks_per_sm * warps_per_block / warps_per_sm AS occupancy_pct,
    blocks_count / (sm_count * nullif(blocks_per_sm, 0)) AS waves_per_sm,
    warps_per_sm,
    registers_per_sm,
    shared_per_sm_bytes,
    shared_per_block_bytes,
    shared_unit_bytes,
    shared_driver_bytes,
    sm_count,
    threads_per_warp,
    model_id,
    gpu,
    compute_capability
FROM limits;
