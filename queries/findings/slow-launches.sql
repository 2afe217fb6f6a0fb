/*
code = "NSI104"
title = "Launches are slow, and keep the GPU waiting"
family = "launch"
meaning = """
A launch takes microseconds. Here each launch keeps the GPU waiting for much longer, so their number is not what
costs."""
evidence = [
    "the GPU is idle for {idle_ns}: {idle_parts}",
    ["{launch_calls:launch call} a step", "{all_launch_calls:launch call}"],
    "the calls with the most time in total: {longest_calls}",
]
caveat = """
There is only this one run."""
effort = "function"
estimate = """
The idle time of the GPU before the launches."""
links = ["CUDA C++ Programming Guide, Lazy Loading"]
report = "classify"
when = """
SELECT 1 FROM classify_report
WHERE part = 'launch' AND see = 'graph-candidates'
    AND NOT EXISTS (FROM graph_candidates_report WHERE verdict <> 'no')"""

[items]
longest_calls = ["{call_name} {call_ns}"]

[cure.start]
any = """
Run the work once before the part that is measured: the first launch of a kernel loads or compiles its code
(CUDA_MODULE_LOADING=EAGER loads it at start), and the first call of a library initializes it."""

[cure.step]
any = """
See what the host does there: nsys-insight gaps. It repeats in each step, so it is not start-up."""

[params.slow_launch_ns]
default = 100000
help = "Idle time per launch call from which a launch counts as slow (a stall, as in stall-place; a launch takes 5 µs)"
*/
WITH launch_totals AS (
    SELECT single_launches AS calls, true AS is_per_step FROM graph_candidates_report
    UNION ALL
    SELECT count(*), false
    FROM api_calls
    WHERE call_group IN ('launch', 'graph launch') AND NOT EXISTS (FROM graph_candidates_report)
),
longest_calls AS (
    SELECT name AS call_name, sum(duration_ns)::BIGINT AS call_ns
    FROM outer_api_calls
    WHERE call_group NOT IN ('sync', 'copy', 'alloc', 'free')
    GROUP BY name
    ORDER BY call_ns DESC, name
    LIMIT 2
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
    NULL AS place,
    CASE WHEN EXISTS (FROM steps WHERE phase = 'steady') THEN 'step' ELSE 'start' END AS cure_case,
    l.time_ns AS idle_ns,
    coalesce(l.evidence, 'launch calls') AS idle_parts,
    CASE WHEN t.is_per_step THEN t.calls END AS launch_calls,
    t.calls AS all_launch_calls,
    CASE
        WHEN o.is_most
            THEN (SELECT list({'call_name': call_name, 'call_ns': call_ns} ORDER BY call_ns DESC) FROM longest_calls)
    END AS longest_calls
FROM (FROM classify_report WHERE part = 'launch') AS l, (FROM classify_report WHERE part = 'wall') AS w,
    launch_totals AS t, other_call_share AS o
WHERE l.see = 'graph-candidates' AND NOT EXISTS (FROM graph_candidates_report WHERE verdict <> 'no')
    AND t.calls > 0 AND t.calls * $slow_launch_ns <= l.time_ns
