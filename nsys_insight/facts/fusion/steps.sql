-- Adjacent steps in the middle of the steady state: enough steps for $operations in total, but at most $most.
CREATE OR REPLACE TABLE internal.fusion_steps AS
WITH steady_steps AS (
    SELECT step, process_id, host_start_ns, host_end_ns, start_ns, end_ns, row_number() OVER (ORDER BY step) AS position
    FROM steps
    WHERE phase = 'steady' AND NOT coalesce(is_outlier, false)
),
-- One row: the number of steady steps, and how many of them to sample.
step_counts AS (
    SELECT
        count(*) AS steps,
        least(
            $most, greatest(3, $operations // greatest(1, (SELECT max(kernels) FROM steps WHERE phase = 'steady')))
        ) AS sampled
    FROM steady_steps
)
SELECT step, process_id, host_start_ns, host_end_ns, start_ns, end_ns
FROM steady_steps, step_counts
WHERE position > (steps - sampled) // 2 AND position <= (steps - sampled) // 2 + sampled
