/*
description = """Everything that keeps a GPU busy, with its name: kernels, copies, memsets and whole-graph launches, one
    row each."""
[columns]
op = "The kernel's name, or H2D copy, memset, graph 4"
kind = "kernel, copy, memset or graph"
start_ns = "When the operation started on the GPU"
end_ns = "When the operation ended on the GPU"
duration_ns = "end_ns - start_ns"
size_bytes = "Bytes copied or set"
device_id = "CUDA device number within the process"
stream_id = "CUDA stream, numbered by CUPTI"
process_id = "Operating system's process id"
correlation_id = "Joins with `api_calls`, together with process_id"
*/
SELECT
    coalesce(n.name, o.label) AS op, o.kind, o.start_ns, o.end_ns, o.duration_ns, o.size_bytes, o.device_id,
    o.stream_id, o.process_id, o.correlation_id
FROM gpu_ops AS o
LEFT JOIN strings AS n USING (name_id);
