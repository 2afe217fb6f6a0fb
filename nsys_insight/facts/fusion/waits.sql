-- The waits of the host for the GPU in the typical step, relative to its start on the host. If the steps have different
-- numbers of waits, only the waits that all of them have.
WITH typical_steps AS (
    SELECT step, host_start_ns, host_end_ns
    FROM internal.fusion_steps
    WHERE step IN (SELECT unnest(steps) FROM internal.fusion_sequences)
),
-- The waits of these steps, numbered within each step.
step_waits AS (
    SELECT
        s.step, w.start_ns - s.host_start_ns AS start_ns, w.end_ns - s.host_start_ns AS end_ns, w.name,
        row_number() OVER (PARTITION BY s.step ORDER BY w.start_ns, w.end_ns, w.correlation_id) AS position
    FROM waits AS w
    ASOF JOIN typical_steps AS s ON s.host_start_ns <= w.start_ns
    WHERE w.process_id = $process AND w.start_ns < s.host_end_ns
)
SELECT avg(start_ns) AS start_ns, avg(end_ns) AS end_ns, min(name) AS name
FROM step_waits
GROUP BY position
HAVING count(*) = (SELECT count(*) FROM typical_steps)
ORDER BY position
