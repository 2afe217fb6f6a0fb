/* topic = "kernels" */
-- GPUs of the same model count as one: a kernel that ran on all eight GPUs has one row. Each resource of an SM allows a
-- certain number of blocks, and the lowest number counts. Clusters, barriers and concurrent kernels are not taken into
-- account.
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
-- Kernels by name, launch configuration and GPU model.
shapes AS (
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
        -- A green context or an instance of MIG has some of the GPU's SMs.
        coalesce(c.sm_count, l.sm_count) AS sm_count,
        count(*) AS calls,
        sum(k.duration_ns)::BIGINT AS total_ns,
        quantile_cont(k.duration_ns, 0.5) AS med_ns,
        min(k.duration_ns) AS min_ns,
        max(k.duration_ns) AS max_ns,
        max(k.shared_executed_bytes) AS shared_executed_bytes
    FROM kernel_events AS k
    LEFT JOIN limits_of_gpus AS l ON l.gpu_id = gpu_of(k.process_id, k.device_id)
    LEFT JOIN _contexts AS c ON c.process_id = k.process_id
        AND c.context_id = coalesce(k.green_context_id, k.context_id) AND c.sm_count < l.sm_count
    GROUP BY ALL
),
-- Shapes with the limits of the GPU, and what a block needs of them.
shapes_with_limits AS (
    SELECT
        m.*,
        l.gpu, l.compute_capability, l.warps_per_sm, l.blocks_per_sm AS block_slots, l.registers_per_sm,
        l.shared_per_sm_bytes, l.shared_per_block_bytes, l.shared_unit_bytes, l.shared_driver_bytes,
        coalesce(l.warp_size, 32) AS threads_per_warp,
        m.grid_x * m.grid_y * m.grid_z AS blocks_count,
        m.block_x * m.block_y * m.block_z AS threads_per_block,
        warps_of(threads_per_block, threads_per_warp) AS warps_per_block,
        m.static_shared_bytes + m.dynamic_shared_bytes AS shared_bytes,
        shared_allocated_of(shared_bytes, l.shared_unit_bytes, l.shared_driver_bytes) AS shared_allocated_bytes,
        -- The driver divides an SM's memory into L1 and shared memory for each launch. Its choice is the limit.
        CASE WHEN m.shared_executed_bytes >= shared_allocated_bytes THEN m.shared_executed_bytes
            ELSE l.shared_per_sm_bytes END AS shared_config_bytes
    FROM shapes AS m
    LEFT JOIN limits_of_gpus AS l ON l.gpu_id = m.model_id
),
-- The number of blocks that each resource of an SM allows.
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
    FROM shapes_with_limits
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

COMMENT ON VIEW launch_shapes IS
    'One row per kernel name, grid, block, registers, shared and local memory and GPU model: how often it ran and '
    'how much of an SM it can fill.';
COMMENT ON COLUMN launch_shapes.shape_id IS
    'Stands for the name, grid, block, cluster, registers, shared and local memory, as in `kernel_events`';
COMMENT ON COLUMN launch_shapes.name_id IS 'Id of the kernel''s name, in `strings` and `kernel_names`';
COMMENT ON COLUMN launch_shapes.grid_x IS 'Blocks in the grid, x';
COMMENT ON COLUMN launch_shapes.grid_y IS 'Blocks in the grid, y';
COMMENT ON COLUMN launch_shapes.grid_z IS 'Blocks in the grid, z';
COMMENT ON COLUMN launch_shapes.block_x IS 'Threads in a block, x';
COMMENT ON COLUMN launch_shapes.block_y IS 'Threads in a block, y';
COMMENT ON COLUMN launch_shapes.block_z IS 'Threads in a block, z';
COMMENT ON COLUMN launch_shapes.cluster_x IS 'Blocks in a cluster, x; NULL before nsys 2026';
COMMENT ON COLUMN launch_shapes.cluster_y IS 'Blocks in a cluster, y; NULL before nsys 2026';
COMMENT ON COLUMN launch_shapes.cluster_z IS 'Blocks in a cluster, z; NULL before nsys 2026';
COMMENT ON COLUMN launch_shapes.registers_per_thread IS 'Registers per thread';
COMMENT ON COLUMN launch_shapes.static_shared_bytes IS 'Static shared memory per block';
COMMENT ON COLUMN launch_shapes.dynamic_shared_bytes IS 'Dynamic shared memory per block';
COMMENT ON COLUMN launch_shapes.local_per_thread_bytes IS 'Local memory (spills, stack) per thread';
COMMENT ON COLUMN launch_shapes.calls IS 'Executions on the GPU';
COMMENT ON COLUMN launch_shapes.total_ns IS 'Sum of their durations';
COMMENT ON COLUMN launch_shapes.avg_ns IS 'Mean duration';
COMMENT ON COLUMN launch_shapes.med_ns IS 'Median duration';
COMMENT ON COLUMN launch_shapes.min_ns IS 'Shortest';
COMMENT ON COLUMN launch_shapes.max_ns IS 'Longest';
COMMENT ON COLUMN launch_shapes.blocks_count IS 'Blocks in the grid';
COMMENT ON COLUMN launch_shapes.threads_per_block IS 'Threads in a block';
COMMENT ON COLUMN launch_shapes.warps_per_block IS 'Warps in a block';
COMMENT ON COLUMN launch_shapes.block_slots IS 'Blocks that an SM has slots for';
COMMENT ON COLUMN launch_shapes.blocks_by_warps IS 'Blocks that an SM''s warps allow';
COMMENT ON COLUMN launch_shapes.blocks_by_registers IS 'Blocks that an SM''s registers allow';
COMMENT ON COLUMN launch_shapes.blocks_by_shared IS
    'Blocks that an SM''s shared memory allows, as the driver divided it from L1 for these launches';
COMMENT ON COLUMN launch_shapes.blocks_per_sm IS
    'Most such blocks that an SM holds at once: the least of the four; NULL when a limit is unknown';
COMMENT ON COLUMN launch_shapes.occupancy_pct IS
    'Theoretical occupancy: the warps of that many blocks as a share of the warps that an SM can hold';
COMMENT ON COLUMN launch_shapes.waves_per_sm IS
    'How often the grid fills the GPU: blocks_count / (SMs * blocks_per_sm)';
COMMENT ON COLUMN launch_shapes.warps_per_sm IS 'Most resident warps of an SM';
COMMENT ON COLUMN launch_shapes.registers_per_sm IS '32-bit registers of an SM';
COMMENT ON COLUMN launch_shapes.shared_per_sm_bytes IS 'Shared memory of an SM';
COMMENT ON COLUMN launch_shapes.shared_per_block_bytes IS 'Most shared memory of a block that opts in';
COMMENT ON COLUMN launch_shapes.shared_unit_bytes IS 'A block''s shared memory is rounded up to a multiple of this';
COMMENT ON COLUMN launch_shapes.shared_driver_bytes IS 'Shared memory that the driver takes of each block';
COMMENT ON COLUMN launch_shapes.sm_count IS
    'Streaming multiprocessors of the GPU, or of the green context or MIG instance';
COMMENT ON COLUMN launch_shapes.threads_per_warp IS 'Threads in a warp';
COMMENT ON COLUMN launch_shapes.model_id IS 'The GPU model that it ran on, as in `gpu_limits`';
COMMENT ON COLUMN launch_shapes.gpu IS 'Its name; NULL if the trace does not describe it';
COMMENT ON COLUMN launch_shapes.compute_capability IS 'Its compute capability';
