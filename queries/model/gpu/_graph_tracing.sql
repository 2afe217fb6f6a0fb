/*
description = "How the trace shows CUDA graphs, one row."
[columns]
calls = "Launch calls of graphs; NULL without"
node_kernels = "Kernels of graphs that were traced per node"
wholes = "Graphs that were traced as a whole; NULL without"
whole_pct = "Share of GPU time in graphs that were traced as a whole"
*/
SELECT
    (SELECT sum(calls) FROM _call_counts WHERE call_group = 'graph launch') AS calls,
    (SELECT count(*) FROM kernel_events WHERE graph_node_id > 0) AS node_kernels,
    (SELECT sum(operations) FROM _operation_counts WHERE kind = 'graph') AS wholes,
    (SELECT 100.0 * sum(gpu_ns) FILTER (WHERE kind = 'graph') / sum(gpu_ns) FROM _operation_counts) AS whole_pct;
