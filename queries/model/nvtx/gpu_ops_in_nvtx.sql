/*
description = """GPU operations with the innermost NVTX range that was open on the launching thread when the launch call
    began: not what overlaps them on the GPU."""
[columns]
kind = "kernel, copy, memset or graph"
start_ns = "When the operation started on the GPU"
end_ns = "When the operation ended on the GPU"
name_id = "A kernel's name, in `strings` and `kernel_names`"
label = "What other operations are called"
size_bytes = "Bytes copied or set"
thread_id = "Thread that launched it"
api_start_ns = "When the launch call began"
range_id = "The innermost range, as in `nvtx_nesting`; NULL outside all ranges"
graph_node_id = "CUDA graph node that ran it; NULL or 0 outside graphs"
*/
SELECT
    o.kind, o.start_ns, o.end_ns, o.duration_ns, o.name_id, o.label, o.size_bytes, o.device_id, o.stream_id,
    o.process_id, o.correlation_id,
    a.thread_id,
    a.start_ns AS api_start_ns,
    p.range_id,
    o.graph_node_id
FROM gpu_ops AS o
LEFT JOIN api_calls AS a
    ON a.process_id = o.process_id AND a.correlation_id = o.correlation_id
    AND a.call_group IN ('launch', 'graph launch', 'copy', 'memset')
ASOF LEFT JOIN nvtx_places AS p
    ON p.process_id = a.process_id AND p.thread_id = a.thread_id AND p.start_ns <= a.start_ns;
