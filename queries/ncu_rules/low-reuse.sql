/*
title = "Loaded data are reused too little"
severity = "warning"
evidence = ["fma_per_load_ratio", "reread_ratio", "stall_memory_pct"]

[actions]
native = """
Load a tile into shared memory once and let all threads of the block use it; then compute several results per thread
from registers."""
triton = "Load larger blocks and reuse them by tl.dot: BLOCK_M and BLOCK_N up."

[params]
below = [5.0, "Multiply-adds per global load below which a loop waits for its loads: common practice"]
reread = [4.0,
    "Bytes that loads take from L1 as a multiple of the bytes from DRAM; below this, there is little to reuse"]
waiting = [30.0, "Share of a warp's time in which it waits for global memory or its queue, in %"]
*/
SELECT launch, fma_per_load_ratio, reread_ratio, stall_memory_pct
FROM ncu_kernels
WHERE fma_per_load_ratio > 0.1 AND fma_per_load_ratio < $below AND reread_ratio >= $reread
    AND stall_memory_pct >= $waiting
ORDER BY launch
