CREATE VIEW step_metrics AS
WITH steady_steps AS (
    SELECT * FROM steps WHERE phase = 'steady'
),
causes AS MATERIALIZED (
    FROM step_idle
),
-- A mean over the GPUs, as gpu_idle_ns is. Every budget has five causes; others only if they occur.
idle AS (
    SELECT s.step, c.cause, coalesce(sum(i.idle_ns), 0) / any_value(g.gpus) AS idle_ns
    FROM steady_steps AS s
    JOIN (SELECT step, count(*) AS gpus FROM step_gpus GROUP BY step) AS g USING (step)
    CROSS JOIN (
        SELECT unnest(['starved', 'blocked', 'allocation', 'dependency', 'profiler']) AS cause
        UNION
        SELECT cause FROM causes
    ) AS c
    LEFT JOIN causes AS i ON i.step = s.step AND i.cause = c.cause
    GROUP BY s.step, c.cause
)
FROM _budget_of('steady_steps')
UNION ALL
SELECT
    step,
    3 + list_position(['starved', 'blocked', 'allocation', 'dependency', 'profiler', 'edge', 'unknown'], cause),
    'idle_' || cause || '_ns', 'time', idle_ns
FROM idle;

COMMENT ON VIEW step_metrics IS
    'The budget of each steady step, one row per step and metric: what the report per-token summarizes, and diff '
    'compares.';
COMMENT ON COLUMN step_metrics.step IS 'Number of the step';
COMMENT ON COLUMN step_metrics.place IS 'Position of the metric in a budget';
COMMENT ON COLUMN step_metrics.metric IS 'What was counted or measured';
COMMENT ON COLUMN step_metrics.kind IS
    'time or count, which can be divided by the tokens of a step; mean, which cannot';
COMMENT ON COLUMN step_metrics.value IS 'In the unit that the metric''s name ends in; NULL when unknown';
