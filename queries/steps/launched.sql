-- What the process put on its GPUs, with the launch call of each operation.
CREATE OR REPLACE VIEW step_launched AS
SELECT
    o.kind, o.label, o.start_ns, greatest(o.start_ns, o.end_ns) AS end_ns, o.size_bytes, o.device_id, a.start_ns AS call_ns
FROM gpu_ops AS o
LEFT JOIN api_calls AS a
    ON a.process_id = o.process_id AND a.correlation_id = o.correlation_id
    AND a.call_group IN ('launch', 'graph launch', 'copy', 'memset')
WHERE o.process_id = $process
