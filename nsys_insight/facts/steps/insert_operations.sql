-- The GPU operations of the process in a range of correlation ids, each with its launch call. The first range also has
-- the operations without an id. The words are enum constants that are cast once: inserting plain words takes several
-- times as long.
INSERT INTO internal.step_launched BY NAME
WITH operations AS (
    SELECT
        'kernel'::ENUM ('kernel', 'copy', 'memset', 'graph', 'H2D', 'D2H') AS kind, start_ns,
        greatest(start_ns, end_ns) AS end_ns, NULL::BIGINT AS size_bytes, device_id, stream_id, correlation_id,
        name_id, dims_of(grid_x, grid_y, grid_z) AS grid, dims_of(block_x, block_y, block_z) AS block
    FROM kernel_events
    WHERE process_id = $process
    UNION ALL BY NAME
    SELECT
        (
            CASE label WHEN 'H2D copy' THEN 'H2D' WHEN 'D2H copy' THEN 'D2H' ELSE kind END
        )::ENUM ('kernel', 'copy', 'memset', 'graph', 'H2D', 'D2H') AS kind,
        label LIKE 'UM %' AS is_migration, start_ns, greatest(start_ns, end_ns) AS end_ns, size_bytes, device_id,
        stream_id, correlation_id
    FROM gpu_ops
    WHERE kind <> 'kernel' AND process_id = $process
),
operations_in_ids AS (
    FROM operations
    WHERE ($from_id IS NULL OR correlation_id >= $from_id)
        AND ($to_id IS NULL OR correlation_id < $to_id OR ($from_id IS NULL AND correlation_id IS NULL))
)
SELECT o.*, a.start AS call_ns, a."end" AS returned_ns, a.call_group
FROM operations_in_ids AS o
LEFT JOIN (
    SELECT r.correlationId, r.start, r."end", n.call_group
    FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME AS r
    JOIN (
        SELECT name_id, call_group::ENUM ('launch', 'graph launch', 'copy', 'memset') AS call_group
        FROM _api_names WHERE call_group IN ('launch', 'graph launch', 'copy', 'memset')
    ) AS n ON n.name_id = r.nameId
    WHERE pid_of(r.globalTid) = $process AND r.eventClass IS DISTINCT FROM 67
        AND ($from_id IS NULL OR r.correlationId >= $from_id) AND ($to_id IS NULL OR r.correlationId < $to_id)
) AS a ON a.correlationId = o.correlation_id
