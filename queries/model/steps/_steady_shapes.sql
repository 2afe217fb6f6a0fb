CREATE VIEW _steady_shapes AS
WITH steady AS (
    SELECT process_id, start_ns, end_ns FROM steps WHERE phase = 'steady'
),
owners AS (
    FROM steady
    UNION ALL
    SELECT NULL, start_ns, end_ns + 1 FROM wall WHERE NOT EXISTS (FROM steady)
)
SELECT
    k.shape_id, any_value(k.name_id) AS name_id, count(*) AS calls, sum(k.duration_ns)::BIGINT AS total_ns,
    100.0 * sum(k.duration_ns) / nullif(sum(sum(k.duration_ns)) OVER (), 0) AS kernel_time_pct
FROM kernel_events AS k
ASOF JOIN owners AS o ON o.start_ns <= k.start_ns
WHERE k.start_ns < o.end_ns AND k.process_id = coalesce(o.process_id, k.process_id)
GROUP BY k.shape_id;

COMMENT ON VIEW _steady_shapes IS 'Which kernels ran in the steady steps, and in what shape; in the whole scope where there are no steps. One row per shape.';
COMMENT ON COLUMN _steady_shapes.shape_id IS 'As in `kernel_events` and `launch_shapes`';
COMMENT ON COLUMN _steady_shapes.name_id IS 'Id of the kernel''s name';
COMMENT ON COLUMN _steady_shapes.calls IS 'How many started in these steps';
COMMENT ON COLUMN _steady_shapes.total_ns IS 'Sum of their durations';
COMMENT ON COLUMN _steady_shapes.kernel_time_pct IS 'Its share of all kernel time of these steps';
