/*
title = "The profiler itself takes time"
family = "profiler"
meaning = """
Part of the wall time is nsys's own work: writing its buffers, or tracing the nodes of CUDA graphs. Without the
profiler, the program is faster by that much."""
action = """
Take the wall time from a run without the profiler, or capture less: --cuda-graph-trace=graph, no backtraces, no
osrt."""
caveat = """
It is hidden behind the GPU's work."""
report = "classify"
*/
SELECT
    NULL AS recoverable_ns,
    wall_pct,
    NULL AS place,
    time_text(time_ns) || ' in which the GPU waits for the profiler'
        || coalesce(': ' || nullif(evidence, ''), '') AS evidence
FROM classify_report
WHERE part = 'profiler'
