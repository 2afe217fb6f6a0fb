-- GPU operations in time windows, in order of time. One row more than can be drawn shows that there are more.
WITH windows AS (
    SELECT unnest($starts)::BIGINT AS from_ns, unnest($ends)::BIGINT AS to_ns
)
SELECT
    o.process_id, o.device_id, o.stream_id, o.start_ns, greatest(o.start_ns, o.end_ns) AS end_ns, o.kind, o.name_id,
    coalesce(n.family, o.kind) AS family, coalesce(n.name, o.label, '(no name)') AS name, o.size_bytes, o.correlation_id
FROM gpu_ops AS o
JOIN windows AS w ON o.start_ns < w.to_ns AND o.end_ns > w.from_ns
LEFT JOIN kernel_names AS n USING (name_id)
-- Most events are in no window. This cheap filter drops them before the join.
WHERE o.start_ns < list_max($ends) AND o.end_ns > list_min($starts)
ORDER BY o.start_ns, end_ns, o.process_id, o.device_id, o.stream_id, name, w.from_ns
LIMIT $max_rows + 1
