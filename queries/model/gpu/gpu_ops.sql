/*
description = "Everything that keeps a GPU busy: kernels, copies, memsets and whole-graph launches, one row each."
[columns]
kind = "kernel, copy, memset or graph"
start_ns = "When the operation started on the GPU"
end_ns = "When the operation ended on the GPU"
duration_ns = "end_ns - start_ns"
name_id = "A kernel's name, in `strings` and `kernel_names`; NULL for the others"
label = "The name of other operations: H2D copy, memset, graph 4"
size_bytes = "Bytes copied or set"
graph_node_id = "CUDA graph node that ran it; NULL or 0 outside graphs"
*/
-- Half of the facts read this: the views `kernel_events` and `memsets` have more columns, which take time to plan.
SELECT 'kernel' AS kind, start AS start_ns, "end" AS end_ns, duration(start, "end") AS duration_ns,
    demangledName AS name_id, NULL::VARCHAR AS label, NULL::BIGINT AS size_bytes, deviceId AS device_id,
    streamId AS stream_id, pid_of(globalPid) AS process_id, correlationId AS correlation_id,
    graphNodeId AS graph_node_id
FROM raw.CUPTI_ACTIVITY_KIND_KERNEL
UNION ALL
SELECT 'copy', start_ns, end_ns, duration_ns, NULL, copy_kind || ' copy', size_bytes,
    device_id, stream_id, process_id, correlation_id, graph_node_id
FROM memcpys
UNION ALL
SELECT 'memset', start, "end", duration(start, "end"), NULL, 'memset', bytes,
    deviceId, streamId, pid_of(globalPid), correlationId, graphNodeId
FROM raw.CUPTI_ACTIVITY_KIND_MEMSET
UNION ALL
SELECT 'graph', start_ns, end_ns, duration_ns, NULL, 'graph ' || graph_id, NULL,
    device_id, stream_id, process_id, correlation_id, NULL
FROM graph_launches;
