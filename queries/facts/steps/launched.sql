-- What the process put on its GPUs, with the launch call of each operation.
CREATE OR REPLACE TABLE internal.step_launched AS
SELECT
    CASE o.label WHEN 'H2D copy' THEN 'H2D' WHEN 'D2H copy' THEN 'D2H' ELSE o.kind END::ENUM ('kernel', 'copy', 'memset', 'graph', 'H2D', 'D2H') AS kind,
    o.start_ns, greatest(o.start_ns, o.end_ns) AS end_ns, o.size_bytes, o.device_id, a.start_ns AS call_ns
FROM gpu_ops AS o
LEFT JOIN (
    SELECT correlation_id, start_ns
    FROM api_calls
    WHERE process_id = $process AND call_group IN ('launch', 'graph launch', 'copy', 'memset')
) AS a ON a.correlation_id = o.correlation_id
WHERE o.process_id = $process
