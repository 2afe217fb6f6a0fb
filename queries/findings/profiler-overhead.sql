/*
code = "NSI902"
title = "The profiler itself takes time"
family = "profiler"
meaning = """
Part of the wall time is nsys's own work: writing its buffers, or tracing the nodes of CUDA graphs. Without the
profiler, the program is faster by that much."""
evidence = [
    [
        "{profiler_ns} in which the GPU waits for the profiler: {parts}",
        "{profiler_ns} in which the GPU waits for the profiler",
    ],
]
caveat = """
It is hidden behind the GPU's work."""
effort = "flag"
links = ["Nsight Systems User Guide, CLI Profile Command Switch Options: --cuda-graph-trace"]
example = "sample_traces/decode_graph_node.sqlite"
report = "classify"

[cure]
any = """
Take the wall time from a run without the profiler, or capture less: --cuda-graph-trace=graph, no backtraces, no
osrt."""
*/
SELECT
    NULL AS recoverable_ns,
    wall_pct,
    NULL AS place,
    time_ns AS profiler_ns,
    nullif(evidence, '') AS parts
FROM classify_report
WHERE part = 'profiler'
