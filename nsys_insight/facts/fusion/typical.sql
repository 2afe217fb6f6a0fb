-- The operations of the typical step with mean times, relative to the start of the step on the host. Differences of
-- means are means of differences, so the times between two operations add up. Kernels of one stream overlap where they
-- are launched ahead of the end of the one before (programmatic dependent launch): the overlap is a wait, no work, so
-- an operation starts when those before it on its stream have ended.
SELECT
    o.device_id AS device, o.stream_id AS stream, o.position, any_value(o.token) AS token, any_value(o.kind) AS kind,
    any_value(o.name_id) AS name_id, min(o.thread_id) AS thread, min(o.nvtx_range) AS nvtx_range,
    any_value(o.label) AS label,
    min(o.grid) AS grid, min(o.block) AS block,
    max(o.grid_y) AS grid_y, bool_or(o.is_in_graph) AS is_in_graph,
    arg_min(o.correlation_id, o.step) AS correlation, arg_min(o.start_ns, o.step) AS first_ns,
    avg(o.call_ns - o.host_start_ns) AS call_ns, avg(o.returned_ns - o.host_start_ns) AS returned_ns,
    avg(o.free_ns - o.host_start_ns) AS start_ns, avg(o.end_ns - o.host_start_ns) AS end_ns
FROM (
    SELECT
        *,
        greatest(start_ns, least(end_ns, coalesce(max(end_ns) OVER (
            PARTITION BY step, device_id, stream_id ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), start_ns))) AS free_ns
    FROM internal.fusion_operations
) AS o
WHERE o.step IN (SELECT unnest(steps) FROM internal.fusion_sequences)
GROUP BY o.device_id, o.stream_id, o.position
ORDER BY o.device_id, o.stream_id, o.position
