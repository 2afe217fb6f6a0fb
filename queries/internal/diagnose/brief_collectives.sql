-- The collectives that start in the steady steps by operation and size, per step; of the entire scope without
-- steps.
WITH step_count AS (
    SELECT count(*) * any_value(tokens) AS units FROM _steady_windows
)
SELECT
    c.operation, c.bytes, count(*) / any_value(s.units) AS calls, avg(c.end_ns - c.start_ns) AS avg_ns
FROM _rank_collectives AS c
ASOF JOIN _steady_windows AS w ON w.start_ns <= c.start_ns
CROSS JOIN step_count AS s
WHERE c.start_ns < w.end_ns AND c.process_id = coalesce(w.process_id, c.process_id)
GROUP BY ALL
ORDER BY sum(c.end_ns - c.start_ns) DESC, c.operation, c.bytes
