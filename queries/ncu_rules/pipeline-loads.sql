/*
title = "Little arithmetic per load: asynchronous copies pay off"
evidence = ["bound", "fma_per_load_ratio", "shared_per_block_bytes", "shared_per_sm_bytes", "dram_pct"]

[actions]
native = "Pipeline with cp.async (sm_80 and newer); note that two buffers double the shared memory."

[params]
below = [5.0, "Multiply-adds per load below which cp.async pays (35% on an int8 GEMM): common practice"]
ceiling = [80.0, "DRAM throughput above which there is no latency left to hide, in %: common practice"]
*/
SELECT launch, bound, fma_per_load_ratio, shared_per_block_bytes, shared_per_sm_bytes, dram_pct
FROM ncu_kernels
WHERE bound = 'memory' AND fma_per_load_ratio BETWEEN 1 AND $below
    AND shared_per_block_bytes <= shared_per_sm_bytes / 2 AND dram_pct <= $ceiling
ORDER BY launch
