-- The sequences of the other steps along each stream, to tell whether what was found recurs in them.
SELECT step, device_id, stream_id, list(token ORDER BY place) AS tokens
FROM internal.fusion_operations
WHERE step NOT IN (SELECT unnest(steps) FROM internal.fusion_sequences)
GROUP BY step, device_id, stream_id
ORDER BY step, device_id, stream_id
