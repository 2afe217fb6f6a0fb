-- The parts of the wall as the report classify has them, those in which the GPU was busy apart from the others.
WITH budget AS MATERIALIZED (
    FROM step_budget
),
per AS (
    SELECT
        count(DISTINCT (step, gpu_id))
            * any_value(CASE WHEN step IS NULL THEN 1 ELSE (SELECT tokens_per_step FROM step_method) END) AS gpu_tokens,
        sum(time_ns)::DOUBLE AS all_ns
    FROM budget
),
parts AS (
    SELECT
        part, part IN ('gpu', 'communication') OR part = 'copy' AND host IS NULL AS is_busy,
        sum(time_ns)::BIGINT AS time_ns
    FROM budget
    GROUP BY ALL
)
SELECT is_busy, part, time_ns / gpu_tokens AS time_ns, 100 * time_ns / all_ns AS wall_pct
FROM parts, per
ORDER BY is_busy DESC, time_ns DESC, part
