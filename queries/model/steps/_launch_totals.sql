CREATE VIEW _launch_totals AS
SELECT
    sum(launch_calls) AS launch_calls, sum(launch_calls - graph_launches) AS single_launches,
    sum(launch_queue_ns) AS launch_queue_ns, 100.0 * sum(queue_ns) / nullif(sum(launch_queue_ns), 0) AS queue_pct
FROM step_launches;

COMMENT ON VIEW _launch_totals IS
    'The launch calls of the steady steps and the time from launch to start, added up; one row.';
COMMENT ON COLUMN _launch_totals.launch_calls IS 'Number of launch calls';
COMMENT ON COLUMN _launch_totals.single_launches IS 'Those that do not launch a CUDA graph';
COMMENT ON COLUMN _launch_totals.launch_queue_ns IS 'From the launch calls to the start of their kernels';
COMMENT ON COLUMN _launch_totals.queue_pct IS 'The share of it in which the kernels waited in a queue';
