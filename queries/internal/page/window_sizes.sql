-- How many operations and calls lie in each of several windows of time; no row of a window without any. Of millions of events few are
-- near a short window: those that begin in the same millisecond as a part of it, or in the one before, and those that last longer.
-- The windows are on the right of the joins: DuckDB keeps that side in memory, and lets the events pass by.
WITH windows AS (
    SELECT unnest($starts)::BIGINT AS from_ns, unnest($ends)::BIGINT AS to_ns, unnest(range(len($starts))) AS place
),
short AS (
    FROM windows WHERE to_ns - from_ns <= 100000000
),
slices AS (
    SELECT DISTINCT unnest(range(from_ns // 1000000 - 1, to_ns // 1000000 + 1)) AS slice FROM short
),
events AS NOT MATERIALIZED (
    SELECT start_ns, end_ns FROM gpu_ops
    UNION ALL
    SELECT start_ns, end_ns FROM outer_api_calls
),
near AS (
    FROM events WHERE start_ns // 1000000 IN (FROM slices) OR end_ns - start_ns > 1000000
),
met AS (
    SELECT w.place
    FROM near AS e
    JOIN short AS w ON e.start_ns < w.to_ns AND e.end_ns > w.from_ns
    UNION ALL
    SELECT w.place
    FROM events AS e
    JOIN (FROM windows WHERE to_ns - from_ns > 100000000) AS w ON e.start_ns < w.to_ns AND e.end_ns > w.from_ns
)
SELECT place, count(*) AS events
FROM met
GROUP BY place
ORDER BY place
