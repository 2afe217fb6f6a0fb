/*
description = """One row per kernel, with the API call that launched it; the call's columns are NULL when the capture
    does not have it."""
[columns]
start_ns = "When the kernel started on the GPU"
end_ns = "When the kernel ended on the GPU"
duration_ns = "The kernel's time"
name_id = "The kernel's name, in `strings` and `kernel_names`"
correlation_id = "Id that joins kernel and call, within the process"
graph_node_id = "CUDA graph node that ran the kernel; NULL or 0 outside graphs"
api_name = "The launch call"
call_group = "launch, or graph launch: one call for many kernels"
thread_id = "Thread that called"
api_start_ns = "When the call was entered"
api_end_ns = "When the call returned"
api_duration_ns = "Duration of the call on the host; 0 where it ends before it starts"
queue_ns = "Kernel start - call end: negative when the kernel started before the call had returned"
*/
-- One row per kernel: the kernels of a graph launch share one call. The join holds millions of calls in memory, so it
-- carries only their times and the id of their name.
SELECT
    k.start_ns, k.end_ns, k.duration_ns, k.name_id, k.device_id, k.stream_id, k.process_id, k.correlation_id,
    k.graph_node_id,
    n.name AS api_name,
    n.call_group,
    tid_of(a.globalTid) AS thread_id,
    a.start AS api_start_ns,
    a."end" AS api_end_ns,
    duration(a.start, a."end") AS api_duration_ns,
    k.start_ns - a."end" AS queue_ns
FROM kernel_events AS k
LEFT JOIN (
    SELECT start, "end", globalTid, correlationId, nameId
    FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME
    WHERE eventClass IS DISTINCT FROM 67
        AND nameId IN (SELECT name_id FROM _api_names WHERE call_group IN ('launch', 'graph launch'))
) AS a ON pid_of(a.globalTid) = k.process_id AND a.correlationId = k.correlation_id
LEFT JOIN _api_names AS n ON n.name_id = a.nameId;
