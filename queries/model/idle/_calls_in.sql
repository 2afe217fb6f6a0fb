/* parameters = ["times"] */
-- What the host called in one time (from_ns, until_ns; NULL is unbounded): the two calls with the most time, and the
-- time in which any thread was in a call. Overlapping calls of several threads count once. If there is no such time, no
-- call is read.
WITH clipped_calls AS MATERIALIZED (
    SELECT name, greatest(start_ns, from_ns) AS start_ns, least(end_ns, until_ns) AS end_ns
    FROM outer_api_calls CROSS JOIN query_table(times)
    WHERE (end_ns > from_ns) IS NOT false AND (start_ns < until_ns) IS NOT false
),
-- The calls of each name, and of all names together (NULL).
calls_with_reach AS (
    SELECT
        name, start_ns, end_ns,
        coalesce(
            max(end_ns) OVER (
                PARTITION BY name ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), start_ns
        ) AS until_then_ns
    FROM (FROM clipped_calls UNION ALL SELECT NULL, start_ns, end_ns FROM clipped_calls)
),
call_times AS (
    SELECT name, coalesce(sum(greatest(end_ns - greatest(start_ns, until_then_ns), 0)), 0)::BIGINT AS time_ns
    FROM calls_with_reach
    GROUP BY name
),
longest_calls AS (
    FROM call_times WHERE name IS NOT NULL ORDER BY time_ns DESC, name LIMIT 2
)
SELECT
    (
        SELECT list({'call_name': name, 'call_ns': time_ns} ORDER BY time_ns DESC, name) FROM longest_calls
    ) AS longest_calls,
    coalesce((SELECT time_ns FROM call_times WHERE name IS NULL), 0) AS covered_ns;
