/*
description = """The GPU work that each thread launched between consecutive instants at which one of its ranges opens or
    closes; only where there is any. A range contains the pieces that begin in it."""
stored = true
[columns]
thread = "The thread, as thread_of gives it"
start_ns = "When the piece begins"
gpu_ns = "Sum of the durations of what was launched"
kernels = "Number of kernels"
first_ns = "When the first operation starts"
last_ns = "When the last one ends"
*/
-- Each thread's time is cut at every instant at which a range opens or closes, and its GPU work is summed by piece. A
-- piece is entirely inside or entirely outside of every range.
WITH ranges AS (
    SELECT thread_of(thread_id, process_id) AS thread, start_ns, greatest(start_ns, end_ns) AS close_ns, end_ns
    FROM nvtx_ranges
),
pieces AS (
    SELECT thread, start_ns FROM ranges UNION SELECT thread, close_ns FROM ranges WHERE end_ns IS NOT NULL
),
operations AS (
    SELECT o.start_ns, o.end_ns, o.duration_ns, o.is_kernel, a.thread, a.start_ns AS api_start_ns
    FROM (
        SELECT start_ns, end_ns, duration_ns, kind = 'kernel' AS is_kernel, process_id, correlation_id FROM gpu_ops
    ) AS o
    JOIN (
        SELECT thread_of(thread_id, process_id) AS thread, start_ns, process_id, correlation_id
        FROM api_calls
        WHERE call_group IN ('launch', 'graph launch', 'copy', 'memset')
    ) AS a ON a.process_id = o.process_id AND a.correlation_id = o.correlation_id
)
SELECT
    p.thread,
    p.start_ns,
    sum(l.duration_ns)::BIGINT AS gpu_ns,
    count(*) FILTER (WHERE l.is_kernel) AS kernels,
    min(l.start_ns) AS first_ns,
    max(l.end_ns) AS last_ns
FROM operations AS l
ASOF JOIN pieces AS p ON p.thread = l.thread AND p.start_ns <= l.api_start_ns
GROUP BY p.thread, p.start_ns;
