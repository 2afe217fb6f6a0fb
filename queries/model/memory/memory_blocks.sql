CREATE VIEW memory_blocks AS
WITH blocks AS (
    SELECT
        start_ns, operation, size_bytes, memory, address, device_id, process_id, correlation_id,
        lead(start_ns) OVER (
            PARTITION BY process_id, device_id, memory, address ORDER BY start_ns, operation
        ) AS end_ns
    FROM memory_events
    WHERE memory IN ('device', 'managed', 'pinned')
)
SELECT
    b.start_ns, b.end_ns, b.size_bytes, b.memory, b.address, b.device_id, b.process_id, c.thread_id,
    c.name AS function_name, b.correlation_id
FROM blocks AS b
LEFT JOIN api_calls AS c ON c.process_id = b.process_id AND c.correlation_id = b.correlation_id
WHERE b.operation = 'allocation';

COMMENT ON VIEW memory_blocks IS
    'One row per block of device, managed or pinned memory that nsys saw allocated, and when it was freed; only with '
    '--cuda-memory-usage=true.';
COMMENT ON COLUMN memory_blocks.start_ns IS 'When it was allocated; 0 for memory that existed before the capture';
COMMENT ON COLUMN memory_blocks.end_ns IS
    'When it was freed, or its address was allocated again; NULL if neither is recorded';
COMMENT ON COLUMN memory_blocks.size_bytes IS 'Its size';
COMMENT ON COLUMN memory_blocks.memory IS 'device, managed or pinned';
COMMENT ON COLUMN memory_blocks.address IS 'Its virtual address';
COMMENT ON COLUMN memory_blocks.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN memory_blocks.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN memory_blocks.thread_id IS 'Thread that allocated it; NULL if its call is not recorded';
COMMENT ON COLUMN memory_blocks.function_name IS 'The function that allocated it; NULL if its call is not recorded';
COMMENT ON COLUMN memory_blocks.correlation_id IS 'Joins with `api_calls`, together with process_id';
