-- What the process put on its GPUs in these steps, numbered along each stream; it belongs to the step of its launch call, or
-- where the trace lacks that, to the one in whose wall it starts. `token` stands for what it is, shape aside.
CREATE OR REPLACE TABLE fusion_operations AS
WITH calls AS (
    SELECT correlation_id, min(start_ns) AS call_ns, max(end_ns) AS returned_ns, min(thread_id) AS thread_id
    FROM api_calls
    WHERE process_id = $process AND start_ns >= $host_from AND start_ns < $host_to
        AND call_group IN ('launch', 'graph launch', 'copy', 'memset')
    GROUP BY correlation_id
),
operations AS (
    SELECT
        'kernel' AS kind, name_id, NULL AS label, start_ns, greatest(start_ns, end_ns) AS end_ns, device_id, stream_id,
        correlation_id, coalesce(graph_node_id, 0) > 0 AS in_graph,
        concat_ws('×', grid_x, nullif(grid_y * grid_z, 1), nullif(grid_z, 1)) AS grid,
        concat_ws('×', block_x, nullif(block_y * block_z, 1), nullif(block_z, 1)) AS block,
        grid_y
    FROM kernel_events
    WHERE process_id = $process AND start_ns >= least($host_from, $from)
    UNION ALL BY NAME
    SELECT
        kind, label, start_ns, greatest(start_ns, end_ns) AS end_ns, device_id, stream_id, correlation_id,
        false AS in_graph, size_bytes::VARCHAR AS grid
    FROM gpu_ops
    WHERE kind <> 'kernel' AND process_id = $process AND start_ns >= least($host_from, $from)
),
placed AS (
    SELECT o.*, c.call_ns, c.returned_ns, c.thread_id, s.step, s.host_start_ns
    FROM operations AS o
    JOIN calls AS c USING (correlation_id)
    ASOF JOIN fusion_steps AS s ON s.host_start_ns <= c.call_ns
    WHERE c.call_ns < s.host_end_ns
    UNION ALL BY NAME
    SELECT o.*, s.step, s.host_start_ns
    FROM (
        FROM operations AS o ANTI JOIN (
            SELECT correlation_id FROM api_calls WHERE process_id = $process AND call_group IN ('launch', 'graph launch', 'copy', 'memset')
        ) USING (correlation_id)
    ) AS o
    ASOF JOIN fusion_steps AS s ON s.start_ns <= o.start_ns
    WHERE o.start_ns < s.end_ns
)
SELECT
    *,
    hash(kind, name_id, label) AS token,
    row_number() OVER (PARTITION BY step, device_id, stream_id ORDER BY start_ns, end_ns, correlation_id, name_id) AS place
FROM placed
