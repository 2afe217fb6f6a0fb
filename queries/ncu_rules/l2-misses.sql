/*
title = "L2 misses go to DRAM"
severity = "warning"
evidence = ["l2_hit_pct", "dram_pct", "bound"]

[actions]
native = """
Keep what is used again in L2: an access policy window with persistence (cudaAccessPropertyPersisting, sm_80 and
newer), block order that visits neighbors together. Data that are used once cannot hit: then less data is the only
way."""
cutlass = "Order the tiles for reuse: a threadblock swizzle, or stream-K."

[params]
below = [50.0, "L2 hits below which misses are frequent, in %: common practice"]
dram = [40.0, "DRAM throughput from which the misses matter, in %: common practice"]
*/
SELECT launch, l2_hit_pct, dram_pct, bound
FROM ncu_kernels
WHERE l2_hit_pct < $below AND dram_pct > $dram AND bound = 'memory' AND (implementation <> 'cutlass' OR family = 'gemm')
ORDER BY launch
