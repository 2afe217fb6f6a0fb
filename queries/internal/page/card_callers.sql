-- Callers of the given kernels in a time window, by backtrace, the most launches first.
WITH kernel_list AS (
    SELECT unnest($names)::BIGINT AS name_id
),
launch_places AS (
    SELECT k.name_id, p.name AS place, count(*) AS calls, sum(k.duration_ns)::BIGINT AS total_ns
    FROM kernel_events AS k
    SEMI JOIN kernel_list USING (name_id)
    LEFT JOIN call_places AS p USING (process_id, correlation_id)
    WHERE k.start_ns >= $from_ns AND k.start_ns < $to_ns
    GROUP BY k.name_id, p.name
),
ranked_places AS (
    SELECT *, row_number() OVER (PARTITION BY name_id ORDER BY calls DESC, place) AS place_rank FROM launch_places
)
SELECT name_id, place, calls, total_ns
FROM ranked_places
WHERE place_rank <= $max_rows
ORDER BY name_id, place_rank
