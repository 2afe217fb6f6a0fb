-- The times in which these threads had no CPU: until they got one, or to the end. If two switches off the CPU follow
-- each other, the switch between them is missing. The length of the first time is unknown, and it counts as 0.
SELECT greatest(s.start_ns, l.from_ns) + l.shift_ns AS line_start, least(s.end_ns, l.to_ns) + l.shift_ns AS line_end
FROM (
    SELECT
        thread_of(tid_of(globalTid), pid_of(globalTid)) AS thread, start AS start_ns, isSchedIn,
        CASE lead(isSchedIn) OVER along
            WHEN 0 THEN start ELSE coalesce(lead(start) OVER along, 9223372036854775807)
        END AS end_ns
    FROM unscoped.SCHED_EVENTS
    WINDOW along AS (PARTITION BY globalTid ORDER BY start, isSchedIn DESC)
) AS s
JOIN internal.work_tracks AS l USING (thread)
WHERE s.isSchedIn = 0 AND s.end_ns > l.from_ns AND s.start_ns < l.to_ns
