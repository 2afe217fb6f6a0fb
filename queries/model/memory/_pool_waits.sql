/*
description = """What the stream-ordered memory pools cost in steady steps: a pool whose release threshold is 0 gives
    its unused memory back in the next synchronization, and maps memory again in the next allocations. One row."""
[columns]
tail_ns = "How long synchronizations after frees lasted beyond the work that they waited for, in all steady steps"
waits = "Synchronizations after frees"
alloc_ns = "Mean duration of an allocation of such a pool"
*/
WITH pool_calls AS (
    SELECT a.process_id, a.thread_id, a.call_group, a.start_ns, a.end_ns
    FROM outer_api_calls AS a
    ASOF JOIN (FROM steps WHERE phase = 'steady') AS s ON s.process_id = a.process_id AND s.host_start_ns <= a.start_ns
    WHERE a.start_ns < s.host_end_ns
        AND (a.call_group = 'sync' OR regexp_matches(a.name, '^cu(da)?(Malloc|MemAlloc|Free|MemFree).*Async$'))
        AND EXISTS (FROM _call_counts WHERE call_group = 'free' AND name LIKE '%Async')
),
-- Synchronizations after frees, each with the last end of the work that began before its own end.
pool_waits AS (
    SELECT w.start_ns, w.end_ns, max(greatest(r.end_ns, coalesce(r.running_end_ns, r.end_ns))) AS done_ns
    FROM (
        SELECT * FROM pool_calls
        QUALIFY call_group = 'sync'
            AND lag(call_group) OVER (PARTITION BY process_id, thread_id ORDER BY start_ns) = 'free'
    ) AS w
    ASOF JOIN _gpu_reach AS r ON r.start_ns <= w.end_ns
    GROUP BY ALL
)
SELECT
    sum(end_ns - greatest(start_ns, least(done_ns, end_ns)))::BIGINT AS tail_ns,
    count(*) AS waits,
    (SELECT avg(end_ns - start_ns) FROM pool_calls WHERE call_group = 'alloc') AS alloc_ns
FROM pool_waits;
