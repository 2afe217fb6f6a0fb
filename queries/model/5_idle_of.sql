-- What the idle time in pieces of gaps is owed to (a table or view like `idle_gaps`, cut to windows, with window_ns): one row
-- per GPU, window, cause and host; `gpu_idle` says what the words mean.
--
-- Each nanosecond of a late piece is what the launching thread did then; up to the call, F(t), the time that the thread has
-- spent in calls of a kind up to t, tells how much that was, by two lookups and without comparing intervals.
CREATE MACRO idle_of(gap_pieces) AS TABLE
WITH held AS MATERIALIZED (
    SELECT thread, greatest(start_ns, coalesce(reached_ns, start_ns)) AS start_ns, end_ns
    FROM (
        SELECT process_id << 24 | thread_id AS thread, start_ns, end_ns, max(end_ns) OVER (
            PARTITION BY process_id << 24 | thread_id ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
        FROM host_activity
        WHERE kind = 'profiler'
    )
    WHERE end_ns > greatest(start_ns, coalesce(reached_ns, start_ns))
),
turns AS (
    SELECT thread, start_ns, end_ns, true AS is_held FROM held
    UNION ALL
    SELECT thread, end_ns, coalesce(lead(start_ns) OVER (PARTITION BY thread ORDER BY start_ns), 9223372036854775807), false
    FROM held
    UNION ALL
    SELECT thread, -9223372036854775807, min(start_ns), false FROM held GROUP BY thread
),
slices AS MATERIALIZED (
    SELECT DISTINCT unnest(range(start_ns // 1000000, end_ns // 1000000 + 1)) AS slice FROM held
),
-- Few gaps touch the profiler's times: none but those in the same slice of a millisecond, or longer than one.
pieces AS MATERIALIZED (
    SELECT
        gpu_id, window_ns, thread, start_ns, end_ns, call_ns, returned_ns, is_copy, host,
        host = 'late' AND thread IN (SELECT thread FROM held)
            AND (end_ns - start_ns >= 1000000 OR start_ns // 1000000 IN (FROM slices) OR end_ns // 1000000 IN (FROM slices)) AS is_near
    FROM query_table(gap_pieces)
),
near AS MATERIALIZED (
    SELECT p.*, t.end_ns AS turn_end_ns, t.is_held
    FROM pieces AS p ASOF JOIN turns AS t ON t.thread = p.thread AND t.start_ns <= p.start_ns
    WHERE p.is_near
),
free AS (
    SELECT gpu_id, window_ns, thread, start_ns, end_ns, call_ns, returned_ns, is_copy, false AS is_held
    FROM pieces
    WHERE host = 'late' AND NOT is_near
    UNION ALL
    SELECT gpu_id, window_ns, thread, start_ns, least(end_ns, turn_end_ns), call_ns, returned_ns, is_copy, is_held FROM near
    UNION ALL
    SELECT p.gpu_id, p.window_ns, p.thread, t.start_ns, least(p.end_ns, t.end_ns), p.call_ns, p.returned_ns, p.is_copy, t.is_held
    FROM near AS p
    JOIN turns AS t ON t.thread = p.thread AND t.start_ns > p.start_ns AND t.start_ns < p.end_ns
    WHERE p.end_ns > p.turn_end_ns
),
-- The calls of each thread that are not inside others, with the time spent in calls of each kind up to their end.
outer_calls AS (
    SELECT
        thread, start_ns, end_ns, host,
        -- Sums of whole numbers this small are exact in DOUBLE, and half as wide as those of BIGINT.
        sum(CASE host WHEN 'sync' THEN (end_ns - start_ns)::DOUBLE ELSE 0 END) OVER along AS sync_ns,
        sum(CASE host WHEN 'copy' THEN (end_ns - start_ns)::DOUBLE ELSE 0 END) OVER along AS copy_ns,
        sum(CASE host WHEN 'alloc' THEN (end_ns - start_ns)::DOUBLE ELSE 0 END) OVER along AS alloc_ns,
        sum((end_ns - start_ns)::DOUBLE) OVER along AS api_ns
    FROM (
        SELECT
            c.thread, c.end_ns, n.host,
            greatest(c.start_ns, coalesce(max(c.end_ns) OVER (
                PARTITION BY c.thread ORDER BY c.start_ns, c.end_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), c.start_ns)) AS start_ns
        FROM (SELECT process_id << 24 | thread_id AS thread, start_ns, end_ns, name_id FROM host_activity WHERE kind = 'api') AS c
        LEFT JOIN (
            SELECT name_id, CASE
                WHEN call_group = 'sync' THEN 'sync'
                WHEN call_group = 'copy' AND name NOT LIKE '%Async%' THEN 'copy'
                WHEN call_group IN ('alloc', 'free') THEN 'alloc'
                ELSE 'other'
            END::ENUM ('sync', 'copy', 'alloc', 'other') AS host
            FROM api_names
        ) AS n USING (name_id)
    )
    WHERE end_ns > start_ns
    WINDOW along AS (PARTITION BY thread ORDER BY start_ns ROWS UNBOUNDED PRECEDING)
),
-- Where the launching thread's time before the call begins, and where it ends.
instants AS (
    SELECT gpu_id, window_ns, thread, unnest([start_ns, least(call_ns, end_ns)]) AS at_ns, unnest([-1, 1]) AS sign
    FROM free
    WHERE call_ns > start_ns AND NOT is_held
),
-- What is left of the last call at the instant has not been spent yet.
reached_calls AS (
    SELECT
        i.gpu_id, i.window_ns, i.sign, i.at_ns, c.host, c.sync_ns, c.copy_ns, c.alloc_ns, c.api_ns,
        greatest(c.end_ns - i.at_ns, 0) AS left_ns
    FROM instants AS i
    ASOF LEFT JOIN outer_calls AS c ON c.thread = i.thread AND c.start_ns <= i.at_ns
),
spent AS (
    SELECT
        gpu_id, window_ns, sum(sign * at_ns) AS all_ns, coalesce(sum(sign * (api_ns::BIGINT - left_ns)), 0) AS api_ns,
        coalesce(sum(sign * (sync_ns::BIGINT - CASE host WHEN 'sync' THEN left_ns ELSE 0 END)), 0) AS sync_ns,
        coalesce(sum(sign * (copy_ns::BIGINT - CASE host WHEN 'copy' THEN left_ns ELSE 0 END)), 0) AS copy_ns,
        coalesce(sum(sign * (alloc_ns::BIGINT - CASE host WHEN 'alloc' THEN left_ns ELSE 0 END)), 0) AS alloc_ns
    FROM reached_calls
    GROUP BY gpu_id, window_ns
),
classed AS (
    SELECT gpu_id, window_ns, host, end_ns - start_ns AS idle_ns FROM pieces WHERE host <> 'late'
    UNION ALL
    SELECT gpu_id, window_ns, 'profiler', end_ns - start_ns FROM free WHERE is_held
    UNION ALL
    SELECT gpu_id, window_ns, CASE WHEN is_copy THEN 'blocking copies' ELSE 'launch call' END,
        least(returned_ns, end_ns) - greatest(call_ns, start_ns)
    FROM free WHERE NOT is_held
    UNION ALL
    SELECT gpu_id, window_ns, 'launch latency', end_ns - greatest(returned_ns, start_ns) FROM free WHERE NOT is_held
    UNION ALL
    SELECT gpu_id, window_ns,
        unnest(['sync calls', 'blocking copies', 'allocation', 'API calls', 'CPU work']),
        unnest([sync_ns, copy_ns, alloc_ns, api_ns - sync_ns - copy_ns - alloc_ns, all_ns - api_ns])
    FROM spent
)
SELECT
    gpu_id,
    window_ns,
    CASE
        WHEN host IN ('before the first operation', 'after the last operation') THEN 'edge'
        WHEN host IN ('same launch call', 'launched before', 'launch call under way') THEN 'dependency'
        WHEN host IN ('sync calls', 'blocking copies') THEN 'blocked'
        WHEN host IN ('allocation', 'profiler') THEN host
        WHEN host = 'not in the trace' THEN 'unknown'
        ELSE 'starved'
    END AS cause,
    host::VARCHAR AS host,
    sum(idle_ns)::BIGINT AS idle_ns
FROM classed
WHERE idle_ns > 0
GROUP BY ALL;
