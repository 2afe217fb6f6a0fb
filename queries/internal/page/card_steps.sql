-- What some kernels took in the steady steps, several steps in one where there are many.
WITH chosen AS (
    SELECT unnest($names)::BIGINT AS name_id
),
counted AS (
    SELECT min(step) AS first, max(step) - min(step) + 1 AS steps FROM step_kernels
)
SELECT
    k.name_id, (k.step - c.first) * $most // greatest(c.steps, $most) AS piece, min(k.step) AS step,
    max(k.step) AS last_step,
    sum(k.kernel_ns)::BIGINT AS kernel_ns, sum(k.calls)::BIGINT AS calls, count(*) AS steps
FROM step_kernels AS k
SEMI JOIN chosen USING (name_id)
CROSS JOIN counted AS c
GROUP BY k.name_id, piece
ORDER BY k.name_id, piece
