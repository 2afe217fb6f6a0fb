-- The operations of the typical step with mean times, relative to the start of the step on the host. Differences of
-- means are means of differences, so the times between two operations add up.
SELECT
    o.device_id AS device, o.stream_id AS stream, o.position, any_value(o.token) AS token, any_value(o.kind) AS kind,
    any_value(o.name_id) AS name_id, min(o.thread_id) AS thread, min(o.nvtx_range) AS nvtx_range,
    any_value(o.label) AS label,
    min(o.grid) AS grid, min(o.block) AS block,
    max(o.grid_y) AS grid_y, bool_or(o.is_in_graph) AS is_in_graph,
    arg_min(o.correlation_id, o.step) AS correlation, arg_min(o.start_ns, o.step) AS first_ns,
    avg(o.call_ns - o.host_start_ns) AS call_ns, avg(o.returned_ns - o.host_start_ns) AS returned_ns,
    avg(o.start_ns - o.host_start_ns) AS start_ns, avg(o.end_ns - o.host_start_ns) AS end_ns
FROM internal.fusion_operations AS o
WHERE o.step IN (SELECT unnest(steps) FROM internal.fusion_sequences)
GROUP BY o.device_id, o.stream_id, o.position
ORDER BY o.device_id, o.stream_id, o.position
