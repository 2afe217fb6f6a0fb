/*
description = """The idle time of each GPU in each steady step by cause: `gpu_idle` for every step; the parts of a step
    add up to `step_gpus.idle_ns`."""
stored = true
[columns]
step = "Number of the step"
cause = "Cause of the idle time, as in `gpu_idle`"
host = "What the host did in this time, as in `gpu_idle`"
idle_ns = "How long"
*/
WITH gaps AS NOT MATERIALIZED (
    FROM _idle_time
),
windows AS (
    SELECT start_ns, end_ns FROM steps WHERE phase = 'steady'
)
SELECT s.step, i.gpu_id, i.cause, i.host, i.idle_ns
FROM _idle_in('gaps', 'windows') AS i
JOIN steps AS s ON s.start_ns = i.window_ns AND s.phase = 'steady'
JOIN step_gpus AS g ON g.step = s.step AND g.gpu_id = i.gpu_id
UNION ALL
-- A range, and with it the step, may begin before the first CUDA event or end after the last one. The wall time does
-- not.
SELECT s.step, g.gpu_id, 'start-up and end', e.host, e.idle_ns
FROM steps AS s
JOIN step_gpus AS g ON g.step = s.step
CROSS JOIN (SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM wall) AS w
CROSS JOIN LATERAL (
    SELECT 'before the first operation' AS host, least(w.start_ns, s.end_ns) - s.start_ns AS idle_ns
    UNION ALL
    SELECT 'after the last operation', s.end_ns - greatest(w.end_ns, s.start_ns)
) AS e
WHERE s.phase = 'steady' AND e.idle_ns > 0;
