CREATE VIEW gpu_metrics AS
SELECT
    g.timestamp AS start_ns,
    n.metricName AS name,
    g.value,
    g.typeId & 255 AS gpu_id
FROM raw.GPU_METRICS AS g
LEFT JOIN raw.TARGET_INFO_GPU_METRICS AS n ON n.typeId = g.typeId AND n.metricId = g.metricId;

COMMENT ON VIEW gpu_metrics IS 'Sampled hardware counters; only with --gpu-metrics-devices.';
COMMENT ON COLUMN gpu_metrics.start_ns IS 'When the sample was taken';
COMMENT ON COLUMN gpu_metrics.name IS 'The metric, with its unit in brackets';
COMMENT ON COLUMN gpu_metrics.value IS 'The sampled value';
COMMENT ON COLUMN gpu_metrics.gpu_id IS 'The machine''s GPU, as in `gpus`';
