-- What the host called in one time (from_ns, until_ns; NULL is unbounded): the two calls with the most time, in words,
-- and the time in which any thread was in a call. If there is no such time, no call is read.
CREATE MACRO _calls_in(times) AS TABLE
WITH clipped_calls AS MATERIALIZED (
    SELECT name, greatest(start_ns, from_ns) AS start_ns, least(end_ns, until_ns) AS end_ns
    FROM outer_api_calls CROSS JOIN query_table(times)
    WHERE (end_ns > from_ns) IS NOT false AND (start_ns < until_ns) IS NOT false
),
longest_calls AS (
    SELECT name, sum(end_ns - start_ns)::BIGINT AS total_ns
    FROM clipped_calls
    GROUP BY name
    ORDER BY total_ns DESC, name
    LIMIT 2
),
calls_with_reach AS (
    SELECT
        start_ns, end_ns,
        coalesce(
            max(end_ns) OVER (ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns
        ) AS until_then_ns
    FROM clipped_calls
)
SELECT
    (
        SELECT string_agg(name || ', ' || time_text(total_ns), '; ' ORDER BY total_ns DESC, name) FROM longest_calls
    ) AS longest,
    (
        SELECT coalesce(sum(greatest(end_ns - greatest(start_ns, until_then_ns), 0)), 0)::BIGINT
        FROM calls_with_reach
    ) AS covered_ns;
