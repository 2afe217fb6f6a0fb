-- The parts of the wall time, as in the report classify: busy parts first, then causes of idle time.
WITH budget AS MATERIALIZED (
    FROM step_budget
),
totals AS (
    SELECT
        count(DISTINCT (step, gpu_id))
            * any_value(CASE WHEN step IS NULL THEN 1 ELSE (SELECT tokens_per_step FROM step_method) END) AS gpu_tokens,
        sum(time_ns)::DOUBLE AS all_ns
    FROM budget
),
budget_parts AS (
    SELECT
        part, part IN ('gpu', 'communication') OR part = 'copy' AND host IS NULL AS is_busy,
        sum(time_ns)::BIGINT AS time_ns
    FROM budget
    GROUP BY ALL
)
SELECT is_busy, part, time_ns / gpu_tokens AS time_ns, 100 * time_ns / all_ns AS wall_pct
FROM budget_parts, totals
ORDER BY is_busy DESC, time_ns DESC, part
