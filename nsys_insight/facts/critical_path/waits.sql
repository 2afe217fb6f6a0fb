-- The calls in these steps that wait, and what they wait for: their own copy, a stream, or all streams if `stream_id`
-- is NULL. They wait for the operations launched before `until_ns`.
WITH calls AS (
    SELECT start_ns, correlation_id
    FROM outer_api_calls
    WHERE process_id = $process AND start_ns >= $from AND start_ns < $to
),
-- The event records in these steps.
record_calls AS (
    SELECT c.start_ns, e.event_id, e.device_id, e.stream_id
    FROM event_records AS e
    JOIN calls AS c USING (correlation_id)
    WHERE e.process_id = $process
),
-- The waits in these steps, each with its stream and event where it has one.
wait_calls AS (
    SELECT w.correlation_id, w.call_start_ns AS start_ns, w.is_copy, s.device_id, s.stream_id, s.event_id
    FROM waits AS w
    LEFT JOIN (
        SELECT correlation_id, min(device_id) AS device_id, min(stream_id) AS stream_id, min(event_id) AS event_id
        FROM sync_events
        WHERE process_id = $process
        GROUP BY correlation_id
    ) AS s USING (correlation_id)
    WHERE w.process_id = $process AND w.call_start_ns >= $from AND w.call_start_ns < $to
)
SELECT
    w.correlation_id, w.is_copy, coalesce(r.start_ns, w.start_ns) AS until_ns,
    CASE WHEN coalesce(r.stream_id, w.stream_id) IS NOT NULL THEN coalesce(r.device_id, w.device_id) END AS device_id,
    coalesce(r.stream_id, w.stream_id) AS stream_id
FROM wait_calls AS w
ASOF LEFT JOIN record_calls AS r ON r.event_id = w.event_id AND r.start_ns <= w.start_ns
WHERE w.correlation_id IS NOT NULL AND NOT w.is_copy
UNION ALL
-- A blocking copy also blocks the host alone, even if it counts as one wait together with the call after it.
SELECT correlation_id, true, NULL, NULL, NULL
FROM calls SEMI JOIN (FROM _blocking_copies WHERE process_id = $process) USING (correlation_id)
