CREATE VIEW step_metrics AS
WITH steady AS (
    SELECT * FROM steps WHERE phase = 'steady'
),
causes AS MATERIALIZED (
    FROM step_idle
),
-- A mean over the GPUs, as gpu_idle_ns is; the causes that every budget shows, and others where there are any.
idle AS (
    SELECT s.step, c.cause, coalesce(sum(i.idle_ns), 0) / any_value(g.gpus) AS idle_ns
    FROM steady AS s
    JOIN (SELECT step, count(*) AS gpus FROM step_gpus GROUP BY step) AS g USING (step)
    CROSS JOIN (
        SELECT unnest(['starved', 'blocked', 'allocation', 'dependency', 'profiler']) AS cause
        UNION
        SELECT cause FROM causes
    ) AS c
    LEFT JOIN causes AS i ON i.step = s.step AND i.cause = c.cause
    GROUP BY s.step, c.cause
)
SELECT s.step, m.place, m.metric, m.kind, m.value::DOUBLE AS value
FROM steady AS s, LATERAL (
    VALUES
        (1, 'wall_ns', 'time', s.duration_ns::DOUBLE),
        (2, 'gpu_busy_ns', 'time', s.gpu_busy_ns),
        (3, 'gpu_idle_ns', 'time', s.gpu_idle_ns),
        (11, 'kernel_ns', 'time', s.kernel_ns),
        (12, 'kernel_avg_ns', 'mean', s.kernel_ns / nullif(s.kernels, 0)),
        (13, 'kernel_med_ns', 'mean', s.kernel_med_ns),
        (14, 'kernels', 'count', s.kernels),
        (15, 'launch_calls', 'count', s.launch_calls),
        (16, 'graph_launches', 'count', s.graph_launches),
        (17, 'api_ns', 'time', s.api_ns),
        (18, 'api_launch_ns', 'time', s.api_launch_ns),
        (19, 'api_sync_ns', 'time', s.api_sync_ns),
        (20, 'api_copy_ns', 'time', s.api_copy_ns),
        (21, 'api_alloc_ns', 'time', s.api_alloc_ns),
        (22, 'api_other_ns', 'time', s.api_other_ns),
        (23, 'sync_calls', 'count', s.sync_calls),
        (24, 'sync_points', 'count', s.sync_points),
        (25, 'h2d_copies', 'count', s.h2d_copies),
        (26, 'h2d_bytes', 'count', s.h2d_bytes),
        (27, 'd2h_copies', 'count', s.d2h_copies),
        (28, 'd2h_bytes', 'count', s.d2h_bytes),
        (29, 'mallocs', 'count', s.mallocs),
        (30, 'frees', 'count', s.frees)
) AS m (place, metric, kind, value)
UNION ALL
SELECT
    step,
    3 + list_position(['starved', 'blocked', 'allocation', 'dependency', 'profiler', 'edge', 'unknown'], cause),
    'idle_' || cause || '_ns', 'time', idle_ns
FROM idle;

COMMENT ON VIEW step_metrics IS 'The budget of each steady step, one row per step and metric: what the report per-token summarises, and diff compares.';
COMMENT ON COLUMN step_metrics.step IS 'Number of the step';
COMMENT ON COLUMN step_metrics.place IS 'Where the metric stands in a budget';
COMMENT ON COLUMN step_metrics.metric IS 'What was counted or measured';
COMMENT ON COLUMN step_metrics.kind IS 'time or count, which can be divided by the tokens of a step; mean, which cannot';
COMMENT ON COLUMN step_metrics.value IS 'In the unit that the metric''s name ends in; NULL when not known';
