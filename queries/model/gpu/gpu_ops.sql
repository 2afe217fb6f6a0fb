CREATE VIEW gpu_ops AS
SELECT 'kernel' AS kind, start_ns, end_ns, duration_ns, name_id, NULL::VARCHAR AS label, NULL::BIGINT AS size_bytes,
    device_id, stream_id, process_id, correlation_id, graph_node_id
FROM kernel_events
UNION ALL
SELECT 'copy', start_ns, end_ns, duration_ns, NULL, copy_kind || ' copy', size_bytes,
    device_id, stream_id, process_id, correlation_id, graph_node_id
FROM memcpys
UNION ALL
SELECT 'memset', start_ns, end_ns, duration_ns, NULL, 'memset', size_bytes,
    device_id, stream_id, process_id, correlation_id, graph_node_id
FROM memsets
UNION ALL
SELECT 'graph', start_ns, end_ns, duration_ns, NULL, 'graph ' || graph_id, NULL,
    device_id, stream_id, process_id, correlation_id, NULL
FROM graph_launches;

COMMENT ON VIEW gpu_ops IS
    'Everything that keeps a GPU busy: kernels, copies, memsets and whole-graph launches, one row each.';
COMMENT ON COLUMN gpu_ops.kind IS 'kernel, copy, memset or graph';
COMMENT ON COLUMN gpu_ops.start_ns IS 'When it started on the GPU';
COMMENT ON COLUMN gpu_ops.end_ns IS 'When it ended on the GPU';
COMMENT ON COLUMN gpu_ops.duration_ns IS 'end_ns - start_ns';
COMMENT ON COLUMN gpu_ops.name_id IS 'A kernel''s name, in `strings` and `kernel_names`; NULL for the others';
COMMENT ON COLUMN gpu_ops.label IS 'The name of other operations: H2D copy, memset, graph 4';
COMMENT ON COLUMN gpu_ops.size_bytes IS 'Bytes copied or set';
COMMENT ON COLUMN gpu_ops.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN gpu_ops.stream_id IS 'CUDA stream, numbered by CUPTI';
COMMENT ON COLUMN gpu_ops.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN gpu_ops.correlation_id IS 'Joins with `api_calls`, together with process_id';
COMMENT ON COLUMN gpu_ops.graph_node_id IS 'CUDA graph node that ran it; NULL or 0 outside graphs';
