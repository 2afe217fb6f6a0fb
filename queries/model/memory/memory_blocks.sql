/*
description = """One row per block of device, managed or pinned memory that nsys saw allocated, and when it was freed;
    only with --cuda-memory-usage=true."""
[columns]
start_ns = "When the block was allocated; 0 for memory that existed before the capture"
end_ns = "When the block was freed, or its address was allocated again; NULL if neither is recorded"
size_bytes = "Size of the block"
memory = "device, managed or pinned"
address = "Virtual address of the block"
thread_id = "Thread that allocated it; NULL if its call is not recorded"
function_name = "The function that allocated it; NULL if its call is not recorded"
*/
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
