CREATE VIEW memcpys AS
SELECT
    m.start AS start_ns,
    m."end" AS end_ns,
    duration(m.start, m."end") AS duration_ns,
    coalesce(k.word, 'kind ' || m.copyKind) AS copy_kind,
    m.bytes AS size_bytes,
    coalesce(s.word, 'memory ' || m.srcKind) AS source_memory,
    coalesce(d.word, 'memory ' || m.dstKind) AS target_memory,
    m.deviceId AS device_id,
    m.streamId AS stream_id,
    m.contextId AS context_id,
    pid_of(m.globalPid) AS process_id,
    m.correlationId AS correlation_id,
    m.srcDeviceId AS source_device_id,
    m.dstDeviceId AS target_device_id,
    CASE WHEN k.word LIKE 'UM %' THEN coalesce(u.word, 'unknown') END AS migration_cause,
    m.graphNodeId AS graph_node_id,
    coalesce(m.copyCount, 1) AS copy_count
FROM raw.CUPTI_ACTIVITY_KIND_MEMCPY AS m
LEFT JOIN _enum_words AS k ON k.enum = 'copy kind' AND k.id = m.copyKind
LEFT JOIN _enum_words AS s ON s.enum = 'memory' AND s.id = m.srcKind
LEFT JOIN _enum_words AS d ON d.enum = 'memory' AND d.id = m.dstKind
LEFT JOIN _enum_words AS u ON u.enum = 'migration' AND u.id = m.migrationCause;

COMMENT ON VIEW memcpys IS 'One row per memory copy that the GPU executed.';
COMMENT ON COLUMN memcpys.start_ns IS 'When the copy started on the GPU';
COMMENT ON COLUMN memcpys.end_ns IS 'When the copy ended on the GPU';
COMMENT ON COLUMN memcpys.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN memcpys.copy_kind IS 'H2D, D2H, D2D, P2P, H2H, to and from arrays (A), UM for unified memory';
COMMENT ON COLUMN memcpys.size_bytes IS 'Bytes copied';
COMMENT ON COLUMN memcpys.source_memory IS 'Memory that was read: pageable, pinned, device, array, managed';
COMMENT ON COLUMN memcpys.target_memory IS 'Memory that was written: pageable, pinned, device, array, managed';
COMMENT ON COLUMN memcpys.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN memcpys.stream_id IS 'CUDA stream, numbered by CUPTI';
COMMENT ON COLUMN memcpys.context_id IS 'CUDA context';
COMMENT ON COLUMN memcpys.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN memcpys.correlation_id IS 'Joins with `api_calls`, together with process_id';
COMMENT ON COLUMN memcpys.source_device_id IS 'Device that was read';
COMMENT ON COLUMN memcpys.target_device_id IS 'Device that was written';
COMMENT ON COLUMN memcpys.migration_cause IS
    'Why unified memory moved: page fault, prefetch (requested by the program), speculative (by the driver), '
    'eviction, access counters, unknown; NULL for all other copies';
COMMENT ON COLUMN memcpys.graph_node_id IS 'CUDA graph node that ran the copy; NULL or 0 outside graphs';
COMMENT ON COLUMN memcpys.copy_count IS 'Copies in this row: more than 1 for batched copies';
