-- The GPU operations that the calls in these steps launched.
WITH calls AS (
    SELECT DISTINCT correlation_id
    FROM outer_api_calls
    WHERE process_id = $process AND start_ns >= $from AND start_ns < $to
)
SELECT
    o.start_ns, greatest(o.start_ns, o.end_ns) AS end_ns, o.kind, coalesce(k.name, o.label, '(no name)') AS name,
    coalesce(k.family = 'comm', false) AS is_communication, o.device_id, o.stream_id, o.correlation_id
FROM gpu_ops AS o
SEMI JOIN calls USING (correlation_id)
LEFT JOIN kernel_names AS k USING (name_id)
WHERE o.process_id = $process
ORDER BY o.start_ns, o.end_ns, o.correlation_id
