/*
description = "The launch calls of the steady steps and the time from launch to start, added up; one row."
[columns]
launch_calls = "Number of launch calls"
single_launches = "Launch calls that do not launch a CUDA graph"
launch_queue_ns = "From the launch calls to the start of their kernels"
queue_pct = "The share of it in which the kernels waited in a queue"
*/
SELECT
    sum(launch_calls) AS launch_calls, sum(launch_calls - graph_launches) AS single_launches,
    sum(launch_queue_ns) AS launch_queue_ns, 100.0 * sum(queue_ns) / nullif(sum(launch_queue_ns), 0) AS queue_pct
FROM step_launches;
