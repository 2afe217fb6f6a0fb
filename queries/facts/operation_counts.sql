/* topic = "gpu" */
CREATE TABLE IF NOT EXISTS facts.operation_counts (
    kind VARCHAR, process_id BIGINT, device_id BIGINT, stream_id BIGINT, name_id BIGINT, label VARCHAR,
    operations BIGINT,
    called BIGINT, gpu_ns BIGINT
);

INSERT INTO facts.operation_counts BY NAME
SELECT
    'kernel' AS kind, k.process_id, k.device_id, k.stream_id, k.name_id, NULL AS label, count(*) AS operations,
    count(c.call) AS called,
    sum(k.duration_ns)::BIGINT AS gpu_ns
FROM kernel_events AS k
LEFT JOIN (
    SELECT call_of(correlation_id, process_id) AS call
    FROM api_calls
    WHERE call_group IN ('launch', 'graph launch')
) AS c ON c.call = call_of(k.correlation_id, k.process_id)
GROUP BY ALL
UNION ALL
SELECT kind, process_id, device_id, stream_id, name_id, label, count(*), 0, sum(duration_ns)::BIGINT
FROM gpu_ops
WHERE kind <> 'kernel'
GROUP BY ALL;

COMMENT ON VIEW _operation_counts IS
    'How many operations there are on each stream by kind and name, and how long they took.';
COMMENT ON COLUMN _operation_counts.kind IS 'kernel, copy, memset or graph, as in `gpu_ops`';
COMMENT ON COLUMN _operation_counts.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _operation_counts.device_id IS 'CUDA device number';
COMMENT ON COLUMN _operation_counts.stream_id IS 'CUDA stream id';
COMMENT ON COLUMN _operation_counts.name_id IS 'A kernel''s name, in `strings` and `kernel_names`';
COMMENT ON COLUMN _operation_counts.label IS 'What it is, if not a kernel, as in `gpu_ops`';
COMMENT ON COLUMN _operation_counts.operations IS 'Operations';
COMMENT ON COLUMN _operation_counts.called IS 'Kernels among them whose launch call is in the trace';
COMMENT ON COLUMN _operation_counts.gpu_ns IS 'Sum of their durations';
