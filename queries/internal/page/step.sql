-- The step to draw: of the steady ones that are like the others, the one whose wall is nearest to their median; without
-- steps, the whole of what is in scope.
WITH alike AS (
    SELECT step, process_id, start_ns, end_ns, duration_ns
    FROM steps
    WHERE phase = 'steady' AND NOT is_outlier AND duration_ns > 0
)
SELECT step, process_id, start_ns, end_ns
FROM alike
ORDER BY abs(duration_ns - (SELECT quantile_cont(duration_ns, 0.5) FROM alike)), step
LIMIT 1
