-- Which of these calls wait, and for what: their own copy, a stream, or NULL for all; for what was launched before
-- until_ns.
WITH calls AS (
    SELECT start_ns, correlation_id
    FROM outer_api_calls
    WHERE process_id = $process AND start_ns >= $from AND start_ns < $to
),
recorded AS (
    SELECT c.start_ns, e.event_id, e.device_id, e.stream_id
    FROM event_records AS e
    JOIN calls AS c USING (correlation_id)
    WHERE e.process_id = $process
),
waiting AS (
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
FROM waiting AS w
ASOF LEFT JOIN recorded AS r ON r.event_id = w.event_id AND r.start_ns <= w.start_ns
WHERE w.correlation_id IS NOT NULL AND NOT w.is_copy
UNION ALL
-- Also a copy that is one wait with the call after it holds the host up by itself.
SELECT correlation_id, true, NULL, NULL, NULL
FROM calls SEMI JOIN (FROM _blocking_copies WHERE process_id = $process) USING (correlation_id)
