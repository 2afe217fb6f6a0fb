-- The budget of the steady steps per token, with at most $most values per metric: one per step, or the means of
-- consecutive steps.
WITH ranked_steps AS (
    SELECT step, row_number() OVER (ORDER BY step) - 1 AS rank FROM steps WHERE phase = 'steady'
)
SELECT
    any_value(m.place) AS place,
    m.metric,
    r.rank // greatest(1, ceil(x.steady_count / $most))::BIGINT AS piece,
    CASE
        WHEN count(m.value) = count(*)
            THEN avg(m.value) / CASE WHEN any_value(m.kind) = 'mean' THEN 1 ELSE any_value(x.tokens_per_step) END
    END AS value
FROM step_metrics AS m
JOIN ranked_steps AS r USING (step)
CROSS JOIN step_method AS x
GROUP BY m.metric, 3
ORDER BY place, m.metric, 3
