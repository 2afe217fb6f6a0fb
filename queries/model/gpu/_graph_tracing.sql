CREATE VIEW _graph_tracing AS
SELECT
    (SELECT sum(calls) FROM _call_counts WHERE call_group = 'graph launch') AS calls,
    (SELECT count(*) FROM kernel_events WHERE graph_node_id > 0) AS node_kernels,
    (SELECT sum(operations) FROM _operation_counts WHERE kind = 'graph') AS wholes,
    (SELECT 100.0 * sum(gpu_ns) FILTER (WHERE kind = 'graph') / sum(gpu_ns) FROM _operation_counts) AS whole_pct;

COMMENT ON VIEW _graph_tracing IS 'How the trace shows CUDA graphs, one row.';
COMMENT ON COLUMN _graph_tracing.calls IS 'Launch calls of graphs; NULL without';
COMMENT ON COLUMN _graph_tracing.node_kernels IS 'Kernels of graphs that were traced per node';
COMMENT ON COLUMN _graph_tracing.wholes IS 'Graphs that were traced as a whole; NULL without';
COMMENT ON COLUMN _graph_tracing.whole_pct IS 'Their share of GPU time';
