CREATE VIEW phase_metrics AS
WITH phase_steps_as_steps AS (
    SELECT *, phase_step AS step FROM phase_steps
),
causes AS (
    SELECT unnest(['starved', 'blocked', 'allocation', 'dependency', 'profiler']) AS cause
    UNION
    SELECT cause FROM phase_idle
)
SELECT s.phase_step, s.phase, s.batch_size, b.place, b.metric, b.kind, b.value
FROM _budget_of('phase_steps_as_steps') AS b
JOIN phase_steps_as_steps AS s USING (step)
UNION ALL
SELECT
    s.phase_step, s.phase, s.batch_size,
    3 + list_position(['starved', 'blocked', 'allocation', 'dependency', 'profiler', 'edge', 'unknown'], c.cause),
    'idle_' || c.cause || '_ns', 'time', coalesce(i.idle_ns, 0)
FROM phase_steps_as_steps AS s
CROSS JOIN causes AS c
LEFT JOIN phase_idle AS i ON i.phase_step = s.phase_step AND i.cause = c.cause;

COMMENT ON VIEW phase_metrics IS
    'The budget of each step of a phase, as `step_metrics` has it: one row per step and metric.';
COMMENT ON COLUMN phase_metrics.phase_step IS 'The step, as in `phase_steps`';
COMMENT ON COLUMN phase_metrics.phase IS 'Its phase';
COMMENT ON COLUMN phase_metrics.batch_size IS 'Its batch size, where the name of the range says';
COMMENT ON COLUMN phase_metrics.place IS 'Position of the metric in a budget';
COMMENT ON COLUMN phase_metrics.metric IS 'What was counted or measured';
COMMENT ON COLUMN phase_metrics.kind IS
    'time or count, which can be divided by the tokens of a step; mean, which cannot';
COMMENT ON COLUMN phase_metrics.value IS 'In the unit that the metric''s name ends in; NULL when unknown';
