/* parameters = ["places"] */
-- The idle time of step_budget that the host may have caused, by bottleneck (code, as in the report host) and caller,
-- from `places` (process_id, correlation_id, place). Waits and allocations have their own caller; all other idle time
-- has that of the launch call that was late. The rules of `_idle_of` add up the parts of gaps, with the caller instead
-- of a window.
WITH place_ids AS MATERIALIZED (
    SELECT place, row_number() OVER (ORDER BY place) AS place_id FROM (SELECT DISTINCT place FROM query_table(places))
),
calls_with_place AS MATERIALIZED (
    SELECT thread_of(a.thread_id, a.process_id) AS thread, a.start_ns AS call_ns, min(i.place_id) AS place_id
    FROM api_calls AS a
    JOIN query_table(places) AS p USING (process_id, correlation_id)
    JOIN place_ids AS i USING (place)
    GROUP BY ALL
),
times AS (
    FROM _idle_time
),
windows AS (
    FROM _steady_windows WHERE step IS NOT NULL
),
idle_pieces AS (
    SELECT p.* EXCLUDE (window_ns)
    FROM cut_to('times', 'windows') AS p
    JOIN windows AS s ON s.start_ns = p.window_ns
    JOIN step_gpus AS g ON g.step = s.step AND g.gpu_id = p.gpu_id
    UNION ALL BY NAME
    FROM in_scope('times') WHERE NOT EXISTS (FROM windows)
),
pieces_with_place AS MATERIALIZED (
    SELECT p.*, coalesce(m.place_id, 0) AS window_ns
    FROM idle_pieces AS p
    LEFT JOIN calls_with_place AS m USING (thread, call_ns)
),
uncut_pieces AS (
    FROM pieces_with_place WHERE start_ns = gap_ns AND end_ns = gap_end_ns
),
cut_pieces AS (
    FROM pieces_with_place WHERE start_ns <> gap_ns OR end_ns <> gap_end_ns
),
charges AS MATERIALIZED (
    SELECT
        c.cause, c.host, c.charge, c.idle_ns, w.copy_kind, w.is_copy,
        coalesce(l.place_id, 0) AS place_id, coalesce(o.place_id, 0) AS own_place_id
    FROM idle_charges AS c
    ASOF JOIN times AS t ON t.gpu_id = c.gpu_id AND t.start_ns <= c.gap_start_ns
    LEFT JOIN calls_with_place AS l ON l.thread = t.thread AND l.call_ns = t.call_ns
    LEFT JOIN calls_with_place AS o ON o.thread = thread_of(c.thread_id, c.process_id) AND o.call_ns = c.call_start_ns
    LEFT JOIN waits AS w ON c.charge = 'wait' AND w.process_id = c.process_id AND w.thread_id = c.thread_id
        AND w.call_start_ns = c.call_start_ns
    WHERE NOT EXISTS (FROM windows)
        OR (c.step, c.gpu_id) IN (SELECT (step, gpu_id) FROM step_gpus WHERE phase = 'steady')
),
attributed_times AS (
    SELECT _bottleneck_code(cause, host) AS code, place_id, idle_ns
    FROM (
        SELECT window_ns AS place_id, cause, host, idle_ns FROM _idle_of('uncut_pieces', 'cut_pieces')
        UNION ALL
        SELECT place_id, cause, host, -idle_ns FROM charges
    )
    UNION ALL
    SELECT
        CASE
            WHEN charge = 'allocation' THEN charge
            WHEN charge = 'wait'
                THEN CASE WHEN copy_kind = 'D2H' THEN 'd2h_sync' WHEN is_copy THEN 'blocking_copy' ELSE 'other_wait' END
        END,
        own_place_id, idle_ns
    FROM charges
)
SELECT o.code, i.place, sum(o.idle_ns)::BIGINT AS idle_ns
FROM attributed_times AS o
LEFT JOIN place_ids AS i USING (place_id)
WHERE o.code IS NOT NULL
GROUP BY ALL
HAVING sum(o.idle_ns) > 0;
