-- The operations of the typical step with mean times, relative to the start of the step on the host. Differences of
-- means are means of differences, so the times between two operations add up.
SELECT
    device_id AS device, stream_id AS stream, position, any_value(token) AS token, any_value(kind) AS kind,
    any_value(name_id) AS name_id, min(thread_id) AS thread, min(nvtx_range) AS nvtx_range, any_value(label) AS label,
    min(grid) AS grid, min(block) AS block,
    max(grid_y) AS grid_y, bool_or(is_in_graph) AS is_in_graph,
    arg_min(correlation_id, step) AS correlation, arg_min(start_ns, step) AS first_ns,
    avg(call_ns - host_start_ns) AS call_ns, avg(returned_ns - host_start_ns) AS returned_ns,
    avg(free_ns - host_start_ns) AS start_ns, avg(end_ns - host_start_ns) AS end_ns
FROM internal.fusion_operations
WHERE step IN (SELECT unnest(steps) FROM internal.fusion_sequences)
GROUP BY device_id, stream_id, position
ORDER BY device_id, stream_id, position
