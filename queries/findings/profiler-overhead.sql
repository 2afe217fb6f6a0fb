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
skip_if = "It is hidden behind the GPU's work."
effort = "flag"
links = ["Nsight Systems User Guide, CLI Profile Command Switch Options: --cuda-graph-trace"]
example = "sample_traces/decode_graph_node.sqlite"
report = "classify"

[fix]
any = """
Take the wall time from a run without the profiler, or capture less: --cuda-graph-trace=graph,
--cudabacktrace=none, and -t without osrt."""
*/
SELECT
    NULL AS recoverable_ns,
    wall_pct,
    NULL AS place,
    time_ns AS profiler_ns,
    nullif(evidence, '') AS parts
FROM classify_report
WHERE part = 'profiler'
