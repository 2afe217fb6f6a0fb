/*
description = "How much CPU time a sample stands for; no row where there are too few samples."
[columns]
period_ns = "Sampling period as recorded, else the lower quartile of the time between two samples of a thread"
samples = "Samples of the trace"
*/
-- nsys samples a thread each time that it has used a fixed amount of CPU time or cycles. With the kernel's clock, the
-- period is in ns and is recorded. With cycles, it is estimated from the time between samples of a thread: a quarter of
-- them follow each other immediately, unless the thread hardly computes.
WITH recorded_period AS (
    SELECT max(value) FILTER (name = 'LINUX_PERF_OPTIONS:SAMPLING_PERIOD')::DOUBLE AS period_ns
    FROM raw.META_DATA_CAPTURE
    WHERE name IN ('LINUX_PERF_OPTIONS:SAMPLING_PERIOD', 'LINUX_PERF_OPTIONS:CPU_IP_TRIGGER_TYPE')
    HAVING count(*) FILTER (value = 'Software') = 1
)
SELECT
    coalesce((SELECT period_ns FROM recorded_period), quantile_cont(start_ns - last_ns, 0.25)) AS period_ns,
    (count(*) + count(DISTINCT thread))::BIGINT AS samples
FROM (
    SELECT start AS start_ns, globalTid AS thread, lag(start) OVER (PARTITION BY globalTid ORDER BY start) AS last_ns
    FROM unscoped.COMPOSITE_EVENTS
)
WHERE start_ns > last_ns
HAVING count(*) >= 3;
