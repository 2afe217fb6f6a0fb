/*
title = "The GPU waits for launches"
family = "launch"
meaning = """
The host launches kernels more slowly than the GPU runs them, so the GPU is idle between them; a CUDA graph would save little,
or no steps were found that repeat."""
action = """
Launch fewer and larger kernels: batch, fuse, use the library's call for all of it."""
caveat = """
The margin is small: without the profiler expect three quarters or less."""
report = "classify"

[params.slow_launch_ns]
default = 100000
help = "What the GPU waits for each launch call, above which few slow launches are to blame, not their number (as slow-launches)"
*/
WITH launched AS (
    SELECT single_launches AS calls, launch_call_ns AS call_ns, ' a step' AS per FROM graph_candidates_report
    UNION ALL
    SELECT count(*), avg(duration_ns), ''
    FROM api_calls
    WHERE call_group IN ('launch', 'graph launch') AND NOT EXISTS (FROM graph_candidates_report)
)
SELECT
    l.recoverable_ns,
    100 * l.recoverable_ns / w.time_ns AS wall_pct,
    NULL AS place,
    'the GPU is idle ' || time_text(l.time_ns) || ': ' || coalesce(l.evidence, '')
        || (SELECT '; ' || counted_text(calls, 'launch call') || ' of ' || time_text(call_ns) || per FROM launched WHERE calls > 0) AS evidence
FROM (FROM classify_report WHERE part = 'launch') AS l, (FROM classify_report WHERE part = 'wall') AS w
WHERE l.see = 'graph-candidates' AND NOT EXISTS (FROM graph_candidates_report WHERE verdict <> 'no')
    AND NOT EXISTS (FROM launched WHERE calls > 0 AND calls * $slow_launch_ns <= l.time_ns)
