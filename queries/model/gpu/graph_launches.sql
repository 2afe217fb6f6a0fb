/*
description = """One row per CUDA graph that ran as a whole (--cuda-graph-trace=graph, nsys's default): its kernels are
    not in the trace. With =node this is empty and `kernels` has them."""
[columns]
start_ns = "When the graph's first node started on the GPU"
end_ns = "When the last node of the graph ended"
graph_id = "The graph"
graph_exec_id = "The executable graph (cudaGraphExec_t): one instantiation of the graph"
stream_id = "CUDA stream that it was launched into"
correlation_id = "Joins with `api_calls` (cudaGraphLaunch), together with process_id"
*/
SELECT
    start AS start_ns,
    "end" AS end_ns,
    duration(start, "end") AS duration_ns,
    graphId AS graph_id,
    graphExecId AS graph_exec_id,
    deviceId AS device_id,
    streamId AS stream_id,
    contextId AS context_id,
    pid_of(globalPid) AS process_id,
    correlationId AS correlation_id
FROM raw.CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
