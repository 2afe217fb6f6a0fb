/*
code = "NSI902"
title = "Profiler overhead"
family = "profiler"
meaning = """
In part of the wall time, the GPU waits for nsys's own work: writing its buffers, or tracing the nodes of CUDA graphs.
Without the profiler, this time does not occur."""
evidence = [
    [
        "{profiler_ns} in which the GPU waits for the profiler: {parts}",
        "{profiler_ns} in which the GPU waits for the profiler",
    ],
]
skip_if = "You compare traces that were captured with the same flags."
effort = "flag"
links = ["Nsight Systems User Guide, CLI Profile Command Switch Options: --cuda-graph-trace"]
example = "sample_traces/decode_graph_node.sqlite"
report = "classify"
when = "SELECT 1 FROM classify_report WHERE part = 'profiler' AND wall_pct >= $shown_pct"

[fix]
any = "Take the wall time from a run without the profiler<, or capture less: {flags}>."
*/
SELECT
    NULL AS recoverable_ns,
    wall_pct,
    NULL AS place,
    time_ns AS profiler_ns,
    nullif(evidence, '') AS parts,
    nullif(concat_ws(
        ', ', CASE WHEN parts IS NOT NULL THEN '--cuda-graph-trace=graph' END,
        CASE WHEN EXISTS (FROM api_calls WHERE callchain_id IS NOT NULL) THEN '--cudabacktrace=none' END,
        CASE WHEN EXISTS (FROM os_calls) THEN '-t without osrt' END
    ), '') AS flags
FROM classify_report
WHERE part = 'profiler'
