-- How long the steps last, and the share of the process's GPU time that they cover: what their own stream ran, or what
-- was launched in their ranges. The last step counts only if it has an end, or if it is the only one. Prefills do not
-- count towards the GPU time, because a short answer to a long prompt has steps too. A prefill has about as many
-- operations as a step, but takes longer, and there is at most one for every three steps.
WITH step_medians AS (
    SELECT count(*) AS steps, quantile_cont(ops, 0.5) AS ops, quantile_cont(gpu_ns, 0.5) AS gpu_ns
    FROM internal.step_pieces WHERE is_step
),
-- GPU time of prefills, if they are rare enough.
prefills AS (
    SELECT sum(p.gpu_ns) AS gpu_ns
    FROM internal.step_pieces AS p, step_medians AS u
    WHERE NOT p.is_step AND p.ops >= 4 AND p.ops BETWEEN 0.5 * u.ops AND 2 * u.ops AND p.gpu_ns > u.gpu_ns
    HAVING 3 * count(*) <= any_value(u.steps)
)
SELECT
    coalesce(
        sum(end_ns - start_ns) FILTER (is_step AND (NOT is_open OR (SELECT steps FROM step_medians) = 1)), 0
    )::BIGINT AS wall_ns,
    coalesce(
        sum(gpu_ns) FILTER (is_step)
        / nullif(
            (SELECT sum(end_ns - start_ns) FROM internal.step_launched) - coalesce((SELECT gpu_ns FROM prefills), 0), 0
        ),
        0
    )::DOUBLE AS share
FROM internal.step_pieces
