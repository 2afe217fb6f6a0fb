-- The time from the first to the last GPU operation of each of `ranges` (group_id, thread, start_ns, close_ns), added
-- up by group. Ranges that follow one another share no operation: each stretch of time that ranges cover is looked at
-- by itself.
CREATE MACRO _projected_time(ranges) AS TABLE
WITH marks AS (
    SELECT group_id, thread, start_ns, close_ns - 1 - start_ns AS reach_ns, NULL AS first_ns, NULL AS last_ns
    FROM query_table(ranges) WHERE close_ns > start_ns
    UNION ALL
    SELECT NULL, thread, start_ns, 0, first_ns, last_ns FROM _nvtx_work
),
covered AS (
    SELECT *, count(CASE WHEN begins THEN 1 END) OVER along AS part
    FROM (
        SELECT
            *, group_id IS NOT NULL AND start_ns > coalesce(max(start_ns + reach_ns) OVER (
                PARTITION BY thread ORDER BY start_ns, group_id IS NULL ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), start_ns - 1) AS begins
        FROM marks
    )
    WINDOW along AS (PARTITION BY thread ORDER BY start_ns, group_id IS NULL ROWS UNBOUNDED PRECEDING)
)
SELECT group_id, sum(last_ns - first_ns)::BIGINT AS projected_ns
FROM (
    SELECT group_id, min(first_ns) OVER inside AS first_ns, max(last_ns) OVER inside AS last_ns
    FROM covered
    WINDOW inside AS (PARTITION BY thread, part ORDER BY start_ns RANGE BETWEEN CURRENT ROW AND reach_ns FOLLOWING)
)
WHERE group_id IS NOT NULL
GROUP BY group_id;
