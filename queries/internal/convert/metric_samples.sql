-- The samples of GPU metrics, for counters.
SELECT gpu_id, name, start_ns, value FROM gpu_metrics ORDER BY gpu_id, name, start_ns
