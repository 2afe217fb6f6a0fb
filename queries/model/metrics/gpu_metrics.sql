/*
description = "Sampled hardware counters; only with --gpu-metrics-devices."
[columns]
start_ns = "When the sample was taken"
name = "The metric, with its unit in brackets"
value = "The sampled value"
gpu_id = "The machine's GPU, as in `gpus`"
*/
SELECT
    g.timestamp AS start_ns,
    n.metricName AS name,
    g.value,
    g.typeId & 255 AS gpu_id
FROM raw.GPU_METRICS AS g
-- No metric is negative. The first sample of a GPU may hold garbage in all of its metrics.
ANTI JOIN (FROM raw.GPU_METRICS WHERE value < 0) AS garbage
    ON garbage.typeId = g.typeId AND garbage.timestamp = g.timestamp
LEFT JOIN raw.TARGET_INFO_GPU_METRICS AS n ON n.typeId = g.typeId AND n.metricId = g.metricId;
