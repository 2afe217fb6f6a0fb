CREATE VIEW _kernel_times AS
SELECT
    start AS start_ns,
    "end" AS end_ns,
    duration(start, "end") AS duration_ns,
    demangledName AS name_id,
    deviceId AS device_id,
    streamId AS stream_id,
    contextId AS context_id,
    pid_of(globalPid) AS process_id,
    correlationId AS correlation_id,
    gridX AS grid_x, gridY AS grid_y, gridZ AS grid_z,
    blockX AS block_x, blockY AS block_y, blockZ AS block_z,
    graphNodeId AS graph_node_id
FROM raw.kernel_times;

COMMENT ON VIEW _kernel_times IS
    'The kernels of `kernel_events` with what most facts read of them: of a big export no more is copied.';
COMMENT ON COLUMN _kernel_times.start_ns IS 'When the kernel started on the GPU, in the trace''s time';
COMMENT ON COLUMN _kernel_times.end_ns IS 'When the kernel ended on the GPU';
COMMENT ON COLUMN _kernel_times.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN _kernel_times.name_id IS 'The demangled name, in `strings` and `kernel_names`';
COMMENT ON COLUMN _kernel_times.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN _kernel_times.stream_id IS 'CUDA stream, numbered by CUPTI';
COMMENT ON COLUMN _kernel_times.context_id IS 'CUDA context';
COMMENT ON COLUMN _kernel_times.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _kernel_times.correlation_id IS
    'Joins with `api_calls`, together with process_id; shared by all kernels of one graph launch';
COMMENT ON COLUMN _kernel_times.grid_x IS 'Blocks in the grid, x';
COMMENT ON COLUMN _kernel_times.grid_y IS 'Blocks in the grid, y';
COMMENT ON COLUMN _kernel_times.grid_z IS 'Blocks in the grid, z';
COMMENT ON COLUMN _kernel_times.block_x IS 'Threads in a block, x';
COMMENT ON COLUMN _kernel_times.block_y IS 'Threads in a block, y';
COMMENT ON COLUMN _kernel_times.block_z IS 'Threads in a block, z';
COMMENT ON COLUMN _kernel_times.graph_node_id IS 'CUDA graph node that ran the kernel; NULL or 0 outside graphs';
