/*
description = """Everything that keeps a GPU busy, with its name: kernels, copies, memsets and whole-graph launches, one
    row each."""
columns_of = "gpu_ops"
[columns]
op = "The kernel's name, or H2D copy, memset, graph 4"
*/
SELECT
    coalesce(n.name, o.label) AS op, o.kind, o.start_ns, o.end_ns, o.duration_ns, o.size_bytes, o.device_id,
    o.stream_id, o.process_id, o.correlation_id
FROM gpu_ops AS o
LEFT JOIN strings AS n USING (name_id);
