-- What the process put on its GPUs, with the launch call of each operation.
CREATE OR REPLACE TABLE internal.step_launched AS
WITH operations AS (
    SELECT
        'kernel' AS kind, start_ns, end_ns, NULL::BIGINT AS size_bytes, device_id, correlation_id,
        name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z
    FROM kernel_events
    WHERE process_id = $process
    UNION ALL BY NAME
    SELECT
        CASE label WHEN 'H2D copy' THEN 'H2D' WHEN 'D2H copy' THEN 'D2H' ELSE kind END AS kind,
        start_ns, end_ns, size_bytes, device_id, correlation_id
    FROM gpu_ops
    WHERE kind <> 'kernel' AND process_id = $process
)
SELECT
    o.* REPLACE (
        o.kind::ENUM ('kernel', 'copy', 'memset', 'graph', 'H2D', 'D2H') AS kind, greatest(o.start_ns, o.end_ns) AS end_ns
    ),
    a.start_ns AS call_ns, a.end_ns AS returned_ns, a.call_group::ENUM ('launch', 'graph launch', 'copy', 'memset') AS call_group
FROM operations AS o
LEFT JOIN (
    SELECT correlation_id, start_ns, end_ns, call_group
    FROM api_calls
    WHERE process_id = $process AND call_group IN ('launch', 'graph launch', 'copy', 'memset')
) AS a ON a.correlation_id = o.correlation_id
