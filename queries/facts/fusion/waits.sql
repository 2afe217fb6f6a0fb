-- When the host waits for the GPU in the typical step, counted from its beginning on the host; where not all of these
-- steps wait as often, the waits that they have in common.
WITH typical AS (
    SELECT step, host_start_ns, host_end_ns
    FROM internal.fusion_steps
    WHERE step IN (SELECT unnest(steps) FROM internal.fusion_sequences)
),
placed AS (
    SELECT
        s.step, w.start_ns - s.host_start_ns AS start_ns, w.end_ns - s.host_start_ns AS end_ns, w.name,
        row_number() OVER (PARTITION BY s.step ORDER BY w.start_ns, w.end_ns, w.correlation_id) AS place
    FROM waits AS w
    ASOF JOIN typical AS s ON s.host_start_ns <= w.start_ns
    WHERE w.process_id = $process AND w.start_ns < s.host_end_ns
)
SELECT avg(start_ns) AS start_ns, avg(end_ns) AS end_ns, min(name) AS name
FROM placed
GROUP BY place
HAVING count(*) = (SELECT count(*) FROM typical)
ORDER BY place
