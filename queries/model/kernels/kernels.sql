/*
description = "One row per kernel execution on a GPU."
[columns]
start_ns = "When the kernel started on the GPU, in the trace's time"
end_ns = "When the kernel ended on the GPU"
duration_ns = "end_ns - start_ns; 0 where it ends before it starts"
name = "The demangled name, with templates and parameters"
short_name = "The base name"
mangled_name = "The linker's name; NULL before nsys 2022"
device_id = "CUDA device number within the process"
stream_id = "CUDA stream, numbered by CUPTI"
context_id = "CUDA context"
process_id = "Operating system's process id"
correlation_id = "Joins with `api_calls`, together with process_id; shared by all kernels of one graph launch"
grid_x = "Blocks in the grid, x"
grid_y = "Blocks in the grid, y"
grid_z = "Blocks in the grid, z"
block_x = "Threads in a block, x"
block_y = "Threads in a block, y"
block_z = "Threads in a block, z"
cluster_x = "Blocks in a cluster, x; NULL before nsys 2026"
cluster_y = "Blocks in a cluster, y; NULL before nsys 2026"
cluster_z = "Blocks in a cluster, z; NULL before nsys 2026"
registers_per_thread = "Registers per thread"
static_shared_bytes = "Static shared memory per block"
dynamic_shared_bytes = "Dynamic shared memory per block"
shared_executed_bytes = "Shared memory configuration that the driver chose for the SM"
local_per_thread_bytes = "Local memory (spills, stack) per thread"
local_total_bytes = "Local memory reserved for the whole kernel"
launch_type = "regular, coop single device, coop multi device"
grid_id = "Unique number of the launched grid"
graph_node_id = "CUDA graph node that ran the kernel; NULL or 0 outside graphs"
graph_id = "CUDA graph; NULL before nsys 2026"
name_id = "Id of the name, in `kernel_names`"
*/
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
LEFT JOIN facts.enum_words AS t ON t.enum = 'launch type' AND t.id = k.launch_type_id;
