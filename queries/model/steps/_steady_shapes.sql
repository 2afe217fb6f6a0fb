CREATE VIEW _steady_shapes AS
WITH steady AS (
    SELECT process_id, start_ns, end_ns FROM steps WHERE phase = 'steady'
),
owners AS (
    FROM steady
    UNION ALL
    SELECT NULL, start_ns, end_ns + 1 FROM wall WHERE NOT EXISTS (FROM steady)
),
shapes AS (
    SELECT
        k.name_id, k.grid_x || 'x' || k.grid_y || 'x' || k.grid_z AS grid, k.block_x || 'x' || k.block_y || 'x' || k.block_z AS block,
        count(*) AS calls, sum(k.duration_ns)::BIGINT AS total_ns
    FROM kernel_events AS k
    ASOF JOIN owners AS o ON o.start_ns <= k.start_ns
    WHERE k.start_ns < o.end_ns AND k.process_id = coalesce(o.process_id, k.process_id)
    GROUP BY ALL
)
SELECT
    coalesce(n.name, '(no name)') AS name, n.family, s.grid, s.block, s.calls, s.total_ns, s.total_ns / s.calls AS avg_ns,
    100.0 * s.total_ns / nullif((SELECT sum(total_ns) FROM shapes), 0) AS kernel_time_pct
FROM shapes AS s
LEFT JOIN kernel_names AS n USING (name_id);

COMMENT ON VIEW _steady_shapes IS 'Which kernels ran in the steady steps, one row per name, grid and block; those of the whole scope where there are no steps.';
COMMENT ON COLUMN _steady_shapes.name IS 'The kernel';
COMMENT ON COLUMN _steady_shapes.family IS 'Its family';
COMMENT ON COLUMN _steady_shapes.grid IS 'Blocks in the grid, x × y × z';
COMMENT ON COLUMN _steady_shapes.block IS 'Threads in a block, x × y × z';
COMMENT ON COLUMN _steady_shapes.calls IS 'How many started in these steps';
COMMENT ON COLUMN _steady_shapes.total_ns IS 'Sum of their durations';
COMMENT ON COLUMN _steady_shapes.avg_ns IS 'Mean of their durations';
COMMENT ON COLUMN _steady_shapes.kernel_time_pct IS 'Its share of all kernel time of these steps';
