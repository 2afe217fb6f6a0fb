/*
description = """One row per kernel execution, with names as ids: for queries that group millions of kernels before they
    join `strings`."""
[columns]
start_ns = "When the kernel started on the GPU, in the trace's time"
end_ns = "When the kernel ended on the GPU"
name_id = "The demangled name, in `strings` and `kernel_names`"
short_name_id = "The base name without templates and parameters, in `strings`"
mangled_name_id = "The linker's name, in `strings`; NULL before nsys 2022"
green_context_id = "Green context, which has some of the GPU's SMs; NULL for none"
correlation_id = "Joins with `api_calls`, together with process_id; shared by all kernels of one graph launch"
cluster_x = "Blocks in a cluster, x; NULL before nsys 2026"
cluster_y = "Blocks in a cluster, y; NULL before nsys 2026"
cluster_z = "Blocks in a cluster, z; NULL before nsys 2026"
registers_per_thread = "Registers per thread"
static_shared_bytes = "Static shared memory per block"
dynamic_shared_bytes = "Dynamic shared memory per block"
shared_executed_bytes = "Shared memory configuration that the driver chose for the SM"
local_per_thread_bytes = "Local memory (spills, stack) per thread"
local_total_bytes = "Local memory reserved for the whole kernel"
launch_type_id = "Enum `launch type` in `_enum_words`"
grid_id = "Unique number of the launched grid"
graph_node_id = "CUDA graph node that ran the kernel; NULL or 0 outside graphs"
graph_id = "CUDA graph; NULL before nsys 2026"
shape_id = "Stands for the name, grid, block, cluster, registers, shared and local memory, as in `launch_shapes`"
*/
SELECT
    *,
    shape_id_of(
        name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, cluster_x, cluster_y, cluster_z,
        registers_per_thread, static_shared_bytes, dynamic_shared_bytes, local_per_thread_bytes
    ) AS shape_id
FROM (
    -- A grid, a block, a number of registers or a size of shared memory that CUDA does not allow is unknown.
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
        graphId AS graph_id
    FROM (
        SELECT *, is_grid(gridX, gridY, gridZ) AS has_grid, is_block(blockX, blockY, blockZ) AS has_block
        FROM raw.CUPTI_ACTIVITY_KIND_KERNEL
    )
);
