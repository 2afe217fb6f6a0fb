-- What is found about idle time. `facts.idle_time`: the gaps of `_idle_gaps`, cut where the profiler held the launching thread up.
-- `facts.idle_calls`: the parts of a thread's API calls that lie in its late gaps, before the launch call; no two of a GPU overlap.
CREATE TABLE IF NOT EXISTS facts.idle_time (
    gpu_id INTEGER, start_ns BIGINT, end_ns BIGINT, thread BIGINT, call_ns BIGINT, returned_ns BIGINT, is_copy BOOLEAN,
    host ENUM (
        'late', 'profiler', 'same launch call', 'not in the trace', 'launched before', 'launch call under way', 'blocking copies',
        'before the first operation', 'after the last operation'
    )
);

CREATE TABLE IF NOT EXISTS facts.idle_calls (
    gpu_id INTEGER, start_ns BIGINT, end_ns BIGINT, host ENUM ('sync calls', 'blocking copies', 'allocation', 'API calls')
);
