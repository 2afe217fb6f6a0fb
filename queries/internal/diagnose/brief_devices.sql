-- How busy each GPU is in the steady steps; in the entire scope without steps. A single GPU has no row.
WITH busy_times AS (
    SELECT gpu_id, sum(busy_ns)::DOUBLE AS busy_ns, sum(busy_ns + idle_ns)::DOUBLE AS wall_ns
    FROM step_gpus WHERE phase = 'steady' GROUP BY gpu_id
    UNION ALL
    SELECT gpu_id, busy_ns, (SELECT sum(duration_ns) FROM wall)
    FROM used_gpus WHERE NOT EXISTS (FROM steps WHERE phase = 'steady')
)
SELECT gpu_id, 100 * busy_ns / nullif(wall_ns, 0) AS busy_pct
FROM busy_times
WHERE (SELECT count(*) FROM busy_times) > 1
ORDER BY gpu_id
