CREATE VIEW _step_totals AS
WITH budget AS (
    SELECT
        sum(time_ns)::DOUBLE AS all_ns,
        coalesce(sum(time_ns) FILTER (part IN ('gpu', 'copy', 'communication')), 0)::DOUBLE AS busy_ns,
        count(DISTINCT (step, gpu_id)) AS gpu_steps, bool_and(step IS NOT NULL) AS has_steps
    FROM step_budget
),
-- On the thread that launches: what is left of a step without its waits.
host_times AS (
    SELECT
        avg(host_end_ns - host_start_ns - api_sync_ns) AS host_ns, avg(launch_calls) AS launch_calls,
        avg(sync_calls) AS sync_calls
    FROM steps
    WHERE phase = 'steady' AND host_end_ns < 9223372036854775807
)
SELECT
    b.has_steps,
    b.gpu_steps * CASE WHEN b.has_steps THEN coalesce(m.tokens_per_step, 1) ELSE 1 END AS units,
    b.all_ns / units AS wall_ns,
    b.busy_ns / units AS busy_ns,
    (b.all_ns - b.busy_ns) / units AS idle_ns,
    (SELECT sum(total_ns) FROM _steady_shapes) / units AS kernel_ns,
    h.host_ns / coalesce(m.tokens_per_step, 1) AS host_floor_ns,
    h.launch_calls / coalesce(m.tokens_per_step, 1) AS launch_calls,
    h.sync_calls / coalesce(m.tokens_per_step, 1) AS sync_calls
FROM budget AS b
CROSS JOIN host_times AS h
LEFT JOIN step_method AS m ON true;

COMMENT ON VIEW _step_totals IS
    'One row: the times of a step (or token) as means over the steady steps and the GPUs; of the whole scope where '
    'there are no steps. Rules divide sums over steady steps by `units`.';
COMMENT ON COLUMN _step_totals.has_steps IS 'Whether steps were found';
COMMENT ON COLUMN _step_totals.units IS
    'Steady steps times GPUs times tokens per step; the GPUs where there are no steps';
COMMENT ON COLUMN _step_totals.wall_ns IS 'Wall time of a step';
COMMENT ON COLUMN _step_totals.busy_ns IS 'Time in which the GPU was busy';
COMMENT ON COLUMN _step_totals.idle_ns IS 'Time in which it was idle';
COMMENT ON COLUMN _step_totals.kernel_ns IS 'Sum of the durations of the kernels';
COMMENT ON COLUMN _step_totals.host_floor_ns IS
    'Time of the host between the starts of two steps without its waits: no change of the GPU''s work makes a step '
    'shorter; NULL where there are no steps';
COMMENT ON COLUMN _step_totals.launch_calls IS 'Launch calls of a step';
COMMENT ON COLUMN _step_totals.sync_calls IS 'Calls of a step that wait';
