CREATE VIEW kernels_in_nvtx AS
SELECT
    o.start_ns, o.end_ns, o.duration_ns, s.name, o.name_id, o.device_id, o.stream_id, o.process_id, o.thread_id,
    o.correlation_id, o.range_id, n.name AS range_name, n.path AS nvtx_path, n.depth,
    g.nvtx_path AS captured_path
FROM gpu_ops_in_nvtx AS o
LEFT JOIN strings AS s ON s.name_id = o.name_id
LEFT JOIN nvtx_nesting AS n ON n.range_id = o.range_id
LEFT JOIN graph_nodes AS g ON g.process_id = o.process_id AND g.graph_node_id = o.graph_node_id
WHERE o.kind = 'kernel';

COMMENT ON VIEW kernels_in_nvtx IS 'Kernels with the innermost NVTX range that launched them, and its path.';
COMMENT ON COLUMN kernels_in_nvtx.start_ns IS 'When the kernel started on the GPU';
COMMENT ON COLUMN kernels_in_nvtx.end_ns IS 'When it ended on the GPU';
COMMENT ON COLUMN kernels_in_nvtx.duration_ns IS 'end_ns - start_ns; 0 where it ends before it starts';
COMMENT ON COLUMN kernels_in_nvtx.name IS 'The demangled name';
COMMENT ON COLUMN kernels_in_nvtx.name_id IS 'Id of the name, in `kernel_names`';
COMMENT ON COLUMN kernels_in_nvtx.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN kernels_in_nvtx.stream_id IS 'CUDA stream, numbered by CUPTI';
COMMENT ON COLUMN kernels_in_nvtx.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN kernels_in_nvtx.thread_id IS 'Thread that launched it';
COMMENT ON COLUMN kernels_in_nvtx.correlation_id IS 'Joins with `api_calls`, together with process_id';
COMMENT ON COLUMN kernels_in_nvtx.range_id IS 'The innermost range, as in `nvtx_nesting`; NULL outside all ranges';
COMMENT ON COLUMN kernels_in_nvtx.range_name IS 'Its name';
COMMENT ON COLUMN kernels_in_nvtx.nvtx_path IS 'The names of the ranges around it, from the top down, joined by /';
COMMENT ON COLUMN kernels_in_nvtx.depth IS 'How many ranges are around the kernel';
COMMENT ON COLUMN kernels_in_nvtx.captured_path IS
    'For a kernel of a CUDA graph: the ranges around the capture of its node; NULL where that is not recorded';
