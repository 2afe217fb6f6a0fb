-- Kernels of the steady steps per token, in the same groups of steps as metrics.sql. A step that does not launch a
-- kernel counts as 0.
WITH ranked_steps AS (
    SELECT step, row_number() OVER (ORDER BY step) - 1 AS rank FROM steps WHERE phase = 'steady'
),
grouped_steps AS (
    SELECT r.step, r.rank // greatest(1, ceil(x.steady_count / $most))::BIGINT AS piece, x.tokens_per_step
    FROM ranked_steps AS r CROSS JOIN step_method AS x
),
group_tokens AS (
    SELECT piece, count(*) * any_value(tokens_per_step) AS tokens FROM grouped_steps GROUP BY piece
)
SELECT
    n.name, any_value(n.family) AS family, p.piece, sum(k.kernel_ns)::DOUBLE / any_value(l.tokens) AS kernel_ns,
    sum(k.calls)::BIGINT AS calls
FROM step_kernels AS k
JOIN grouped_steps AS p USING (step)
JOIN group_tokens AS l ON l.piece = p.piece
JOIN kernel_names AS n ON n.name_id = k.name_id
GROUP BY n.name, p.piece
ORDER BY n.name, p.piece
