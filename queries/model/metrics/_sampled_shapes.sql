CREATE VIEW _sampled_shapes AS
SELECT
    k.shape_id, g.model_id,
    count(*) AS samples,
    avg(issue_pct) AS issue_pct, avg(tensor_pct) AS tensor_pct, avg(dram_pct) AS dram_pct,
    avg(sms_active_pct) AS sms_active_pct
FROM kernel_samples AS k
LEFT JOIN gpu_limits AS g USING (gpu_id)
GROUP BY ALL;

COMMENT ON VIEW _sampled_shapes IS 'What GPU metrics say about each launch shape, on each model of GPU.';
COMMENT ON COLUMN _sampled_shapes.shape_id IS 'As in `launch_shapes`';
COMMENT ON COLUMN _sampled_shapes.model_id IS 'The model of the GPU, as in `gpu_limits`';
COMMENT ON COLUMN _sampled_shapes.samples IS 'Number of samples';
COMMENT ON COLUMN _sampled_shapes.issue_pct IS 'Mean share of issue slots in use';
COMMENT ON COLUMN _sampled_shapes.tensor_pct IS 'Mean activity of tensor cores';
COMMENT ON COLUMN _sampled_shapes.dram_pct IS 'Mean DRAM bandwidth, share of the peak';
COMMENT ON COLUMN _sampled_shapes.sms_active_pct IS 'Mean share of SMs with work';
