/*
title = "Multiply on the tensor cores"
effort = "high"
rules = ["tensor-idle", "tensor-idle-half", "compute-ffma", "cutlass-simt", "cutlass-tensorop-idle"]
gain = """
Arithmetic gets faster by the ratio of the rates of tensor cores and of ordinary arithmetic; nothing is saved where
arithmetic does not take the time. fp32 becomes TF32, with 10 bits of mantissa."""
*/
SELECT
    launch,
    0 AS waiting_pct,
    100 - greatest(compute_pct / tensor_speedup, l2_pct, dram_pct) AS max_pct,
    0 AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
WHERE compute_pct >= 40 AND tensor_speedup > 1
