-- The steps and the phases between them, in order of time.
SELECT step, phase, is_outlier, reason, start_ns, end_ns, duration_ns, gpu_busy_ns
FROM steps
WHERE duration_ns > 0
ORDER BY start_ns, end_ns
