/*
description = "What GPU metrics say about each launch shape, on each model of GPU."
stored = true
needs = "raw.GPU_METRICS"
[columns]
shape_id = "Number of the launch shape, as in `launch_shapes`"
model_id = "The model of the GPU, as in `gpu_limits`"
samples = "Number of samples"
issue_pct = "Mean share of issue slots in use"
tensor_pct = "Mean activity of tensor cores"
dram_pct = "Mean DRAM bandwidth, share of the peak"
sms_active_pct = "Mean share of SMs with work"
*/
SELECT
    k.shape_id, g.model_id,
    count(*) AS samples,
    avg(issue_pct) AS issue_pct, avg(tensor_pct) AS tensor_pct, avg(dram_pct) AS dram_pct,
    avg(sms_active_pct) AS sms_active_pct
FROM kernel_samples AS k
LEFT JOIN gpu_limits AS g USING (gpu_id)
GROUP BY ALL;
