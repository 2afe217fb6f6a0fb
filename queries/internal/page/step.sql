-- The step to draw: the steady step whose wall time is nearest to the median. Outliers are excluded.
WITH typical_steps AS (
    SELECT step, process_id, start_ns, end_ns, duration_ns
    FROM steps
    WHERE phase = 'steady' AND NOT is_outlier AND duration_ns > 0
)
SELECT step, process_id, start_ns, end_ns
FROM typical_steps
ORDER BY abs(duration_ns - (SELECT quantile_cont(duration_ns, 0.5) FROM typical_steps)), step
LIMIT 1
