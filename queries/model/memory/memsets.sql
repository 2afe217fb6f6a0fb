/*
description = "One row per memset that the GPU executed."
[columns]
start_ns = "When the memset started on the GPU"
end_ns = "When the memset ended on the GPU"
size_bytes = "Bytes set"
value = "The value they were set to"
target_memory = "Memory that was written: device, managed, pinned …"
graph_node_id = "CUDA graph node that ran the memset; NULL or 0 outside graphs"
*/
SELECT
    m.start AS start_ns,
    m."end" AS end_ns,
    duration(m.start, m."end") AS duration_ns,
    m.bytes AS size_bytes,
    m.value,
    coalesce(k.word, 'memory ' || m.memKind) AS target_memory,
    m.deviceId AS device_id,
    m.streamId AS stream_id,
    m.contextId AS context_id,
    pid_of(m.globalPid) AS process_id,
    m.correlationId AS correlation_id,
    m.graphNodeId AS graph_node_id
FROM raw.CUPTI_ACTIVITY_KIND_MEMSET AS m
LEFT JOIN facts.enum_words AS k ON k.enum = 'memory' AND k.id = m.memKind;
