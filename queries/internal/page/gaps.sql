-- Idle gaps of each GPU in time windows that do not overlap, with their causes as in `step_idle`. A gap with several
-- causes has several rows. If the profiler blocked the host during part of a gap, that part is a gap of its own.
WITH page_windows AS (
    SELECT unnest($starts)::BIGINT AS start_ns, unnest($ends)::BIGINT AS end_ns
),
idle_times AS (
    FROM _idle_time WHERE start_ns < list_max($ends) AND end_ns > list_min($starts)
),
gaps AS (
    FROM cut_to('idle_times', 'page_windows')
),
-- Each gap is a window of its own, so that its causes are computed separately.
gap_windows AS (
    SELECT * REPLACE (start_ns AS window_ns) FROM gaps
),
full_idle_gaps AS (
    FROM gap_windows WHERE start_ns = gap_ns AND end_ns = gap_end_ns
),
cut_idle_gaps AS (
    FROM gap_windows WHERE start_ns <> gap_ns OR end_ns <> gap_end_ns
)
SELECT i.gpu_id, i.window_ns AS start_ns, g.end_ns, i.cause, i.host, i.idle_ns
FROM _idle_of('full_idle_gaps', 'cut_idle_gaps') AS i
JOIN gaps AS g ON g.gpu_id = i.gpu_id AND g.start_ns = i.window_ns
ORDER BY i.gpu_id, start_ns, i.idle_ns DESC, i.cause, i.host
