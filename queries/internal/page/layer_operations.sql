-- The operations on the candidates' stream, from the first occurrence of a candidate on.
SELECT
    o.kind, o.name_id, coalesce(n.family, o.label, o.kind) AS family, coalesce(n.name, o.label, '(no name)') AS name,
    o.start_ns, greatest(o.start_ns, o.end_ns) AS end_ns
FROM gpu_ops AS o
LEFT JOIN kernel_names AS n USING (name_id)
WHERE o.process_id = $process AND o.device_id = $device AND o.stream_id = $stream AND o.start_ns >= $from_ns
ORDER BY o.start_ns, end_ns, o.correlation_id, o.name_id
LIMIT $max_rows
