/*
title = "Kernels by launch configuration"
topic = "kernels"
place = 4
question = "Which grids, blocks, registers and shared memory do kernels use, and do they fill the GPU?"
examples = ["", "--steady --wide"]
aliases = ["cuda_gpu_kern_gb_sum"]
main = [
    "name", "total_ns", "kernel_time_pct", "calls", "grid", "block", "registers_per_thread", "waves_per_sm", "flags",
]
description = """
Adds up GPU time by kernel, grid, block, registers, shared and local memory. blocks_per_sm is how many such blocks
fit on an SM at once, and waves_per_sm = blocks_count / (SMs * blocks_per_sm); occupancy says which resource limits
them."""
reading = """
waves_per_sm below 1: the grid does not fill the GPU; give it more blocks (smaller tiles, split-K, a larger batch)
or run it concurrently with another kernel. Just above a whole number: the last wave is nearly empty. Local memory
is spilled registers or arrays: reduce register pressure (__launch_bounds__, smaller tiles). One kernel with very
many grids: shapes vary, so a CUDA graph cannot be reused. What limits blocks_per_sm: see occupancy."""
empty = "No kernels are recorded in this scope"
advice = "if the program did use the GPU, capture with: nsys profile -t cuda"

details = [
    "min_ns", "max_ns", "blocks_count", "threads_per_block", "static_shared_bytes", "local_per_thread_bytes", "cluster",
    "gpu", "sm_count",
]

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
sm_count = "SMs of that GPU or green context; NULL if the trace does not state them"

[notes]
unknown.text = "the trace does not give the limits of the GPU: blocks_per_sm and waves_per_sm are unknown"
unknown.query = "SELECT count(*) AS rows FROM answer HAVING count(*) > 0 AND count(blocks_per_sm) = 0"

green.use = "green_contexts"
graphs.use = "whole_graphs"
*/
WITH shapes AS (FROM launch_shapes)
SELECT
    coalesce(s.name, '(no name)') AS name,
    f.grid_x || 'x' || f.grid_y || 'x' || f.grid_z AS grid,
    f.block_x || 'x' || f.block_y || 'x' || f.block_z AS block,
    f.calls,
    f.total_ns,
    f.avg_ns,
    f.med_ns,
    f.min_ns,
    f.max_ns,
    100.0 * f.total_ns / nullif((SELECT sum(total_ns) FROM shapes), 0) AS kernel_time_pct,
    f.blocks_count,
    f.threads_per_block,
    f.registers_per_thread,
    f.static_shared_bytes,
    f.dynamic_shared_bytes,
    f.local_per_thread_bytes,
    CASE WHEN f.cluster_x > 0 THEN f.cluster_x || 'x' || f.cluster_y || 'x' || f.cluster_z END AS cluster,
    f.blocks_per_sm,
    f.waves_per_sm,
    nullif(concat_ws('; ',
        CASE WHEN f.threads_per_block % f.threads_per_warp <> 0 THEN 'block not a multiple of a warp' END,
        CASE WHEN f.blocks_count < f.sm_count THEN 'fewer blocks than SMs' END,
        CASE WHEN f.local_per_thread_bytes > 0 THEN 'local memory' END
    ), '') AS flags,
    f.gpu,
    f.sm_count
FROM shapes AS f
LEFT JOIN strings AS s USING (name_id)
ORDER BY
    f.total_ns DESC, name, f.blocks_count DESC, grid, f.threads_per_block DESC, block, f.registers_per_thread,
    f.static_shared_bytes, f.dynamic_shared_bytes, f.local_per_thread_bytes, cluster, f.gpu, f.model_id
