/*
description = """One row per kernel name, grid, block, registers, shared and local memory and GPU model: how often it
    ran and how much of an SM it can fill."""
stored = true
columns_of = "kernel_events"
[columns]
shape_id = "Stands for the name, grid, block, cluster, registers, shared and local memory, as in `kernel_events`"
name_id = "Id of the kernel's name, in `strings` and `kernel_names`"
local_total_bytes = "Local memory reserved for a launch, at most"
calls = "Executions on the GPU"
total_ns = "Sum of their durations"
avg_ns = "Mean duration"
med_ns = "Median duration"
min_ns = "Shortest duration"
max_ns = "Longest duration"
blocks_count = "Blocks in the grid"
threads_per_block = "Threads in a block"
warps_per_block = "Warps in a block"
block_slots = "Block slots per SM"
blocks_by_warps = "Limit of blocks per SM by warps"
blocks_by_registers = "Limit of blocks per SM by registers"
blocks_by_shared = "Limit of blocks per SM by shared memory, as the driver divided it from L1 for these launches"
blocks_per_sm = "Maximum resident blocks per SM: the smallest of the four limits; NULL when a limit is unknown"
occupancy_pct = "Theoretical occupancy: the warps of that many blocks as a share of the warps that an SM can hold"
waves_per_sm = "Waves per SM, the number of times that the grid fills the GPU: blocks_count / (SMs * blocks_per_sm)"
warps_per_sm = "Maximum resident warps per SM"
registers_per_sm = "32-bit registers per SM"
shared_per_sm_bytes = "Maximum shared memory per SM"
shared_per_block_bytes = "Maximum opt-in shared memory per block"
shared_unit_bytes = """Allocation granularity of shared memory: a block's shared memory is rounded up to a multiple of
    this"""
shared_driver_bytes = "Shared memory per block that the driver reserves"
sm_count = """Streaming multiprocessors of the GPU, or of the green context or MIG instance; NULL for a green context
    whose size the trace does not state"""
is_green = "True for kernels of a green context, which has some of the SMs of the GPU"
threads_per_warp = "Threads per warp"
model_id = "GPU model, as in `gpu_limits`"
gpu = "Name of the GPU model; NULL if the trace does not describe it"
compute_capability = "Compute capability of the GPU model"
*/
-- GPUs of the same model count as one: a kernel that ran on all eight GPUs has one row. Each resource of an SM allows a
-- certain number of blocks, and the lowest number counts. Clusters, barriers and concurrent kernels are not taken into
-- account.
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
        -- A green context or an instance of MIG has some of the GPU's SMs. Exports before nsys 2026 do not state how
        -- many a green context has.
        k.green_context_id IS NOT NULL AS is_green,
        coalesce(c.sm_count, CASE WHEN NOT is_green THEN l.sm_count END) AS sm_count,
        count(*) AS calls,
        sum(k.duration_ns)::BIGINT AS total_ns,
        quantile_cont(k.duration_ns, 0.5) AS med_ns,
        min(k.duration_ns) AS min_ns,
        max(k.duration_ns) AS max_ns,
        max(k.shared_executed_bytes) AS shared_executed_bytes,
        max(k.local_total_bytes) AS local_total_bytes
    FROM kernel_events AS k
    LEFT JOIN limits_of_gpus AS l ON l.gpu_id = gpu_of(k.process_id, k.device_id)
    LEFT JOIN _contexts AS c ON c.process_id = k.process_id
        AND c.context_id = coalesce(k.green_context_id, k.context_id) AND c.sm_count <= l.sm_count
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
    local_total_bytes,
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
    is_green,
    threads_per_warp,
    model_id,
    gpu,
    compute_capability
FROM limits;
