/*
description = "How the trace shows CUDA graphs, one row."
stored = true
[columns]
calls = "Launch calls of graphs; NULL without"
node_kernels = "Kernels of graphs that were traced per node"
node_ns = "Sum of their durations; NULL without"
kernel_ns = "Sum of the durations of all kernels; NULL without"
wholes = "Graphs that were traced as a whole; NULL without"
whole_pct = "Share of GPU time in graphs that were traced as a whole"
*/
SELECT c.calls, k.*, o.wholes, o.whole_pct
FROM (
    SELECT
        count(*) FILTER (graphNodeId > 0) AS node_kernels,
        sum(duration(start, "end")) FILTER (graphNodeId > 0)::BIGINT AS node_ns,
        sum(duration(start, "end"))::BIGINT AS kernel_ns
    FROM raw.CUPTI_ACTIVITY_KIND_KERNEL
) AS k
CROSS JOIN (SELECT sum(calls) AS calls FROM _call_counts WHERE call_group = 'graph launch') AS c
CROSS JOIN (
    SELECT
        sum(operations) FILTER (kind = 'graph') AS wholes,
        100.0 * sum(gpu_ns) FILTER (kind = 'graph') / sum(gpu_ns) AS whole_pct
    FROM _operation_counts
) AS o;
