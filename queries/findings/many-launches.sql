/*
title = "The GPU waits for launches"
family = "launch"
meaning = """
The host launches kernels more slowly than the GPU runs them, so the GPU is idle between them; no steps were found that repeat."""
action = """
Launch fewer and larger kernels: batch, fuse, use the library's call for all of it."""
caveat = """
It is only just so: without the profiler expect three quarters or less."""
report = "classify"

[params.launch_apart_ns]
default = 50000
help = "More CPU work than this for each launch is no launching (as in graph-candidates)"
*/
WITH launched AS (
    SELECT count(*) AS calls, avg(duration_ns) AS call_ns FROM api_calls WHERE call_group IN ('launch', 'graph launch')
)
SELECT
    l.recoverable_ns,
    100 * l.recoverable_ns / w.time_ns AS wall_pct,
    NULL AS place,
    'the GPU is idle ' || time_text(l.time_ns) || ': ' || coalesce(l.evidence, '')
        || (SELECT '; ' || count_text(calls) || ' launch calls of ' || time_text(call_ns) FROM launched WHERE calls > 0) AS evidence
FROM (FROM classify_report WHERE part = 'launch') AS l, (FROM classify_report WHERE part = 'wall') AS w
WHERE NOT EXISTS (FROM graph_candidates_report)
    AND coalesce((SELECT recoverable_ns FROM host_report WHERE code = 'cpu_work'), 0) <= $launch_apart_ns * (SELECT calls FROM launched)
