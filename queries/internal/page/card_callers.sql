-- What calls some kernels that run in a window of time, by their backtraces, the most launches first.
WITH chosen AS (
    SELECT unnest($names)::BIGINT AS name_id
),
placed AS (
    SELECT k.name_id, p.name AS place, count(*) AS calls, sum(k.duration_ns)::BIGINT AS total_ns
    FROM kernel_events AS k
    SEMI JOIN chosen USING (name_id)
    LEFT JOIN call_places AS p USING (process_id, correlation_id)
    WHERE k.start_ns >= $from_ns AND k.start_ns < $to_ns
    GROUP BY k.name_id, p.name
),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY name_id ORDER BY calls DESC, place) AS turn FROM placed
)
SELECT name_id, place, calls, total_ns
FROM ranked
WHERE turn <= $most
ORDER BY name_id, turn
