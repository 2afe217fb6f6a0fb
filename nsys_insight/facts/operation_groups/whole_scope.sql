-- No step is steady: the operations of the entire scope, unless they are too many.
CREATE OR REPLACE TABLE internal.grouped_operations AS
SELECT
    process_id, device_id, stream_id, 'kernel' AS kind, NULL::VARCHAR AS label, name_id,
    dims_of(grid_x, grid_y, grid_z) AS grid, dims_of(block_x, block_y, block_z) AS block,
    start_ns, greatest(start_ns, end_ns) AS end_ns, NULL::BIGINT AS size_bytes, NULL::BIGINT AS host_ns,
    coalesce(graph_node_id, 0) <> 0 AS is_in_graph, 1.0 AS units, NULL::BIGINT AS step,
    NULL::BIGINT AS steps
FROM kernel_events
WHERE (SELECT count(*) FROM kernel_events) <= $most
UNION ALL
SELECT
    process_id, device_id, stream_id, kind,
    CASE
        WHEN label LIKE 'UM %' THEN 'migration'
        WHEN kind = 'copy' AND label NOT IN ('H2D copy', 'D2H copy') THEN 'other copy'
        WHEN kind = 'graph' THEN 'graph'
        ELSE label
    END,
    NULL, NULL, NULL, start_ns, greatest(start_ns, end_ns), size_bytes, NULL, coalesce(graph_node_id, 0) <> 0, 1.0,
    NULL, NULL
FROM gpu_ops
WHERE kind <> 'kernel' AND (SELECT count(*) FROM kernel_events) <= $most
