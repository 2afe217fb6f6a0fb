-- What the process put on its GPUs, with the launch call of each operation. Of words, constants are cast, once: to write words takes
-- several times as long.
CREATE OR REPLACE TABLE internal.step_launched AS
WITH operations AS (
    SELECT
        'kernel'::ENUM ('kernel', 'copy', 'memset', 'graph', 'H2D', 'D2H') AS kind, start_ns, greatest(start_ns, end_ns) AS end_ns, NULL::BIGINT AS size_bytes, device_id, correlation_id,
        name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z
    FROM kernel_events
    WHERE process_id = $process
    UNION ALL BY NAME
    SELECT
        (CASE label WHEN 'H2D copy' THEN 'H2D' WHEN 'D2H copy' THEN 'D2H' ELSE kind END)::ENUM ('kernel', 'copy', 'memset', 'graph', 'H2D', 'D2H') AS kind,
        start_ns, greatest(start_ns, end_ns) AS end_ns, size_bytes, device_id, correlation_id
    FROM gpu_ops
    WHERE kind <> 'kernel' AND process_id = $process
)
SELECT o.*, a.start AS call_ns, a."end" AS returned_ns, a.call_group
FROM operations AS o
LEFT JOIN (
    SELECT r.correlationId, r.start, r."end", n.call_group
    FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME AS r
    JOIN (
        SELECT name_id, call_group::ENUM ('launch', 'graph launch', 'copy', 'memset') AS call_group
        FROM _api_names WHERE call_group IN ('launch', 'graph launch', 'copy', 'memset')
    ) AS n ON n.name_id = r.nameId
    WHERE pid_of(r.globalTid) = $process AND r.eventClass IS DISTINCT FROM 67
) AS a ON a.correlationId = o.correlation_id
