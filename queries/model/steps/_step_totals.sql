/*
description = """One row: the times of a step (or token) as means over the steady steps and the GPUs; of the whole scope
    where there are no steps. Rules divide sums over steady steps by `units`."""
stored = true
[columns]
has_steps = "Whether steps were found"
units = "Steady steps times GPUs times tokens per step; the GPUs where there are no steps"
wall_ns = "Wall time of a step"
busy_ns = "Time in which the GPU was busy"
idle_ns = "Time in which it was idle"
kernel_ns = "Sum of the durations of the kernels"
host_floor_ns = """Time of the host between the starts of two steps without its waits: no change of the GPU's work makes
    a step shorter; NULL where there are no steps"""
launch_calls = "Launch calls of a step"
sync_calls = "Calls of a step that wait"
*/
-- A table because most findings read it: as a view it was planned again in each of them.
WITH budget AS (
    SELECT
        sum(time_ns)::DOUBLE AS all_ns,
        coalesce(sum(time_ns) FILTER (part IN ('gpu', 'copy', 'communication')), 0)::DOUBLE AS busy_ns,
        count(DISTINCT (step, gpu_id)) AS gpu_steps, bool_and(step IS NOT NULL) AS has_steps
    FROM step_budget
),
closed_steps AS (
    FROM steps WHERE phase = 'steady' AND host_end_ns < 9223372036854775807
),
-- Waits in synchronizing calls and in blocking copies.
wait_times AS (
    SELECT coalesce(sum(w.wait_ns), 0) AS wait_ns
    FROM waits AS w
    ASOF JOIN closed_steps AS s ON s.process_id = w.process_id AND s.host_start_ns <= w.start_ns
    WHERE w.start_ns < s.host_end_ns
),
-- On the thread that launches: what is left of a step without its waits.
host_times AS (
    SELECT
        (sum(host_end_ns - host_start_ns) - (SELECT wait_ns FROM wait_times)) / count(*) AS host_ns,
        avg(launch_calls) AS launch_calls, avg(sync_calls) AS sync_calls
    FROM closed_steps
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
