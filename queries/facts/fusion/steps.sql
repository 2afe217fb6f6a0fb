-- Neighbouring steps in the middle of the steady state, as many as make up some $operations, but no more than $most.
CREATE OR REPLACE TABLE internal.fusion_steps AS
WITH steady AS (
    SELECT step, process_id, host_start_ns, host_end_ns, start_ns, end_ns, row_number() OVER (ORDER BY step) AS place
    FROM steps
    WHERE phase = 'steady' AND NOT coalesce(is_outlier, false)
),
counted AS (
    SELECT
        count(*) AS steps,
        least(
            $most, greatest(3, $operations // greatest(1, (SELECT max(kernels) FROM steps WHERE phase = 'steady')))
        ) AS taken
    FROM steady
)
SELECT step, process_id, host_start_ns, host_end_ns, start_ns, end_ns
FROM steady, counted
WHERE place > (steps - taken) // 2 AND place <= (steps - taken) // 2 + taken
