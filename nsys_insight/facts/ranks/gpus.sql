-- The GPUs that a trace lists: the visible GPUs of its host.
SELECT id AS gpu_id, any_value(name ORDER BY name) AS name, any_value(uuid ORDER BY uuid) AS uuid
FROM raw.TARGET_INFO_GPU
WHERE id IS NOT NULL
GROUP BY id
