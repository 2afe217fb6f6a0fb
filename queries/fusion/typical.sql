-- The typical step: each operation with its mean times, counted from the beginning of the step on the host. Differences of
-- means are means of differences, so what lies between two operations adds up.
SELECT
    device_id, stream_id, place, any_value(token), any_value(kind), any_value(name_id), any_value(label), min(grid), min(block),
    count(DISTINCT (grid, block)), max(grid_y), bool_or(in_graph), arg_min(correlation_id, step), arg_min(start_ns, step),
    avg(call_ns - host_start_ns), avg(returned_ns - host_start_ns), avg(start_ns - host_start_ns), avg(end_ns - host_start_ns)
FROM fusion_operations
WHERE step IN (SELECT unnest(steps) FROM fusion_sequences)
GROUP BY device_id, stream_id, place
ORDER BY device_id, stream_id, place
