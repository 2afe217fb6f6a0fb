-- The clock at which the SMs ran under ncu, the median of the launches, and the highest clock of the GPU.
SELECT median(value) FILTER (metric = 'smsp__cycles_elapsed.avg.per_second') AS clock_hz,
    1000 * max(value) FILTER (metric = 'device__attribute_clock_rate') AS most_hz
FROM ncu_metrics
HAVING clock_hz > 0 AND most_hz > 0
