/*
title = "The GPU waits for launches"
family = "launch"
meaning = """
The host launches kernels more slowly than the GPU runs them, so the GPU is idle in between; a CUDA graph would save
little, or no repeating steps were found."""
action = """
Launch fewer, larger kernels: batch, fuse, or use one library call for all of it."""
caveat = """
The gain is small: without the profiler, expect three quarters of it or less."""
report = "classify"
when = """
SELECT 1 FROM classify_report
WHERE part = 'launch' AND see = 'graph-candidates'
    AND NOT EXISTS (FROM graph_candidates_report WHERE verdict <> 'no')"""

[params.slow_launch_ns]
default = 100000
help = "Idle time per launch call above which a few slow launches are the cause, not their number (as in slow-launches)"
*/
WITH launch_totals AS (
    SELECT single_launches AS calls, launch_call_ns AS call_ns, ' a step' AS per_text FROM graph_candidates_report
    UNION ALL
    SELECT count(*), avg(duration_ns), ''
    FROM api_calls
    WHERE call_group IN ('launch', 'graph launch') AND NOT EXISTS (FROM graph_candidates_report)
)
SELECT
    l.recoverable_ns,
    100 * l.recoverable_ns / w.time_ns AS wall_pct,
    NULL AS place,
    'the GPU is idle for ' || time_text(l.time_ns) || ': ' || coalesce(l.evidence, '')
        || (
            SELECT '; ' || counted_text(calls, 'launch call') || ' of ' || time_text(call_ns) || per_text
            FROM launch_totals
            WHERE calls > 0
        ) AS evidence
FROM (FROM classify_report WHERE part = 'launch') AS l, (FROM classify_report WHERE part = 'wall') AS w
WHERE l.see = 'graph-candidates' AND NOT EXISTS (FROM graph_candidates_report WHERE verdict <> 'no')
    AND NOT EXISTS (FROM launch_totals WHERE calls > 0 AND calls * $slow_launch_ns <= l.time_ns)
