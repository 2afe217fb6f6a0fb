-- The GPU operations of a process in the sampled steps, numbered along each stream. An operation belongs to the step of
-- its launch call or, if the trace lacks the call, to the step in whose wall time it starts. `token` identifies the
-- operation without its shape. `nvtx_range` is the section of the step that launches it, such as forward or backward.
-- Kernels of one stream overlap where they are launched ahead of the end of the one before (programmatic dependent
-- launch): the overlap is a wait, no work, so an operation starts when the stream is free (`free_ns`).
CREATE OR REPLACE TABLE internal.fusion_operations AS
WITH calls AS MATERIALIZED (
    SELECT correlation_id, thread_id, start_ns AS call_ns, end_ns AS returned_ns
    FROM api_calls
    WHERE process_id = $process AND start_ns >= $host_from AND start_ns < $host_to
        AND call_group IN ('launch', 'graph launch', 'copy', 'memset')
),
-- The NVTX ranges within a step, without the operators of frameworks. Numbers in their names are replaced.
step_ranges AS (
    SELECT
        r.thread_id, r.start_ns, coalesce(r.end_ns, s.host_end_ns) AS end_ns,
        regexp_replace(r.name, '[0-9]+', '#', 'g') AS name
    FROM nvtx_ranges AS r
    ASOF JOIN internal.fusion_steps AS s ON s.host_start_ns <= r.start_ns
    WHERE r.process_id = $process AND r.start_ns < s.host_end_ns AND NOT is_operator_name(r.name)
        AND (r.start_ns > s.host_start_ns OR r.end_ns < s.host_end_ns)
),
-- The outermost of these ranges.
outer_ranges AS (
    SELECT * FROM step_ranges
    QUALIFY end_ns > coalesce(max(end_ns) OVER (
        PARTITION BY thread_id ORDER BY start_ns, end_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), start_ns)
),
-- Calls are joined with steps and ranges: they have fewer columns than operations, and a join by time sorts them.
calls_in_steps AS (
    SELECT c.*, s.step, s.host_start_ns, CASE WHEN c.call_ns < r.end_ns THEN r.name END AS nvtx_range
    FROM calls AS c
    ASOF JOIN internal.fusion_steps AS s ON s.host_start_ns <= c.call_ns
    ASOF LEFT JOIN outer_ranges AS r ON r.thread_id = c.thread_id AND r.start_ns <= c.call_ns
    WHERE c.call_ns < s.host_end_ns
),
-- The operations that the steps can launch, or that can lie in their wall time, with their calls in the steps.
operations AS MATERIALIZED (
    SELECT o.*, c.* EXCLUDE (correlation_id)
    FROM (
        SELECT
            'kernel' AS kind, name_id, NULL AS label, start_ns, end_ns, device_id, stream_id, correlation_id,
            graph_node_id, NULL AS size_bytes, grid_x, grid_y, grid_z, block_x, block_y, block_z
        FROM kernel_events
        WHERE process_id = $process AND start_ns >= least($host_from, $gpu_from)
            AND (start_ns < $gpu_to OR correlation_id <= (SELECT max(correlation_id) FROM calls))
        UNION ALL BY NAME
        SELECT kind, label, start_ns, end_ns, device_id, stream_id, correlation_id, size_bytes
        FROM gpu_ops
        WHERE kind <> 'kernel' AND process_id = $process AND start_ns >= least($host_from, $gpu_from)
            AND (start_ns < $gpu_to OR correlation_id <= (SELECT max(correlation_id) FROM calls))
    ) AS o
    LEFT JOIN calls_in_steps AS c USING (correlation_id)
),
-- The operations in the wall time of the steps that no call launched.
operations_without_call AS (
    SELECT o.* REPLACE (s.step AS step, s.host_start_ns AS host_start_ns)
    FROM (FROM operations WHERE step IS NULL AND start_ns >= $gpu_from AND start_ns < $gpu_to) AS o
    ASOF JOIN internal.fusion_steps AS s ON s.start_ns <= o.start_ns
    WHERE o.start_ns < s.end_ns AND coalesce(o.correlation_id, -1) NOT IN (
        SELECT correlation_id
        FROM api_calls
        WHERE process_id = $process AND call_group IN ('launch', 'graph launch', 'copy', 'memset')
            AND correlation_id IN (SELECT correlation_id FROM operations WHERE step IS NULL)
    )
)
SELECT
    step, host_start_ns, device_id, stream_id, kind, name_id, label, start_ns, greatest(start_ns, end_ns) AS end_ns,
    greatest(start_ns, least(end_ns, coalesce(max(end_ns) OVER (
        PARTITION BY step, device_id, stream_id ORDER BY start_ns, end_ns, correlation_id, name_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), start_ns))) AS free_ns,
    correlation_id, thread_id, nvtx_range, call_ns, returned_ns, grid_y, coalesce(graph_node_id, 0) > 0 AS is_in_graph,
    coalesce(
        nullif(concat_ws('×', grid_x, CASE WHEN grid_y * grid_z > 1 THEN grid_y END, nullif(grid_z, 1)), ''),
        size_bytes::VARCHAR
    ) AS grid,
    concat_ws('×', block_x, CASE WHEN block_y * block_z > 1 THEN block_y END, nullif(block_z, 1)) AS block,
    hash(kind, name_id, label) AS token,
    row_number() OVER (
        PARTITION BY step, device_id, stream_id ORDER BY start_ns, end_ns, correlation_id, name_id
    ) AS position
FROM (FROM operations WHERE step IS NOT NULL UNION ALL FROM operations_without_call)
