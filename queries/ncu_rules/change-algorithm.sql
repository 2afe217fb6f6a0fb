/*
title = "Much arithmetic per load, and still memory-bound"
evidence = ["bound", "fma_per_load_ratio", "active_warps_ratio"]

[actions]
native = "Asynchronous copies would cost more than they hide: change the algorithm (implicit GEMM, split-Q)."

[params]
above = [20.0, "Multiply-adds per load above which cp.async hurts (5% on flash attention): common practice"]
warps = [8.0, "Active warps per SM that hide latency by themselves: common practice"]
*/
SELECT launch, bound, fma_per_load_ratio, active_warps_ratio
FROM ncu_kernels
WHERE bound = 'memory' AND fma_per_load_ratio > $above AND active_warps_ratio >= $warps
ORDER BY launch
