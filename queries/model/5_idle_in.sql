-- The idle time of each GPU within windows (a table or view with start_ns and end_ns, disjoint), and what each nanosecond of
-- it is owed to: one row per GPU, window (window_ns is its start), cause and host; `gpu_idle` says what the words mean.
--
-- A gap belongs to the operation that ends it. If its launch call began before the gap, the operation was launched in time.
-- Else the host was late, and each nanosecond is what the launching thread did then; up to the call, F(t), the time that the
-- thread has spent in calls of a kind up to t, tells how much that was, by two lookups and without comparing intervals.
CREATE MACRO idle_in(windows) AS TABLE
WITH reach AS (
    SELECT
        gpu_id, start_ns, process_id, correlation_id,
        max(end_ns) OVER (
            PARTITION BY gpu_id ORDER BY start_ns, correlation_id, process_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns,
        lag(correlation_id) OVER along = correlation_id AND lag(process_id) OVER along = process_id AS is_same_call
    FROM gpu_work
    WINDOW along AS (PARTITION BY gpu_id ORDER BY start_ns, correlation_id, process_id)
),
-- One number for a thread, and one for a call, take half the time of two.
calls AS (
    SELECT
        process_id << 24 | thread_id AS thread, process_id << 32 | correlation_id AS call, start_ns, end_ns, name_id, kind
    FROM host_activity
),
launch_calls AS (
    SELECT call, min(thread) AS thread, min(start_ns) AS call_ns, max(end_ns) AS returned_ns, min(name_id) AS name_id
    FROM calls
    WHERE kind = 'api'
    GROUP BY call
),
between_operations AS (
    SELECT
        g.gpu_id, g.reached_ns AS start_ns, g.start_ns AS end_ns, c.thread, c.call_ns, c.returned_ns,
        c.name_id IN (SELECT name_id FROM api_names WHERE call_group = 'copy' AND name NOT LIKE '%Async%') AS is_copy,
        CASE
            WHEN g.is_same_call THEN 'same launch call'
            WHEN c.call_ns IS NULL THEN 'not in the trace'
            WHEN c.returned_ns <= g.reached_ns THEN 'launched before'
            WHEN c.call_ns < g.reached_ns THEN 'launch call under way'
            ELSE 'late'
        END AS host
    FROM reach AS g
    LEFT JOIN launch_calls AS c ON c.call = g.process_id << 32 | g.correlation_id
    WHERE g.start_ns > g.reached_ns
),
edges AS (
    SELECT gpu_id, unnest([first_ns, end_ns]) AS start_ns, unnest([start_ns, last_ns]) AS end_ns,
        unnest(['before the first operation', 'after the last operation']) AS host
    FROM (SELECT gpu_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM gpu_work GROUP BY gpu_id)
    CROSS JOIN (SELECT min(start_ns) AS first_ns, max(end_ns) AS last_ns FROM query_table(windows))
),
gaps AS (
    FROM between_operations
    UNION ALL BY NAME
    FROM edges WHERE end_ns > start_ns
),
pieces AS MATERIALIZED (
    FROM cut_to('gaps', windows)
),
-- When the profiler held a thread up (operations that overlap count once), and when it did not.
held AS MATERIALIZED (
    SELECT thread, greatest(start_ns, coalesce(reached_ns, start_ns)) AS start_ns, end_ns
    FROM (
        SELECT thread, start_ns, end_ns, max(end_ns) OVER (
            PARTITION BY thread ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
        FROM calls
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
-- Few gaps touch the profiler's times; those that are in the same slice of a millisecond are compared with them.
slices AS MATERIALIZED (
    SELECT DISTINCT unnest(range(start_ns // 1000000, end_ns // 1000000 + 1)) AS slice FROM held
),
late AS (
    SELECT
        *, (end_ns - start_ns >= 1000000 OR start_ns // 1000000 IN (FROM slices) OR end_ns // 1000000 IN (FROM slices))
            AND thread IN (SELECT thread FROM held) AS is_near
    FROM pieces WHERE host = 'late'
),
free AS MATERIALIZED (
    SELECT gpu_id, window_ns, thread, start_ns, end_ns, call_ns, returned_ns, is_copy, false AS is_held
    FROM late
    WHERE NOT is_near
    UNION ALL
    SELECT
        p.gpu_id, p.window_ns, p.thread, greatest(p.start_ns, t.start_ns), least(p.end_ns, t.end_ns),
        p.call_ns, p.returned_ns, p.is_copy, t.is_held
    FROM late AS p
    JOIN turns AS t ON t.thread = p.thread AND t.start_ns < p.end_ns AND t.end_ns > p.start_ns
    WHERE p.is_near
),
-- The calls of each thread that are not inside others, with the time spent in calls of each kind up to their end.
outer_calls AS (
    SELECT
        thread, start_ns, end_ns, is_sync, is_copy, is_alloc,
        -- Sums of whole numbers this small are exact in DOUBLE, and half as wide as those of BIGINT.
        sum(CASE WHEN is_sync THEN (end_ns - start_ns)::DOUBLE ELSE 0 END) OVER along AS sync_ns,
        sum(CASE WHEN is_copy THEN (end_ns - start_ns)::DOUBLE ELSE 0 END) OVER along AS copy_ns,
        sum(CASE WHEN is_alloc THEN (end_ns - start_ns)::DOUBLE ELSE 0 END) OVER along AS alloc_ns,
        sum((end_ns - start_ns)::DOUBLE) OVER along AS api_ns
    FROM (
        SELECT
            c.thread, c.end_ns, n.is_sync, n.is_copy, n.is_alloc,
            greatest(c.start_ns, coalesce(max(c.end_ns) OVER (
                PARTITION BY c.thread ORDER BY c.start_ns, c.end_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), c.start_ns)) AS start_ns
        FROM calls AS c
        LEFT JOIN (
            SELECT
                name_id, call_group = 'sync' AS is_sync, call_group = 'copy' AND name NOT LIKE '%Async%' AS is_copy,
                call_group IN ('alloc', 'free') AS is_alloc
            FROM api_names
        ) AS n USING (name_id)
        WHERE c.kind = 'api'
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
        i.gpu_id, i.window_ns, i.sign, i.at_ns, c.is_sync, c.is_copy, c.is_alloc, c.sync_ns, c.copy_ns, c.alloc_ns, c.api_ns,
        greatest(c.end_ns - i.at_ns, 0) AS left_ns
    FROM instants AS i
    ASOF LEFT JOIN outer_calls AS c ON c.thread = i.thread AND c.start_ns <= i.at_ns
),
spent AS (
    SELECT
        gpu_id, window_ns, sum(sign * at_ns) AS all_ns, coalesce(sum(sign * (api_ns::BIGINT - left_ns)), 0) AS api_ns,
        coalesce(sum(sign * (sync_ns::BIGINT - CASE WHEN is_sync THEN left_ns ELSE 0 END)), 0) AS sync_ns,
        coalesce(sum(sign * (copy_ns::BIGINT - CASE WHEN is_copy THEN left_ns ELSE 0 END)), 0) AS copy_ns,
        coalesce(sum(sign * (alloc_ns::BIGINT - CASE WHEN is_alloc THEN left_ns ELSE 0 END)), 0) AS alloc_ns
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
    host,
    sum(idle_ns)::BIGINT AS idle_ns
FROM classed
WHERE idle_ns > 0
GROUP BY ALL;
