CREATE VIEW memsets AS
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
LEFT JOIN _enum_words AS k ON k.enum = 'memory' AND k.id = m.memKind;

COMMENT ON VIEW memsets IS 'One row per memset that the GPU executed.';
COMMENT ON COLUMN memsets.start_ns IS 'When the memset started on the GPU';
COMMENT ON COLUMN memsets.end_ns IS 'When the memset ended on the GPU';
COMMENT ON COLUMN memsets.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN memsets.size_bytes IS 'Bytes set';
COMMENT ON COLUMN memsets.value IS 'The value they were set to';
COMMENT ON COLUMN memsets.target_memory IS 'Memory that was written: device, managed, pinned …';
COMMENT ON COLUMN memsets.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN memsets.stream_id IS 'CUDA stream, numbered by CUPTI';
COMMENT ON COLUMN memsets.context_id IS 'CUDA context';
COMMENT ON COLUMN memsets.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN memsets.correlation_id IS 'Joins with `api_calls`, together with process_id';
COMMENT ON COLUMN memsets.graph_node_id IS 'CUDA graph node that ran the memset; NULL or 0 outside graphs';
