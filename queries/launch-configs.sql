/*
title = "Kernels by launch configuration"
aliases = ["cuda_gpu_kern_gb_sum"]
description = """
Adds up GPU time by kernel, grid, block, registers, shared and local memory. blocks_per_sm is how many such blocks fit on an
SM at once: the least that its warps, block slots, registers (given out to warps in units of 8 a thread, a quarter of them
to each quarter of the SM) and shared memory (in units of 128 bytes, 1 KiB of each block for the driver since compute
capability 8.0) allow. waves_per_sm = blocks_count / (SMs * blocks_per_sm). Both need the GPU's limits in the trace, and
do not know of clusters, barriers or a shared memory carve-out that was set by hand."""
reading = """
waves_per_sm below 1: the grid does not fill the GPU; give it more blocks (smaller tiles, split-K, a larger batch) or run
it beside another kernel. Just above a whole number: the last wave runs nearly empty. Local memory is spilled registers or
arrays: lower the pressure (__launch_bounds__, smaller tiles). One kernel with very many grids: shapes vary, so a CUDA
graph cannot be reused. Occupancy follows from blocks_per_sm; verify with ncu before changing anything."""
empty = "No kernels ran in this scope; if the program did use the GPU, capture with: nsys profile -t cuda"

details = ["min_ns", "max_ns", "blocks_count", "threads_per_block", "static_shared_bytes", "local_per_thread_bytes", "cluster", "gpu"]

[columns]
name = "The kernel"
grid = "Blocks in the grid, x × y × z"
block = "Threads in a block, x × y × z"
calls = "Executions on the GPU"
total_ns = "Sum of their durations"
avg_ns = "Mean duration"
med_ns = "Median duration"
min_ns = "Shortest"
max_ns = "Longest"
kernel_time_pct = "Share of all kernel time in scope"
blocks_count = "Blocks in the grid"
threads_per_block = "Threads in a block"
registers_per_thread = "Registers per thread"
static_shared_bytes = "Static shared memory per block"
dynamic_shared_bytes = "Dynamic shared memory per block"
local_per_thread_bytes = "Local memory (spills, stack) per thread"
cluster = "Blocks in a cluster, x × y × z; NULL without clusters, and before nsys 2026"
blocks_per_sm = "Most such blocks that an SM holds at once"
waves_per_sm = "How often the grid fills the GPU: blocks_count / (SMs * blocks_per_sm)"
flags = "What stands out: block not a multiple of a warp, fewer blocks than SMs, local memory"
gpu = "The GPU model that it ran on; NULL if the trace does not describe it"

[notes]
unknown = """
SELECT 'the trace does not give the limits of the GPU: blocks_per_sm and waves_per_sm are unknown'
FROM answer HAVING count(*) > 0 AND count(waves_per_sm) = 0"""
graphs = """
SELECT 'CUDA graphs ran as a whole ' || count(*) || ' times: their kernels are not in this table; capture with --cuda-graph-trace=node to see them'
FROM graph_launches HAVING count(*) > 0"""
*/
-- GPUs of one model count as one: a kernel that ran on all eight has one row.
WITH models AS (
    SELECT
        gpu_id, name, sm_count, warp_size, warps_per_sm, blocks_per_sm, registers_per_sm, shared_per_sm_bytes,
        split_part(compute_capability, '.', 1)::INTEGER >= 8 AS driver_takes_shared,
        min(gpu_id) OVER (
            PARTITION BY name, sm_count, warp_size, warps_per_sm, blocks_per_sm, registers_per_sm, shared_per_sm_bytes
        ) AS model_id
    FROM gpus
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
        m.model_id,
        count(*) AS calls,
        sum(k.duration_ns)::BIGINT AS total_ns,
        quantile_cont(k.duration_ns, 0.5) AS med_ns,
        min(k.duration_ns) AS min_ns,
        max(k.duration_ns) AS max_ns
    FROM kernel_events AS k
    LEFT JOIN devices AS d ON d.process_id = k.process_id AND d.device_id = k.device_id
    LEFT JOIN (SELECT gpu_id, min(model_id) AS model_id FROM models GROUP BY gpu_id) AS m
        ON m.gpu_id = coalesce(d.gpu_id, k.device_id)
    GROUP BY ALL
),
shaped AS (
    SELECT
        c.*,
        g.* EXCLUDE (name, model_id),
        g.name AS gpu,
        grid_x * grid_y * grid_z AS blocks_count,
        block_x * block_y * block_z AS threads_per_block,
        (threads_per_block + warp_size - 1) // warp_size AS warps,
        -- Registers go to warps in units of 256, and each quarter of an SM has its own.
        registers_per_sm // 4 // ((registers_per_thread + 7) // 8 * 8 * warp_size) * 4 AS register_warps,
        (static_shared_bytes + dynamic_shared_bytes + CASE WHEN driver_takes_shared THEN 1024 ELSE 0 END + 127) // 128 * 128 AS shared_bytes
    FROM measured AS c
    LEFT JOIN (SELECT DISTINCT ON (gpu_id) * FROM models WHERE gpu_id = model_id ORDER BY gpu_id) AS g ON g.gpu_id = c.model_id
),
fitted AS (
    SELECT
        *,
        CASE WHEN warps_per_sm + blocks_per_sm + register_warps + shared_per_sm_bytes + shared_bytes IS NOT NULL THEN
            least(warps_per_sm // warps, blocks_per_sm, register_warps // warps, shared_per_sm_bytes // greatest(shared_bytes, 1))
        END AS resident_blocks
    FROM shaped
)
SELECT
    coalesce(s.name, '(no name)') AS name,
    f.grid_x || 'x' || f.grid_y || 'x' || f.grid_z AS grid,
    f.block_x || 'x' || f.block_y || 'x' || f.block_z AS block,
    f.calls,
    f.total_ns,
    f.total_ns / f.calls AS avg_ns,
    f.med_ns,
    f.min_ns,
    f.max_ns,
    100.0 * f.total_ns / nullif((SELECT sum(total_ns) FROM measured), 0) AS kernel_time_pct,
    f.blocks_count,
    f.threads_per_block,
    f.registers_per_thread,
    f.static_shared_bytes,
    f.dynamic_shared_bytes,
    f.local_per_thread_bytes,
    CASE WHEN f.cluster_x > 0 THEN f.cluster_x || 'x' || f.cluster_y || 'x' || f.cluster_z END AS cluster,
    f.resident_blocks AS blocks_per_sm,
    f.blocks_count / (f.sm_count * nullif(f.resident_blocks, 0)) AS waves_per_sm,
    nullif(concat_ws('; ',
        CASE WHEN f.threads_per_block % coalesce(f.warp_size, 32) <> 0 THEN 'block not a multiple of a warp' END,
        CASE WHEN f.blocks_count < f.sm_count THEN 'fewer blocks than SMs' END,
        CASE WHEN f.local_per_thread_bytes > 0 THEN 'local memory' END
    ), '') AS flags,
    f.gpu
FROM fitted AS f
LEFT JOIN strings AS s USING (name_id)
ORDER BY
    f.total_ns DESC, name, f.blocks_count DESC, grid, f.threads_per_block DESC, block, f.registers_per_thread,
    f.static_shared_bytes, f.dynamic_shared_bytes, f.local_per_thread_bytes, cluster, f.gpu, f.model_id
