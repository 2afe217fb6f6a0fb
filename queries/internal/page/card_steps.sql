-- Time of the given kernels in each steady step. If there are many steps, a row covers several.
WITH kernel_list AS (
    SELECT unnest($names)::BIGINT AS name_id
),
step_span AS (
    SELECT min(step) AS first, max(step) - min(step) + 1 AS steps FROM step_kernels
)
SELECT
    k.name_id, (k.step - c.first) * $max_columns // greatest(c.steps, $max_columns) AS step_group, min(k.step) AS step,
    max(k.step) AS last_step,
    sum(k.kernel_ns)::BIGINT AS kernel_ns, sum(k.calls)::BIGINT AS calls, count(*) AS steps
FROM step_kernels AS k
SEMI JOIN kernel_list USING (name_id)
CROSS JOIN step_span AS c
GROUP BY k.name_id, step_group
ORDER BY k.name_id, step_group
