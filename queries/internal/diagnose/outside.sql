-- The time of the trace outside its steady steps: how long the GPU was busy in it, and the two longest idle times, each
-- with what the host did for most of it and the number of gaps. No row if several GPUs were used: one may work while
-- another is idle.
WITH trace_time AS (
    SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns, sum(duration_ns)::BIGINT AS wall_ns FROM wall
),
steady_steps AS MATERIALIZED (
    SELECT greatest(s.start_ns, t.start_ns) AS start_ns, least(s.end_ns, t.end_ns) AS end_ns, s.gpu_busy_ns
    FROM steps AS s, trace_time AS t
    WHERE s.phase = 'steady'
),
totals AS (
    SELECT
        t.wall_ns - sum(s.end_ns - s.start_ns)::BIGINT AS outside_ns,
        greatest((SELECT sum(busy_ns) FROM used_gpus) - sum(s.gpu_busy_ns), 0)::BIGINT AS busy_ns
    FROM trace_time AS t, steady_steps AS s
    GROUP BY t.wall_ns
),
first_operation AS MATERIALIZED (
    SELECT NULL AS from_ns, min(start_ns) AS until_ns FROM _gpu_busy_parts HAVING count(*) > 0
),
idle_times AS (
    SELECT
        CASE
            WHEN 2 * c.longest_calls[1].call_ns >= f.until_ns - t.start_ns THEN c.longest_calls[1].call_name
        END AS host,
        f.until_ns - t.start_ns AS idle_ns
    FROM trace_time AS t, first_operation AS f, _calls_in('first_operation') AS c
    UNION ALL
    SELECT
        CASE WHEN 2 * host_ns >= duration_ns THEN regexp_replace(host, '^[a-zA-Z]+: ', '') END, duration_ns
    FROM _explained_gaps AS g
    -- Most of the gap is outside the steps.
    WHERE 2 * (
        SELECT coalesce(sum(least(s.end_ns, g.end_ns) - greatest(s.start_ns, g.start_ns)), 0)
        FROM steady_steps AS s
        WHERE s.start_ns < g.end_ns AND s.end_ns > g.start_ns
    ) < g.duration_ns
),
longest_times AS (
    SELECT host, sum(idle_ns)::BIGINT AS idle_ns, count(*) AS gaps
    FROM idle_times
    WHERE host IS NOT NULL
    GROUP BY host
    -- Shorter ones do not say what the time is.
    HAVING 10 * sum(idle_ns) >= (SELECT outside_ns FROM totals)
    ORDER BY idle_ns DESC, host
    LIMIT 2
)
SELECT t.*, (SELECT list(longest_times ORDER BY idle_ns DESC, host) FROM longest_times) AS longest_idle
FROM totals AS t
WHERE (SELECT count(*) FROM used_gpus) = 1 AND EXISTS (FROM scope WHERE nvtx IS NULL AND from_ns IS NULL)
