/* parameters = ["ranges"] */
-- The time from the first to the last GPU operation of each of `ranges` (group_id, thread, start_ns, close_ns), added
-- up by group, without ranges that launch none. Ranges that do not overlap share no operation, so each stretch of time
-- that ranges cover is processed separately.
WITH timeline_events AS (
    SELECT r.group_id, r.thread, r.start_ns, r.close_ns - 1 - r.start_ns AS reach_ns, NULL AS first_ns, NULL AS last_ns
    FROM query_table(ranges) AS r
    ASOF JOIN _nvtx_work AS w ON w.thread = r.thread AND w.start_ns >= r.start_ns
    WHERE w.start_ns < r.close_ns
    UNION ALL
    SELECT NULL, thread, start_ns, 0, first_ns, last_ns FROM _nvtx_work
),
events_by_stretch AS (
    SELECT *, count(CASE WHEN begins THEN 1 END) OVER by_start AS stretch
    FROM (
        SELECT
            *, group_id IS NOT NULL AND start_ns > coalesce(max(start_ns + reach_ns) OVER (
                PARTITION BY thread ORDER BY start_ns, group_id IS NULL ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), start_ns - 1) AS begins
        FROM timeline_events
    )
    WINDOW by_start AS (PARTITION BY thread ORDER BY start_ns, group_id IS NULL ROWS UNBOUNDED PRECEDING)
)
SELECT group_id, sum(last_ns - first_ns)::BIGINT AS projected_ns
FROM (
    SELECT group_id, min(first_ns) OVER over_range AS first_ns, max(last_ns) OVER over_range AS last_ns
    FROM events_by_stretch
    WINDOW over_range AS (
        PARTITION BY thread, stretch ORDER BY start_ns RANGE BETWEEN CURRENT ROW AND reach_ns FOLLOWING
    )
)
WHERE group_id IS NOT NULL
GROUP BY group_id;
