CREATE VIEW gpu_ops_in_nvtx AS
SELECT
    o.kind, o.start_ns, o.end_ns, o.duration_ns, o.name_id, o.label, o.size_bytes, o.device_id, o.stream_id,
    o.process_id, o.correlation_id,
    a.thread_id,
    a.start_ns AS api_start_ns,
    p.range_id,
    o.graph_node_id
FROM gpu_ops AS o
LEFT JOIN api_calls AS a
    ON a.process_id = o.process_id AND a.correlation_id = o.correlation_id
    AND a.call_group IN ('launch', 'graph launch', 'copy', 'memset')
ASOF LEFT JOIN nvtx_places AS p
    ON p.process_id = a.process_id AND p.thread_id = a.thread_id AND p.start_ns <= a.start_ns;

COMMENT ON VIEW gpu_ops_in_nvtx IS
    'GPU operations with the innermost NVTX range that was open on the launching thread when the launch '
    'call began: not what overlaps them on the GPU.';
COMMENT ON COLUMN gpu_ops_in_nvtx.kind IS 'kernel, copy, memset or graph';
COMMENT ON COLUMN gpu_ops_in_nvtx.start_ns IS 'When it started on the GPU';
COMMENT ON COLUMN gpu_ops_in_nvtx.end_ns IS 'When it ended on the GPU';
COMMENT ON COLUMN gpu_ops_in_nvtx.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN gpu_ops_in_nvtx.name_id IS 'A kernel''s name, in `strings` and `kernel_names`';
COMMENT ON COLUMN gpu_ops_in_nvtx.label IS 'What other operations are called';
COMMENT ON COLUMN gpu_ops_in_nvtx.size_bytes IS 'Bytes copied or set';
COMMENT ON COLUMN gpu_ops_in_nvtx.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN gpu_ops_in_nvtx.stream_id IS 'CUDA stream, numbered by CUPTI';
COMMENT ON COLUMN gpu_ops_in_nvtx.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN gpu_ops_in_nvtx.correlation_id IS 'Joins with `api_calls`, together with process_id';
COMMENT ON COLUMN gpu_ops_in_nvtx.thread_id IS 'Thread that launched it';
COMMENT ON COLUMN gpu_ops_in_nvtx.api_start_ns IS 'When the launch call began';
COMMENT ON COLUMN gpu_ops_in_nvtx.range_id IS 'The innermost range, as in `nvtx_nesting`; NULL outside all ranges';
COMMENT ON COLUMN gpu_ops_in_nvtx.graph_node_id IS 'CUDA graph node that ran it; NULL or 0 outside graphs';
