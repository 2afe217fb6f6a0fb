CREATE VIEW gpu_peaks AS
SELECT
    g.gpu_id,
    g.name AS gpu,
    g.compute_capability,
    p.precision,
    p.flops_per_cycle::BIGINT AS flop_per_cycle,
    g.sm_count,
    g.clock_hz,
    g.memory_bytes_per_s::DOUBLE AS memory_bytes_per_s,
    g.sm_count * g.clock_hz * p.flops_per_cycle / 1e12 AS tflop_per_s,
    g.sm_count * g.clock_hz * p.flops_per_cycle / nullif(g.memory_bytes_per_s, 0) AS balance_ratio
FROM (SELECT DISTINCT ON (gpu_id) * FROM gpus ORDER BY gpu_id, name, sm_count) AS g
JOIN peak_rates() AS p USING (compute_capability);

COMMENT ON VIEW gpu_peaks IS 'Peak operations per second of each GPU and precision.';
COMMENT ON COLUMN gpu_peaks.gpu_id IS 'The machine''s number of the GPU';
COMMENT ON COLUMN gpu_peaks.gpu IS 'Product name';
COMMENT ON COLUMN gpu_peaks.compute_capability IS 'Compute capability, major.minor';
COMMENT ON COLUMN gpu_peaks.precision IS
    'fp64, fp32: ordinary arithmetic; fp64_tensor, tf32, fp16 (bf16 too), fp8, fp4, int8: tensor cores';
COMMENT ON COLUMN gpu_peaks.flop_per_cycle IS
    'Operations per SM and cycle, a multiply-add as two, dense: from the catalog';
COMMENT ON COLUMN gpu_peaks.sm_count IS 'Streaming multiprocessors';
COMMENT ON COLUMN gpu_peaks.clock_hz IS 'Maximum SM clock';
COMMENT ON COLUMN gpu_peaks.memory_bytes_per_s IS 'Peak bandwidth of the device''s memory';
COMMENT ON COLUMN gpu_peaks.tflop_per_s IS 'Peak, in 10^12 operations per second';
COMMENT ON COLUMN gpu_peaks.balance_ratio IS 'Operations per byte at which both peaks are reached';
