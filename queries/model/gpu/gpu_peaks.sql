/*
description = "Peak operations per second of each GPU and precision."
columns_of = "gpus"
[columns]
gpu = "Product name"
precision = "fp64, fp32: ordinary arithmetic; fp64_tensor, tf32, fp16 (bf16 too), fp8, fp4, int8: tensor cores"
flop_per_cycle = "Operations per SM and cycle, a multiply-add as two, dense: from the catalog"
memory_bytes_per_s = "Peak bandwidth of the device's memory"
tflop_per_s = "Peak, in 10^12 operations per second"
balance_ratio = "Operations per byte at which both peaks are reached"
*/
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
