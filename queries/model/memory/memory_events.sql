CREATE VIEW memory_events AS
SELECT
    m.start AS start_ns,
    coalesce(o.word, 'event ' || m.memoryOperationType) AS operation,
    m.bytes AS size_bytes,
    m.address,
    coalesce(k.word, 'memory ' || m.memKind) AS memory,
    m.name,
    m.localMemoryPoolAddress AS pool_address,
    m.localMemoryPoolSize AS pool_bytes,
    m.localMemoryPoolUtilizedSize AS pool_used_bytes,
    m.deviceId AS device_id,
    m.streamId AS stream_id,
    m.contextId AS context_id,
    pid_of(m.globalPid) AS process_id,
    m.correlationId AS correlation_id
FROM raw.CUDA_GPU_MEMORY_USAGE_EVENTS AS m
LEFT JOIN _enum_words AS o ON o.enum = 'memory event' AND o.id = m.memoryOperationType
LEFT JOIN _enum_words AS k ON k.enum = 'memory' AND k.id = m.memKind;

COMMENT ON VIEW memory_events IS
    'One row per allocation or deallocation that nsys saw; only with --cuda-memory-usage=true.';
COMMENT ON COLUMN memory_events.start_ns IS 'When it happened; 0 for memory that existed before the capture';
COMMENT ON COLUMN memory_events.operation IS 'allocation or deallocation';
COMMENT ON COLUMN memory_events.size_bytes IS 'Bytes allocated or freed';
COMMENT ON COLUMN memory_events.address IS 'Its virtual address';
COMMENT ON COLUMN memory_events.memory IS 'device, pinned, managed, array, device static …';
COMMENT ON COLUMN memory_events.name IS 'Variable''s name, for static memory';
COMMENT ON COLUMN memory_events.pool_address IS 'Memory pool that it came from';
COMMENT ON COLUMN memory_events.pool_bytes IS 'The pool''s size after the event';
COMMENT ON COLUMN memory_events.pool_used_bytes IS 'The part of the pool in use';
COMMENT ON COLUMN memory_events.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN memory_events.stream_id IS 'CUDA stream, for stream-ordered allocation';
COMMENT ON COLUMN memory_events.context_id IS 'CUDA context';
COMMENT ON COLUMN memory_events.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN memory_events.correlation_id IS 'Joins with `api_calls`, together with process_id';
