/*
description = """Everything that kept the GPUs in scope busy, including what a scope leaves out (other NVTX ranges,
    processes, streams, times): when a GPU was idle follows from this."""
[columns]
start_ns = "When the operation started on the GPU"
end_ns = "When the operation ended; never before start_ns"
name_id = "A kernel's name, in `strings` and `kernel_names`; NULL for the others"
label = "The name of other operations: H2D copy, memset, graph 4"
correlation_id = "Joins with `_host_activity`, together with process_id"
copy_kind = "H2D, D2H, D2D, …: the direction of a copy; NULL for the others"
*/
-- Operations outside the scope keep a GPU busy all the same, so this view reads the unscoped trace: all work of the
-- GPUs that are in scope.
WITH ops AS (
    SELECT
        start, "end", deviceId, streamId, globalPid, correlationId, demangledName AS name_id,
        NULL::VARCHAR AS copy_kind, NULL::VARCHAR AS label
    FROM unscoped.CUPTI_ACTIVITY_KIND_KERNEL
    UNION ALL
    SELECT
        m.start, m."end", m.deviceId, m.streamId, m.globalPid, m.correlationId, NULL,
        coalesce(k.word, 'kind ' || m.copyKind) AS direction, direction || ' copy'
    FROM unscoped.CUPTI_ACTIVITY_KIND_MEMCPY AS m
    LEFT JOIN facts.enum_words AS k ON k.enum = 'copy kind' AND k.id = m.copyKind
    UNION ALL
    SELECT start, "end", deviceId, streamId, globalPid, correlationId, NULL, NULL, 'memset'
    FROM unscoped.CUPTI_ACTIVITY_KIND_MEMSET
    UNION ALL
    SELECT start, "end", deviceId, streamId, globalPid, correlationId, NULL, NULL, 'graph ' || graphId
    FROM unscoped.CUPTI_ACTIVITY_KIND_GRAPH_TRACE
)
SELECT
    gpu_of(pid_of(globalPid), deviceId) AS gpu_id,
    start AS start_ns,
    greatest(start, "end") AS end_ns,
    name_id,
    label,
    pid_of(globalPid) AS process_id,
    streamId AS stream_id,
    correlationId AS correlation_id,
    copy_kind
FROM ops
WHERE is_gpu_in_scope(gpu_id);
