/*
description = "Kernels with the innermost NVTX range that launched them, and its path."
[columns]
start_ns = "When the kernel started on the GPU"
end_ns = "When the kernel ended on the GPU"
name = "The demangled name"
name_id = "Id of the name, in `kernel_names`"
thread_id = "Thread that launched it"
range_id = "The innermost range, as in `nvtx_nesting`; NULL outside all ranges"
range_name = "Name of the innermost range"
nvtx_path = "The names of the ranges around it, from the top down, joined by /"
depth = "How many ranges are around the kernel"
captured_path = """For a kernel of a CUDA graph: the ranges around the capture of its node; NULL where that is not
    recorded"""
*/
-- A join copies its texts for each range, and paths are long: so it reads their numbers.
SELECT
    o.start_ns, o.end_ns, o.duration_ns, s.name, o.name_id, o.device_id, o.stream_id, o.process_id, o.thread_id,
    o.correlation_id, o.range_id, n.name AS range_name, p.path AS nvtx_path, n.depth,
    g.nvtx_path AS captured_path
FROM gpu_ops_in_nvtx AS o
LEFT JOIN strings AS s ON s.name_id = o.name_id
LEFT JOIN facts.nested_ranges AS n ON n.range_id = o.range_id
LEFT JOIN facts.nvtx_paths AS p ON p.path_id = n.path_id
LEFT JOIN graph_nodes AS g ON g.process_id = o.process_id AND g.graph_node_id = o.graph_node_id
WHERE o.kind = 'kernel';
