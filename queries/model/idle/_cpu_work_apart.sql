/* parameters = ["long_gap_ns", "launch_apart_ns"] */
-- How much of the idle time that the host causes is CPU work other than launching (apart_ns). It is the larger of the
-- idle time in long gaps, unless half of all operations follow a long gap, and the idle time beyond launch_apart_ns for
-- each launch, and the idle time in which the host touches managed memory; at most all CPU work. Sums over the steady
-- steps and their GPUs. Without steps: all CPU work of the scope if it exceeds launch_apart_ns for each launch; else
-- the part in long gaps, under the same condition.
WITH steady_steps AS (
    FROM steps WHERE phase = 'steady'
),
step_waiting_time AS (
    SELECT
        sum(idle_ns) FILTER (cause = 'launch') AS all_ns,
        sum(idle_ns) FILTER (host IN ('CPU work', 'MPI calls', 'API calls', 'managed memory')) AS cpu_ns,
        coalesce(sum(idle_ns) FILTER (host = 'managed memory'), 0) AS managed_ns
    FROM step_idle
),
-- The gaps of at least long_gap_ns. DuckDB takes the rows of a list to be few; otherwise it would hash all idle time,
-- not the long gaps, for the join.
long_gaps AS MATERIALIZED (
    SELECT
        unnest(
            list({gpu_id: gpu_id, start_ns: start_ns, duration_ns: duration_ns, next_ns: next_ns}), recursive := true
        )
    FROM gpu_gaps WHERE duration_ns >= long_gap_ns
),
-- Long gaps whose next operation the host launched late: the last part of such a gap is the host's or the profiler's.
late_long_gaps AS (
    SELECT g.gpu_id, g.start_ns, g.duration_ns
    FROM long_gaps AS g
    SEMI JOIN (FROM _idle_time WHERE host IN ('late', 'profiler')) AS i ON i.gpu_id = g.gpu_id AND i.end_ns = g.next_ns
),
steady_long_gap_time AS (
    SELECT coalesce(sum(l.duration_ns), 0)::BIGINT AS all_ns
    FROM late_long_gaps AS l
    ASOF JOIN (SELECT start_ns, end_ns FROM steady_steps) AS s ON s.start_ns <= l.start_ns
    WHERE l.start_ns < s.end_ns
    HAVING count(*) < (SELECT 0.5 * sum(coalesce(kernels, launch_calls) + h2d_copies + d2h_copies) FROM steady_steps)
),
launch_totals AS (
    SELECT
        sum(launch_calls - graph_launches)::DOUBLE AS calls,
        sum(api_launch_ns) / nullif(sum(launch_calls), 0) AS call_ns,
        (SELECT greatest(count(DISTINCT gpu_id), 1) FROM step_gpus) AS gpus
    FROM steady_steps
    HAVING count(*) > 0
),
scope_waiting_time AS (
    SELECT
        coalesce(sum(idle_ns) FILTER (cause = 'launch'), 0) AS all_ns,
        coalesce(sum(idle_ns) FILTER (host IN ('CPU work', 'MPI calls', 'managed memory')), 0) AS cpu_ns,
        greatest(count(DISTINCT gpu_id), 1) AS gpus
    FROM gpu_idle
    WHERE NOT EXISTS (FROM steady_steps)
),
scope_long_gap_time AS (
    SELECT sum(duration_ns)::BIGINT AS all_ns
    FROM late_long_gaps
    HAVING count(*) < (SELECT 0.5 * count(*) FROM gpu_ops)
)
SELECT coalesce(w.all_ns, 0) AS waiting_ns, coalesce(least(w.cpu_ns, greatest(
    w.managed_ns,
    coalesce((SELECT all_ns FROM steady_long_gap_time), 0),
    w.all_ns - l.gpus * l.calls * (coalesce(l.call_ns, 0) + launch_apart_ns)
)), 0) AS apart_ns
FROM step_waiting_time AS w, launch_totals AS l
UNION ALL
SELECT all_ns, CASE WHEN cpu_ns > gpus * launch_apart_ns * (
    SELECT coalesce(sum(calls), 0) FROM _call_counts WHERE call_group IN ('launch', 'graph launch')
) THEN cpu_ns ELSE least(cpu_ns, coalesce((SELECT all_ns FROM scope_long_gap_time), 0)) END
FROM scope_waiting_time
WHERE NOT EXISTS (FROM steady_steps);
