-- How long the steps last that were cut, but for the last one if it has no end, and the share of the process's GPU time
-- that they hold: what their own stream ran, or what was launched in their ranges. Prefills, of as many operations that
-- take longer, are not counted: a short answer to a long prompt has steps. They come less often than every third step.
WITH usual AS (
    SELECT count(*) AS steps, quantile_cont(ops, 0.5) AS ops, quantile_cont(gpu_ns, 0.5) AS gpu_ns
    FROM internal.step_pieces WHERE is_step
),
prefills AS (
    SELECT sum(p.gpu_ns) AS gpu_ns
    FROM internal.step_pieces AS p, usual AS u
    WHERE NOT p.is_step AND p.ops >= 4 AND p.ops BETWEEN 0.5 * u.ops AND 2 * u.ops AND p.gpu_ns > u.gpu_ns
    HAVING 3 * count(*) <= any_value(u.steps)
)
SELECT
    coalesce(
        sum(end_ns - start_ns) FILTER (is_step AND (NOT is_open OR (SELECT steps FROM usual) = 1)), 0
    )::BIGINT AS wall_ns,
    coalesce(
        sum(gpu_ns) FILTER (is_step)
        / nullif(
            (SELECT sum(end_ns - start_ns) FROM internal.step_launched) - coalesce((SELECT gpu_ns FROM prefills), 0), 0
        ),
        0
    )::DOUBLE AS share
FROM internal.step_pieces
