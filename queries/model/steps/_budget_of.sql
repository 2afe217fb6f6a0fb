/* parameters = ["steps"] */
-- The budget of `steps` (step, and the columns of the view `steps`): one row per step and metric, without the causes of
-- idle time.
SELECT s.step, m.place, m.metric, m.kind, m.value::DOUBLE AS value
FROM query_table(steps) AS s, LATERAL (
    VALUES
        (1, 'wall_ns', 'time', s.duration_ns::DOUBLE),
        (2, 'gpu_busy_ns', 'time', s.gpu_busy_ns),
        (3, 'gpu_idle_ns', 'time', s.gpu_idle_ns),
        (12, 'kernel_ns', 'time', s.kernel_ns),
        (13, 'kernel_avg_ns', 'mean', s.kernel_ns / nullif(s.kernels, 0)),
        (14, 'kernel_med_ns', 'mean', s.kernel_med_ns),
        (15, 'kernels', 'count', s.kernels),
        (16, 'launch_calls', 'count', s.launch_calls),
        (17, 'graph_launches', 'count', s.graph_launches),
        (18, 'api_ns', 'time', s.api_ns),
        (19, 'api_launch_ns', 'time', s.api_launch_ns),
        (20, 'api_sync_ns', 'time', s.api_sync_ns),
        (21, 'api_copy_ns', 'time', s.api_copy_ns),
        (22, 'api_alloc_ns', 'time', s.api_alloc_ns),
        (23, 'api_other_ns', 'time', s.api_other_ns),
        (24, 'sync_calls', 'count', s.sync_calls),
        (25, 'sync_points', 'count', s.sync_points),
        (26, 'h2d_copies', 'count', s.h2d_copies),
        (27, 'h2d_bytes', 'count', s.h2d_bytes),
        (28, 'd2h_copies', 'count', s.d2h_copies),
        (29, 'd2h_bytes', 'count', s.d2h_bytes),
        (30, 'mallocs', 'count', s.mallocs),
        (31, 'frees', 'count', s.frees)
) AS m (place, metric, kind, value);
