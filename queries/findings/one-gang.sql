/*
code = "NSI423"
title = "An OpenACC construct runs with one gang"
family = "one-gang"
explains = ["kernel-time", "small-grid", "low-occupancy", "one-block", "small-blocks"]
meaning = "A gang runs on one SM: the rest of the GPU does nothing while the construct runs."
evidence = [
    "{place} starts {gangs:gang} on a GPU of {sm_count} SMs",
    "{kernels:kernel} {per} of {mean_ns} on average, {kernel_time_pct} of kernel time",
    "{workers:worker} per gang, vector length {vector_length}",
]
skip_if = "The loop has dependences between its iterations, or other kernels run on the other SMs at the same time."
effort = "line"
estimate = "High: the time of the kernels without the share of the SMs that they use. Low: half of it."
links = ["OpenACC Programming and Best Practices Guide, Optimize Loops"]
report = "openacc"
when = "SELECT 1 FROM openacc_events WHERE gangs = 1 LIMIT 1"

[fix]
any = """
Give the outer loop gang parallelism: parallel loop gang vector, without num_gangs(1), serial or seq. If the compiler
reports a dependence (-Minfo=accel), remove it, or state that there is none with independent; sums need a reduction
clause."""

[params]
min_avg_ns = [20000, "Shorter kernels are latency-bound, whatever their gangs (four launches)"]
*/
WITH ranges AS MATERIALIZED (
    SELECT
        dense_rank() OVER (ORDER BY e.source_file, e.line, e.kernel) AS group_id, e.start_ns, e.end_ns AS close_ns,
        thread_of(e.thread_id, e.process_id) AS thread, e.gangs, e.workers, e.vector_length,
        coalesce(e.source_file || coalesce(':' || e.line, ''), e.kernel, e.name) AS place
    FROM (FROM openacc_events WHERE gangs = 1) AS e
    ASOF JOIN _steady_windows AS w ON w.host_start_ns <= e.start_ns
    WHERE e.start_ns < w.host_end_ns AND e.process_id = coalesce(w.process_id, e.process_id)
),
constructs AS (
    SELECT
        group_id, any_value(place) AS place, max(gangs) AS gangs, max(workers) AS workers,
        max(vector_length) AS vector_length
    FROM ranges
    GROUP BY group_id
),
slowest AS (
    SELECT c.*, o.kernels, o.kernel_ns
    FROM constructs AS c JOIN _operations_in('ranges') AS o USING (group_id)
    WHERE o.kernels > 0 AND o.kernel_ns / o.kernels >= $min_avg_ns
    ORDER BY o.kernel_ns DESC, c.place
    LIMIT 1
)
SELECT
    -- Kernels that run at the same time share what is saved.
    s.kernel_ns / t.units * (1 - 1 / g.sm_count) * least(1, t.busy_ns / t.kernel_ns) AS saved_ns,
    least(saved_ns, limits.high_limit_ns) AS recoverable_ns,
    least(0.5 * saved_ns, limits.low_limit_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    s.place, s.gangs, g.sm_count, s.kernels / t.units AS kernels, s.kernel_ns / s.kernels AS mean_ns,
    100 * s.kernel_ns / t.units / t.kernel_ns AS kernel_time_pct, s.workers, s.vector_length
FROM slowest AS s, _step_totals AS t, _step_limits AS limits, (SELECT max(sm_count) AS sm_count FROM launch_shapes) AS g
WHERE saving_low_ns > 0
