-- How many operations and calls lie in each of several windows of time; no row of a window without any. The windows are on the
-- right of the join: DuckDB keeps that side in memory, and lets the millions of events pass by.
WITH windows AS (
    SELECT unnest($starts)::BIGINT AS from_ns, unnest($ends)::BIGINT AS to_ns, unnest(range(len($starts))) AS place
),
events AS (
    SELECT start_ns, end_ns FROM gpu_ops
    UNION ALL
    SELECT start_ns, end_ns FROM outer_api_calls
)
SELECT w.place, count(*) AS events
FROM events AS e
JOIN windows AS w ON e.start_ns < w.to_ns AND e.end_ns > w.from_ns
GROUP BY w.place
ORDER BY w.place
