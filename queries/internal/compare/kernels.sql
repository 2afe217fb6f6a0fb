-- The kernels of the steady steps per token, in the same pieces as metrics.sql. A step that does not launch one has 0
-- of it.
WITH ranked AS (
    SELECT step, row_number() OVER (ORDER BY step) - 1 AS rank FROM steps WHERE phase = 'steady'
),
pieces AS (
    SELECT r.step, r.rank // greatest(1, ceil(x.steady_count / $most))::BIGINT AS piece, x.tokens_per_step
    FROM ranked AS r CROSS JOIN step_method AS x
),
lengths AS (
    SELECT piece, count(*) * any_value(tokens_per_step) AS tokens FROM pieces GROUP BY piece
)
SELECT
    n.name, any_value(n.family) AS family, p.piece, sum(k.kernel_ns)::DOUBLE / any_value(l.tokens) AS kernel_ns,
    sum(k.calls)::BIGINT AS calls
FROM step_kernels AS k
JOIN pieces AS p USING (step)
JOIN lengths AS l ON l.piece = p.piece
JOIN kernel_names AS n ON n.name_id = k.name_id
GROUP BY n.name, p.piece
ORDER BY n.name, p.piece
