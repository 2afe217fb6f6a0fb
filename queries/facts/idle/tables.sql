/* progress = "idle time" */
-- Gap, held gap, late launch and charge, for one GPU and the thread that launches its operations:
--
--   thread  ----[ wait for kernel A          ]-- CPU work --[ launch call of B ]--------------
--   GPU     =========[ kernel A    ].................................[ kernel B      ]========
--               |                  |         |              |        |
--               t0                 t1        t2             t3       t4
--
--   gap                            |<------------------------------->|
--   in the wait                    |<------->|
--   charge of the wait             |<------------------------->|
--
-- gap: the GPU is idle between two operations, t1 to t4.
-- held gap: a call that blocked the launching thread (a wait, an allocation or a free) ends in the gap, at t2, or is
-- still in progress when the gap ends.
-- late launch: the launch call of the operation that ends the gap begins after the gap did, t3 after t1. A launch call
-- that begins before t1 is in time: then the gap is launch latency, or has another cause than the host.
-- charge: the idle time that is attributed to a wait. First the part of the gap that lies in the wait, t1 to t2. Then
-- the time that the GPU starved after it, from t2 on, at most for as long as the wait blocked the thread before the
-- gap, t0 to t1. An allocation or a free is only charged the part of the gap that it covers.
--
-- `facts.idle_time`: when each GPU was idle over the wall time of the unscoped trace, with the launch call of the
-- operation that ends each gap, cut where the profiler blocked the launching thread. For late gaps it has the time that
-- the thread spent in API calls before the launch call, by kind: calls that wait, copy, allocate, or do anything else.
-- `facts.idle_calls`: these calls, which do not overlap for a GPU. gap_ns is when the gap began.
CREATE TABLE IF NOT EXISTS facts.idle_time (
    gpu_id INTEGER, start_ns BIGINT, end_ns BIGINT, thread BIGINT, call_ns BIGINT, returned_ns BIGINT, is_copy BOOLEAN,
    host ENUM (
        'API calls', 'CPU work', 'after the last operation', 'allocation', 'before the first operation',
        'blocking copies', 'late', 'launch call', 'launch call in progress',
        'launch latency', 'launched before', 'managed memory', 'not in the trace', 'profiler', 'same launch call',
        'sync calls'
    ),
    sync_ns BIGINT, copy_ns BIGINT, alloc_ns BIGINT, api_ns BIGINT
);

CREATE TABLE IF NOT EXISTS facts.idle_calls AS
SELECT gpu_id, start_ns AS gap_ns, start_ns, end_ns, host FROM facts.idle_time LIMIT 0;
