-- The causes of idle time: of the tables `facts.idle_time` and `facts.idle_calls` (see queries/facts/idle), cut to windows,
-- with window_ns. One row per GPU, window, cause and host; `gpu_idle` says what the words mean. Of a late gap, what is before
-- the launch call is CPU work but for the calls in it.
CREATE MACRO _idle_of(times, calls) AS TABLE
WITH late AS (
    SELECT
        gpu_id, window_ns, is_copy,
        sum(greatest(0, least(call_ns, end_ns) - start_ns)) AS before_ns,
        sum(greatest(0, least(returned_ns, end_ns) - greatest(call_ns, start_ns))) AS call_ns,
        sum(greatest(0, end_ns - greatest(call_ns, returned_ns, start_ns))) AS latency_ns
    FROM query_table(times)
    WHERE host = 'late'
    GROUP BY ALL
),
classed AS (
    SELECT gpu_id, window_ns, host::VARCHAR AS host, sum(end_ns - start_ns) AS idle_ns
    FROM query_table(times)
    WHERE host <> 'late'
    GROUP BY ALL
    UNION ALL
    SELECT gpu_id, window_ns,
        unnest(['CPU work', CASE WHEN is_copy THEN 'blocking copies' ELSE 'launch call' END, 'launch latency']),
        unnest([before_ns, call_ns, latency_ns])
    FROM late
    UNION ALL
    SELECT gpu_id, window_ns, unnest([host::VARCHAR, 'CPU work']), unnest([call_ns, -call_ns])
    FROM (SELECT gpu_id, window_ns, host, sum(end_ns - start_ns) AS call_ns FROM query_table(calls) GROUP BY ALL)
)
SELECT
    gpu_id::BIGINT AS gpu_id,
    window_ns,
    CASE
        WHEN host IN ('before the first operation', 'after the last operation') THEN 'edge'
        WHEN host IN ('same launch call', 'launched before', 'launch call under way') THEN 'dependency'
        WHEN host IN ('sync calls', 'blocking copies') THEN 'blocked'
        WHEN host IN ('allocation', 'profiler') THEN host
        WHEN host = 'not in the trace' THEN 'unknown'
        ELSE 'starved'
    END AS cause,
    host,
    sum(idle_ns)::BIGINT AS idle_ns
FROM classed
GROUP BY ALL
HAVING sum(idle_ns) > 0;
