-- When threads that launch work may be blocked: in waits, and in calls that take much longer than usual, as they do
-- while the queue of launches is full. `is_wait`: it is a wait; otherwise only a GPU that is busy meanwhile shows it.
WITH calls AS MATERIALIZED (
    SELECT thread_id, name, call_group, start_ns, end_ns FROM outer_api_calls
    WHERE process_id = $process AND call_group IN ('launch', 'graph launch', 'copy', 'memset')
),
launching_threads AS (
    SELECT DISTINCT thread_id FROM calls WHERE call_group IN ('launch', 'graph launch')
)
SELECT start_ns, end_ns, true AS is_wait
FROM facts.waits
WHERE process_id = $process AND thread_id IN (FROM launching_threads)
UNION ALL
SELECT start_ns, end_ns, false
FROM (SELECT *, median(end_ns - start_ns) OVER (PARTITION BY name) AS usual_ns FROM calls)
WHERE end_ns - start_ns >= greatest(5 * usual_ns, 50000) AND thread_id IN (FROM launching_threads)
