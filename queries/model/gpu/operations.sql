CREATE VIEW operations AS
SELECT
    coalesce(n.name, o.label) AS op, o.kind, o.start_ns, o.end_ns, o.duration_ns, o.size_bytes, o.device_id,
    o.stream_id, o.process_id, o.correlation_id
FROM gpu_ops AS o
LEFT JOIN strings AS n USING (name_id);

COMMENT ON VIEW operations IS
    'Everything that keeps a GPU busy, with its name: kernels, copies, memsets and whole-graph launches, one row each.';
COMMENT ON COLUMN operations.op IS 'The kernel''s name, or H2D copy, memset, graph 4';
COMMENT ON COLUMN operations.kind IS 'kernel, copy, memset or graph';
COMMENT ON COLUMN operations.start_ns IS 'When it started on the GPU';
COMMENT ON COLUMN operations.end_ns IS 'When it ended on the GPU';
COMMENT ON COLUMN operations.duration_ns IS 'end_ns - start_ns';
COMMENT ON COLUMN operations.size_bytes IS 'Bytes copied or set';
COMMENT ON COLUMN operations.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN operations.stream_id IS 'CUDA stream, numbered by CUPTI';
COMMENT ON COLUMN operations.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN operations.correlation_id IS 'Joins with `api_calls`, together with process_id';
