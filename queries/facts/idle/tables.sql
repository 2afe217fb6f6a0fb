-- What is found about idle time. `facts.idle_time`: when each GPU was idle over the wall time of the whole trace, with
-- the launch call of the operation that ended it, cut where the profiler held the launching thread up; of a late one
-- how long its thread was in API calls before the launch call: that wait, copy, allocate, or do all else.
-- `facts.idle_calls`: these calls, no two of a GPU overlap; gap_ns is when the gap began.
CREATE TABLE IF NOT EXISTS facts.idle_time (
    gpu_id INTEGER, start_ns BIGINT, end_ns BIGINT, thread BIGINT, call_ns BIGINT, returned_ns BIGINT, is_copy BOOLEAN,
    host ENUM (
        'API calls', 'CPU work', 'after the last operation', 'allocation', 'before the first operation',
        'blocking copies', 'late', 'launch call', 'launch call under way',
        'launch latency', 'launched before', 'managed memory', 'not in the trace', 'profiler', 'same launch call',
        'sync calls'
    ),
    sync_ns BIGINT, copy_ns BIGINT, alloc_ns BIGINT, api_ns BIGINT
);

CREATE TABLE IF NOT EXISTS facts.idle_calls AS
SELECT gpu_id, start_ns AS gap_ns, start_ns, end_ns, host FROM facts.idle_time LIMIT 0;
