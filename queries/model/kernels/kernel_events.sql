-- A grid, a block, a number of registers or a size of shared memory that CUDA does not allow is unknown.
CREATE VIEW kernel_events AS
SELECT
    start AS start_ns,
    "end" AS end_ns,
    duration(start, "end") AS duration_ns,
    demangledName AS name_id,
    shortName AS short_name_id,
    mangledName AS mangled_name_id,
    deviceId AS device_id,
    streamId AS stream_id,
    contextId AS context_id,
    nullif(greenContextId, 0) AS green_context_id,
    pid_of(globalPid) AS process_id,
    correlationId AS correlation_id,
    CASE WHEN has_grid THEN gridX END AS grid_x,
    CASE WHEN has_grid THEN gridY END AS grid_y,
    CASE WHEN has_grid THEN gridZ END AS grid_z,
    CASE WHEN has_block THEN blockX END AS block_x,
    CASE WHEN has_block THEN blockY END AS block_y,
    CASE WHEN has_block THEN blockZ END AS block_z,
    clusterX AS cluster_x, clusterY AS cluster_y, clusterZ AS cluster_z,
    CASE WHEN registersPerThread BETWEEN 0 AND 255 THEN registersPerThread END AS registers_per_thread,
    shared_bytes_of(staticSharedMemory) AS static_shared_bytes,
    shared_bytes_of(dynamicSharedMemory) AS dynamic_shared_bytes,
    shared_bytes_of(sharedMemoryExecuted) AS shared_executed_bytes,
    CASE WHEN localMemoryPerThread >= 0 THEN localMemoryPerThread END AS local_per_thread_bytes,
    CASE WHEN localMemoryTotal >= 0 THEN localMemoryTotal END AS local_total_bytes,
    launchType AS launch_type_id,
    gridId AS grid_id,
    graphNodeId AS graph_node_id,
    graphId AS graph_id,
    shape_id_of(
        demangledName, grid_x, grid_y, grid_z, block_x, block_y, block_z, clusterX, clusterY, clusterZ,
        registers_per_thread, static_shared_bytes, dynamic_shared_bytes, local_per_thread_bytes
    ) AS shape_id
FROM (
    SELECT *, is_grid(gridX, gridY, gridZ) AS has_grid, is_block(blockX, blockY, blockZ) AS has_block
    FROM raw.CUPTI_ACTIVITY_KIND_KERNEL
);

COMMENT ON VIEW kernel_events IS
    'One row per kernel execution, with names as ids: for queries that group millions of kernels before they join '
    '`strings`.';
COMMENT ON COLUMN kernel_events.start_ns IS 'When the kernel started on the GPU, in the trace''s time';
COMMENT ON COLUMN kernel_events.end_ns IS 'When the kernel ended on the GPU';
COMMENT ON COLUMN kernel_events.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN kernel_events.name_id IS 'The demangled name, in `strings` and `kernel_names`';
COMMENT ON COLUMN kernel_events.short_name_id IS 'The base name without templates and parameters, in `strings`';
COMMENT ON COLUMN kernel_events.mangled_name_id IS 'The linker''s name, in `strings`; NULL before nsys 2022';
COMMENT ON COLUMN kernel_events.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN kernel_events.stream_id IS 'CUDA stream, numbered by CUPTI';
COMMENT ON COLUMN kernel_events.context_id IS 'CUDA context';
COMMENT ON COLUMN kernel_events.green_context_id IS 'Green context, which has some of the GPU''s SMs; NULL for none';
COMMENT ON COLUMN kernel_events.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN kernel_events.correlation_id IS
    'Joins with `api_calls`, together with process_id; shared by all kernels of one graph launch';
COMMENT ON COLUMN kernel_events.grid_x IS 'Blocks in the grid, x';
COMMENT ON COLUMN kernel_events.grid_y IS 'Blocks in the grid, y';
COMMENT ON COLUMN kernel_events.grid_z IS 'Blocks in the grid, z';
COMMENT ON COLUMN kernel_events.block_x IS 'Threads in a block, x';
COMMENT ON COLUMN kernel_events.block_y IS 'Threads in a block, y';
COMMENT ON COLUMN kernel_events.block_z IS 'Threads in a block, z';
COMMENT ON COLUMN kernel_events.cluster_x IS 'Blocks in a cluster, x; NULL before nsys 2026';
COMMENT ON COLUMN kernel_events.cluster_y IS 'Blocks in a cluster, y; NULL before nsys 2026';
COMMENT ON COLUMN kernel_events.cluster_z IS 'Blocks in a cluster, z; NULL before nsys 2026';
COMMENT ON COLUMN kernel_events.registers_per_thread IS 'Registers per thread';
COMMENT ON COLUMN kernel_events.static_shared_bytes IS 'Static shared memory per block';
COMMENT ON COLUMN kernel_events.dynamic_shared_bytes IS 'Dynamic shared memory per block';
COMMENT ON COLUMN kernel_events.shared_executed_bytes IS 'Shared memory configuration that the driver chose for the SM';
COMMENT ON COLUMN kernel_events.local_per_thread_bytes IS 'Local memory (spills, stack) per thread';
COMMENT ON COLUMN kernel_events.local_total_bytes IS 'Local memory reserved for the whole kernel';
COMMENT ON COLUMN kernel_events.launch_type_id IS 'Enum `launch type` in `_enum_words`';
COMMENT ON COLUMN kernel_events.grid_id IS 'Unique number of the launched grid';
COMMENT ON COLUMN kernel_events.graph_node_id IS 'CUDA graph node that ran the kernel; NULL or 0 outside graphs';
COMMENT ON COLUMN kernel_events.graph_id IS 'CUDA graph; NULL before nsys 2026';
COMMENT ON COLUMN kernel_events.shape_id IS
    'Stands for the name, grid, block, cluster, registers, shared and local memory, as in `launch_shapes`';
