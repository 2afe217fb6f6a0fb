-- The thread whose ranges name the phases. If there are several, the thread that launches most.
SELECT r.thread_id
FROM (SELECT DISTINCT thread_id FROM _phase_ranges WHERE process_id = $process) AS r
LEFT JOIN (
    SELECT thread_id, count(*) AS calls FROM outer_api_calls
    WHERE process_id = $process AND call_group IN ('launch', 'graph launch')
    GROUP BY thread_id
) AS c USING (thread_id)
WHERE c.calls > 0
ORDER BY c.calls DESC, r.thread_id
LIMIT 1
