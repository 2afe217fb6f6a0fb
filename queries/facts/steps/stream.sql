-- The operations of one stream, each as a number that stands for what it is: the name and the grid of a kernel
-- ($shapes), the direction of a copy. With $whole_graphs, all that one graph launch runs is one operation.
CREATE OR REPLACE VIEW internal.step_ops AS
SELECT
    hash(
        name_id, CASE WHEN $shapes THEN grid_x END, CASE WHEN $shapes THEN grid_y END, CASE WHEN $shapes THEN grid_z END
    ) AS token,
    'kernel' AS kind, start_ns, greatest(start_ns, end_ns) AS end_ns, greatest(duration_ns, 0) AS duration_ns,
    correlation_id
FROM kernel_events
WHERE process_id = $process AND device_id = $device AND stream_id = $stream
    AND NOT ($whole_graphs AND coalesce(graph_node_id, 0) > 0)
UNION ALL
SELECT
    hash('graph', graph_node_id >> 32), 'graph', min(start_ns), max(end_ns), sum(greatest(duration_ns, 0))::BIGINT,
    correlation_id
FROM kernel_events
WHERE process_id = $process AND device_id = $device AND stream_id = $stream AND $whole_graphs AND graph_node_id > 0
GROUP BY correlation_id, graph_node_id >> 32
UNION ALL
SELECT
    hash('graph', graph_exec_id), 'graph', start_ns, greatest(start_ns, end_ns), greatest(duration_ns, 0),
    correlation_id
FROM graph_launches
WHERE process_id = $process AND device_id = $device AND stream_id = $stream
UNION ALL
SELECT hash(copy_kind), copy_kind, start_ns, greatest(start_ns, end_ns), greatest(duration_ns, 0), correlation_id
FROM memcpys
WHERE process_id = $process AND device_id = $device AND stream_id = $stream
    AND NOT ($whole_graphs AND coalesce(graph_node_id, 0) > 0)
UNION ALL
SELECT hash('memset'), 'memset', start_ns, greatest(start_ns, end_ns), greatest(duration_ns, 0), correlation_id
FROM memsets
WHERE process_id = $process AND device_id = $device AND stream_id = $stream
