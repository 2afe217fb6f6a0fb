CREATE VIEW kernels AS
SELECT
    k.start_ns,
    k.end_ns,
    k.duration_ns,
    n.name,
    s.name AS short_name,
    m.name AS mangled_name,
    k.device_id,
    k.stream_id,
    k.context_id,
    k.process_id,
    k.correlation_id,
    k.grid_x,
    k.grid_y,
    k.grid_z,
    k.block_x,
    k.block_y,
    k.block_z,
    k.cluster_x,
    k.cluster_y,
    k.cluster_z,
    k.registers_per_thread,
    k.static_shared_bytes,
    k.dynamic_shared_bytes,
    k.shared_executed_bytes,
    k.local_per_thread_bytes,
    k.local_total_bytes,
    t.word AS launch_type,
    k.grid_id,
    k.graph_node_id,
    k.graph_id,
    k.name_id
FROM kernel_events AS k
LEFT JOIN strings AS n ON n.name_id = k.name_id
LEFT JOIN strings AS s ON s.name_id = k.short_name_id
LEFT JOIN strings AS m ON m.name_id = k.mangled_name_id
LEFT JOIN _enum_words AS t ON t.enum = 'launch type' AND t.id = k.launch_type_id;

COMMENT ON VIEW kernels IS 'One row per kernel execution on a GPU.';
COMMENT ON COLUMN kernels.start_ns IS 'When the kernel started on the GPU, in the trace''s time';
COMMENT ON COLUMN kernels.end_ns IS 'When the kernel ended on the GPU';
COMMENT ON COLUMN kernels.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN kernels.name IS 'The demangled name, with templates and parameters';
COMMENT ON COLUMN kernels.short_name IS 'The base name';
COMMENT ON COLUMN kernels.mangled_name IS 'The linker''s name; NULL before nsys 2022';
COMMENT ON COLUMN kernels.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN kernels.stream_id IS 'CUDA stream, numbered by CUPTI';
COMMENT ON COLUMN kernels.context_id IS 'CUDA context';
COMMENT ON COLUMN kernels.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN kernels.correlation_id IS
    'Joins with `api_calls`, together with process_id; shared by all kernels of one graph launch';
COMMENT ON COLUMN kernels.grid_x IS 'Blocks in the grid, x';
COMMENT ON COLUMN kernels.grid_y IS 'Blocks in the grid, y';
COMMENT ON COLUMN kernels.grid_z IS 'Blocks in the grid, z';
COMMENT ON COLUMN kernels.block_x IS 'Threads in a block, x';
COMMENT ON COLUMN kernels.block_y IS 'Threads in a block, y';
COMMENT ON COLUMN kernels.block_z IS 'Threads in a block, z';
COMMENT ON COLUMN kernels.cluster_x IS 'Blocks in a cluster, x; NULL before nsys 2026';
COMMENT ON COLUMN kernels.cluster_y IS 'Blocks in a cluster, y; NULL before nsys 2026';
COMMENT ON COLUMN kernels.cluster_z IS 'Blocks in a cluster, z; NULL before nsys 2026';
COMMENT ON COLUMN kernels.registers_per_thread IS 'Registers per thread';
COMMENT ON COLUMN kernels.static_shared_bytes IS 'Static shared memory per block';
COMMENT ON COLUMN kernels.dynamic_shared_bytes IS 'Dynamic shared memory per block';
COMMENT ON COLUMN kernels.shared_executed_bytes IS 'Shared memory configuration that the driver chose for the SM';
COMMENT ON COLUMN kernels.local_per_thread_bytes IS 'Local memory (spills, stack) per thread';
COMMENT ON COLUMN kernels.local_total_bytes IS 'Local memory reserved for the whole kernel';
COMMENT ON COLUMN kernels.launch_type IS 'regular, coop single device, coop multi device';
COMMENT ON COLUMN kernels.grid_id IS 'Unique number of the launched grid';
COMMENT ON COLUMN kernels.graph_node_id IS 'CUDA graph node that ran the kernel; NULL or 0 outside graphs';
COMMENT ON COLUMN kernels.graph_id IS 'CUDA graph; NULL before nsys 2026';
COMMENT ON COLUMN kernels.name_id IS 'Id of the name, in `kernel_names`';
