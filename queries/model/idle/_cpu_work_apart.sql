/* parameters = ["long_gap_ns", "launch_apart_ns"] */
-- How much of the idle time that the host causes is CPU work other than launching (apart_ns). It is the larger of the
-- idle time in long gaps, unless half of all operations follow a long gap, and the idle time beyond launch_apart_ns for
-- each launch, and the idle time in which the host touches managed memory; at most all CPU work. Sums over the steady
-- steps and their GPUs. Without steps: all CPU work of the scope if it exceeds launch_apart_ns for each launch; else
-- the part in long gaps, under the same condition.
-- The gaps of at least long_gap_ns. DuckDB takes the rows of a list to be few; otherwise it would hash all idle time,
-- not the long gaps, for the join.
WITH long_gaps AS (
    SELECT
        unnest(
            list({gpu_id: gpu_id, start_ns: start_ns, duration_ns: duration_ns, next_ns: next_ns}), recursive := true
        )
    FROM gpu_gaps WHERE duration_ns >= long_gap_ns
),
-- Long gaps whose next operation the host launched late: the last part of such a gap is the host's or the profiler's.
late_long_gaps AS (
    SELECT g.start_ns, g.duration_ns
    FROM long_gaps AS g
    SEMI JOIN (FROM _idle_time WHERE host IN ('late', 'profiler')) AS i ON i.gpu_id = g.gpu_id AND i.end_ns = g.next_ns
),
long_gap_time AS (
    SELECT sum(l.duration_ns)::BIGINT AS all_ns, count(*) AS gaps
    FROM late_long_gaps AS l
    ASOF JOIN (SELECT start_ns, end_ns FROM _steady_windows) AS s ON s.start_ns <= l.start_ns
    WHERE l.start_ns < s.end_ns
)
SELECT
    coalesce(w.all_ns, 0) AS waiting_ns,
    coalesce(CASE
        WHEN w.has_steps THEN least(w.cpu_ns, greatest(
            w.managed_ns, long_ns, w.all_ns - w.gpus * w.calls * (coalesce(w.call_ns, 0) + launch_apart_ns)
        ))
        WHEN coalesce(w.cpu_ns, 0) > w.gpus * launch_apart_ns * w.calls THEN w.cpu_ns
        ELSE least(coalesce(w.cpu_ns, 0), long_ns)
    END, 0) AS apart_ns
FROM _launch_waits AS w
CROSS JOIN (
    SELECT coalesce(if(gaps < 0.5 * (SELECT operations FROM _launch_waits), all_ns, 0), 0) AS long_ns FROM long_gap_time
) AS g;
