CREATE VIEW launch_shapes AS
FROM facts.launch_shapes;

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
COMMENT ON COLUMN launch_shapes.sm_count IS 'Streaming multiprocessors of the GPU';
COMMENT ON COLUMN launch_shapes.threads_per_warp IS 'Threads in a warp';
COMMENT ON COLUMN launch_shapes.model_id IS 'The GPU model that it ran on, as in `gpu_limits`';
COMMENT ON COLUMN launch_shapes.gpu IS 'Its name; NULL if the trace does not describe it';
COMMENT ON COLUMN launch_shapes.compute_capability IS 'Its compute capability';
