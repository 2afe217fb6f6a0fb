/*
title = "A few slow launches keep the GPU waiting"
family = "launch"
meaning = """
A launch takes microseconds; here each launch keeps the GPU waiting for much longer, so their number is not what
costs."""
action = """
Run once before the part that is measured: the first launch of a kernel loads or compiles its code
(CUDA_MODULE_LOADING=EAGER loads it at start), and the first call of a library initializes it."""
caveat = """
There is only this one run."""
report = "classify"
when = """
SELECT 1 FROM classify_report
WHERE part = 'launch' AND see = 'graph-candidates'
    AND NOT EXISTS (FROM graph_candidates_report WHERE verdict <> 'no')"""

[params.slow_launch_ns]
default = 100000
help = "Idle time per launch call from which a launch counts as slow (a stall, as in stall-place; a launch takes 5 µs)"
*/
WITH launch_totals AS (
    SELECT single_launches AS calls, ' a step' AS per_text FROM graph_candidates_report
    UNION ALL
    SELECT count(*), ''
    FROM api_calls
    WHERE call_group IN ('launch', 'graph launch') AND NOT EXISTS (FROM graph_candidates_report)
),
longest_calls AS (
    SELECT string_agg(name || ', ' || time_text(total_ns), '; ' ORDER BY total_ns DESC, name) AS names
    FROM (
        SELECT name, sum(duration_ns)::BIGINT AS total_ns
        FROM outer_api_calls
        WHERE call_group NOT IN ('sync', 'copy', 'alloc', 'free')
        GROUP BY name
        ORDER BY total_ns DESC, name
        LIMIT 2
    )
),
-- Whether most of the time in which the host is late is in calls other than the launch that the GPU waits for.
other_call_share AS (
    SELECT coalesce(sum(time_ns) FILTER (host = 'API calls'), 0) > 0.5 * sum(time_ns) AS is_most
    FROM step_budget
    WHERE part = 'launch'
)
SELECT
    l.recoverable_ns,
    100 * l.recoverable_ns / w.time_ns AS wall_pct,
    CASE WHEN o.is_most THEN 'The GPU waits while the host is in CUDA calls' END AS title,
    CASE
        WHEN EXISTS (FROM steps WHERE phase = 'steady')
            THEN 'See what the host does there: nsys-insight gaps. It repeats in each step, so it is not start-up.'
    END AS action,
    NULL AS place,
    'the GPU is idle for ' || time_text(l.time_ns) || ': ' || coalesce(l.evidence, '') || '; '
        || counted_text(calls, 'launch call') || per_text
        || CASE
            WHEN o.is_most
                THEN coalesce('; the calls with the most time in total: ' || (SELECT names FROM longest_calls), '')
            ELSE ''
        END AS evidence
FROM (FROM classify_report WHERE part = 'launch') AS l, (FROM classify_report WHERE part = 'wall') AS w, launch_totals,
    other_call_share AS o
WHERE l.see = 'graph-candidates' AND NOT EXISTS (FROM graph_candidates_report WHERE verdict <> 'no')
    AND calls > 0 AND calls * $slow_launch_ns <= l.time_ns
