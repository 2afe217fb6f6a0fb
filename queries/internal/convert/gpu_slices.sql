-- A row per operation: track (process and two numbers), category, name, detail, start_ns, end_ns, and flow, which links
-- a call and what it launched.
WITH graph_starts AS (
    SELECT process_id, correlation_id, min(start_ns) AS start_ns FROM kernel_events
    WHERE coalesce(graph_node_id, 0) <> 0 GROUP BY ALL
), operations AS (
    SELECT k.process_id, k.device_id, k.stream_id, 'kernel' AS category, s.name,
        'grid (' || k.grid_x || ', ' || k.grid_y || ', ' || k.grid_z || '), block (' || k.block_x || ', '
            || k.block_y || ', ' || k.block_z || ')' || coalesce(', ' || k.registers_per_thread || ' registers', '')
            AS detail,
        k.start_ns, k.end_ns,
        CASE WHEN coalesce(k.graph_node_id, 0) = 0 OR f.process_id IS NOT NULL THEN k.correlation_id END AS flow
    FROM kernel_events AS k
    LEFT JOIN strings AS s USING (name_id)
    LEFT JOIN graph_starts AS f USING (process_id, correlation_id, start_ns)
    UNION ALL
    SELECT process_id, device_id, stream_id, 'copy', copy_kind,
        size_bytes || ' bytes, ' || source_memory || ' to ' || target_memory, start_ns, end_ns, correlation_id
    FROM memcpys
    UNION ALL
    SELECT process_id, device_id, stream_id, 'memset', 'memset', size_bytes || ' bytes', start_ns, end_ns,
        correlation_id
    FROM memsets
    UNION ALL
    SELECT process_id, device_id, stream_id, 'graph', 'graph ' || graph_id, NULL, start_ns, end_ns, correlation_id
    FROM graph_launches
)
SELECT * RENAME (process_id AS process) FROM operations
ORDER BY process_id, device_id, stream_id, start_ns, end_ns DESC, name
