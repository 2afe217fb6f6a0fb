-- The steady steps, in order.
SELECT
    step, process_id, host_start_ns, start_ns, coalesce(is_outlier, false) AS is_outlier,
    coalesce(kernels, 0) + coalesce(launch_calls, 0) AS events
FROM steps
-- A range without operations has no time on the GPU.
WHERE phase = 'steady' AND start_ns IS NOT NULL
ORDER BY step
