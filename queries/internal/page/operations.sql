-- What runs on the GPUs in a window, the first ones first; one more than can be drawn tells that there are more.
SELECT
    o.process_id, o.device_id, o.stream_id, o.start_ns, greatest(o.start_ns, o.end_ns) AS end_ns, o.kind,
    coalesce(n.family, o.kind) AS family, coalesce(n.name, o.label, '(no name)') AS name, o.size_bytes
FROM gpu_ops AS o
LEFT JOIN kernel_names AS n USING (name_id)
WHERE o.start_ns < $to_ns AND o.end_ns > $from_ns
ORDER BY o.start_ns, end_ns, o.process_id, o.device_id, o.stream_id, name
LIMIT $most + 1
