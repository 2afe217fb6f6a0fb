-- The sequences of the steps that are not typical, by stream: they show whether a chain recurs in all steps.
SELECT step, device_id, stream_id, list(token ORDER BY position) AS tokens
FROM internal.fusion_operations
WHERE step NOT IN (SELECT unnest(steps) FROM internal.fusion_sequences)
GROUP BY step, device_id, stream_id
ORDER BY step, device_id, stream_id
