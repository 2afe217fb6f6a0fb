/*
description = "One row per kernel execution on a GPU."
columns_of = "kernel_events"
[columns]
name = "The demangled name, with templates and parameters"
short_name = "The base name"
mangled_name = "The linker's name; NULL before nsys 2022"
launch_type = "regular, coop single device, coop multi device"
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
