-- The typical step: each operation with its mean times, counted from the beginning of the step on the host. Differences
-- of means are means of differences, so what lies between two operations adds up.
SELECT
    o.device_id AS device, o.stream_id AS stream, o.place, any_value(o.token) AS token, any_value(o.kind) AS kind,
    any_value(o.name_id) AS name_id, min(o.thread_id) AS thread, min(o.part) AS part, any_value(o.label) AS label,
    min(o.grid) AS grid, min(o.block) AS block,
    count(DISTINCT (o.grid, o.block)) AS shapes, max(o.grid_y) AS grid_y, bool_or(o.in_graph) AS in_graph,
    arg_min(o.correlation_id, o.step) AS correlation, arg_min(o.start_ns, o.step) AS first_ns,
    avg(o.call_ns - o.host_start_ns) AS call_ns, avg(o.returned_ns - o.host_start_ns) AS returned_ns,
    avg(o.start_ns - o.host_start_ns) AS start_ns, avg(o.end_ns - o.host_start_ns) AS end_ns
FROM internal.fusion_operations AS o
WHERE o.step IN (SELECT unnest(steps) FROM internal.fusion_sequences)
GROUP BY o.device_id, o.stream_id, o.place
ORDER BY o.device_id, o.stream_id, o.place
