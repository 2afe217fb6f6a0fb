CREATE TABLE IF NOT EXISTS facts.operation_counts (
    kind VARCHAR, process_id BIGINT, device_id BIGINT, stream_id BIGINT, name_id BIGINT, label VARCHAR, operations BIGINT,
    called BIGINT, gpu_ns BIGINT
);

INSERT INTO facts.operation_counts BY NAME
SELECT
    o.kind, o.process_id, o.device_id, o.stream_id, o.name_id, o.label, count(*) AS operations,
    count(c.call) FILTER (o.kind = 'kernel') AS called,
    sum(o.duration_ns)::BIGINT AS gpu_ns
FROM gpu_ops AS o
LEFT JOIN (
    SELECT call_of(correlation_id, process_id) AS call
    FROM api_calls
    WHERE call_group IN ('launch', 'graph launch')
) AS c ON c.call = call_of(o.correlation_id, o.process_id)
GROUP BY ALL;
