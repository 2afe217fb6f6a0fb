/*
title = "Theoretical occupancy of kernels, and what limits it"
topic = "kernels"
place = 5
question = "How many warps fit on an SM, what limits them, and what would one more block need?"
examples = ["", "--block 256 --registers 64 --arch 9.0"]
main = ["kernel_time_pct", "total_ns", "occupancy_pct", "limited_by", "name", "grid", "block", "waves_per_sm"]
details = ["ncu_occupancy_pct"]
description = """
For each kernel and launch configuration, how many of its blocks an SM can hold at once: the minimum of what its
warps, its block slots, its registers (allocated to warps in units of 256, a quarter of them to each quarter of the
SM) and its shared memory (as the driver split it from L1; static and dynamic, plus 1 KiB of each block for the
driver since compute capability 8.0) allow. Occupancy is the warps of these blocks as a share of the maximum that an
SM can hold. The limits are the trace's own, else those of the compute capability. Clusters and barriers are not
counted: of blocks that need an SM each, 132 run at once on an H200, but 120 in clusters of 4 or 8, and 112 in
clusters of 16."""
reading = """
Low occupancy is not a problem in itself: matrix products run best at 10 to 20%, with many registers. It matters
where classify says latency, or memory below 60% of its peak. limited_by registers: __launch_bounds__ or smaller
tiles; shared memory: fewer stages; warps: a block size that divides the SM's; blocks: larger blocks. next_step says
what one more block would need. wave_fill far below 100: the last wave leaves SMs empty (tail effect)."""
empty = "No kernels are recorded in this scope"
advice = "if the program did use the GPU, capture with: nsys profile -t cuda"

[columns]
name = "The kernel"
grid = "Blocks in the grid, x × y × z"
block = "Threads in a block, x × y × z"
calls = "Executions on the GPU"
total_ns = "Sum of their durations"
avg_ns = "Mean duration"
kernel_time_pct = "Share of all kernel time in scope"
occupancy_pct = "Theoretical occupancy: resident warps as a share of the most that an SM can hold"
ncu_occupancy_pct = "Theoretical occupancy by ncu, where it was imported"
limited_by = "What limits the number of blocks: warps, blocks, registers, shared memory; several if they tie"
blocks_per_sm = "Most such blocks that an SM holds at once"
next_step = "What one more block per SM would need, where its warps and block slots allow one"
waves_per_sm = "How often the grid fills the GPU: blocks / (SMs * blocks_per_sm)"
wave_fill_pct = "How full these waves are: waves_per_sm / waves_per_sm rounded up; 100 means no tail"
registers_per_thread = "Registers per thread"
shared_bytes = "Static and dynamic shared memory per block"
blocks_by_warps = "Blocks that the SM's warps allow"
blocks_by_slots = "Blocks that the SM has slots for"
blocks_by_registers = "Blocks that the SM's registers allow"
blocks_by_shared = "Blocks that the SM's shared memory allows"
shared_cliff_bytes = "Shared memory that a block can add before one block fewer fits"
flags = "What stands out: fewer blocks than SMs, last wave mostly empty, block not a multiple of a warp"
gpu = "The GPU model that it ran on; NULL if the trace does not describe it"

[notes]
ncu.text = "ncu agrees for {agreed} of the {kernels:kernel} that it profiled"
ncu.query = """
SELECT count(*) FILTER (abs(occupancy_pct - ncu_occupancy_pct) < 0.1) AS agreed, count(*) AS kernels
FROM answer WHERE ncu_occupancy_pct IS NOT NULL HAVING count(*) > 0"""

unknown.text = """
the trace does not say what the GPU's SMs can hold, and its compute capability is not in the catalog: occupancy is
unknown"""
unknown.query = "SELECT count(*) AS rows FROM answer HAVING count(*) > 0 AND count(occupancy_pct) = 0"

green.use = "green_contexts"
graphs.use = "whole_graphs"
*/
WITH shapes AS (
    SELECT
        *,
        static_shared_bytes + dynamic_shared_bytes AS shared_bytes,
        limited_by_text(
            blocks_per_sm, blocks_by_warps, block_slots, blocks_by_registers, blocks_by_shared
        ) AS limited_by,
        -- The limits for one more block, if warps and block slots leave room for it.
        CASE WHEN blocks_per_sm < least(blocks_by_warps, block_slots) THEN blocks_per_sm + 1 END AS next_blocks,
        CASE WHEN blocks_by_registers < next_blocks THEN
            registers_for(next_blocks, registers_per_sm, warps_per_block, threads_per_warp)
        END AS next_registers,
        CASE WHEN blocks_by_shared < next_blocks THEN
            shared_for(next_blocks, shared_per_sm_bytes, shared_unit_bytes, shared_driver_bytes)
        END AS next_shared,
        -- The driver can give the blocks shared memory up to this size, even if it gave them less now.
        least(
            shared_for(blocks_per_sm, shared_per_sm_bytes, shared_unit_bytes, shared_driver_bytes),
            shared_per_block_bytes
        ) - shared_bytes AS shared_cliff_bytes,
        100.0 * waves_per_sm / nullif(ceil(waves_per_sm), 0) AS wave_fill_pct
    FROM launch_shapes
)
SELECT
    coalesce(s.name, '(no name)') AS name,
    h.grid_x || 'x' || h.grid_y || 'x' || h.grid_z AS grid,
    h.block_x || 'x' || h.block_y || 'x' || h.block_z AS block,
    h.calls,
    h.total_ns,
    h.avg_ns,
    100.0 * h.total_ns / nullif((SELECT sum(total_ns) FROM shapes), 0) AS kernel_time_pct,
    h.occupancy_pct,
    p.theoretical_occupancy_pct AS ncu_occupancy_pct,
    h.limited_by,
    h.blocks_per_sm,
    CASE WHEN h.next_blocks IS NOT NULL THEN
        next_step_text(h.next_blocks, h.registers_per_thread, h.next_registers, h.shared_bytes, h.next_shared)
    END AS next_step,
    h.waves_per_sm,
    h.wave_fill_pct,
    h.registers_per_thread,
    h.shared_bytes,
    h.blocks_by_warps,
    h.block_slots AS blocks_by_slots,
    h.blocks_by_registers,
    h.blocks_by_shared,
    greatest(h.shared_cliff_bytes, 0) AS shared_cliff_bytes,
    nullif(concat_ws('; ',
        CASE WHEN h.blocks_count < h.sm_count THEN 'fewer blocks than SMs' END,
        CASE WHEN h.waves_per_sm > 1 AND h.wave_fill_pct < 75 THEN 'last wave mostly empty' END,
        CASE WHEN h.threads_per_block % h.threads_per_warp <> 0 THEN 'block not a multiple of a warp' END
    ), '') AS flags,
    h.gpu
FROM shapes AS h
LEFT JOIN strings AS s USING (name_id)
LEFT JOIN _ncu_shapes AS p USING (name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z)
ORDER BY
    h.total_ns DESC, name, h.blocks_count DESC, grid, h.threads_per_block DESC, block, h.registers_per_thread,
    h.static_shared_bytes, h.dynamic_shared_bytes, h.local_per_thread_bytes, h.cluster_x, h.cluster_y, h.cluster_z,
    h.gpu, h.model_id
