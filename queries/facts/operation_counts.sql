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
FROM _kernel_times AS k
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
