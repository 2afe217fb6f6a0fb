/*
title = "Shared memory is the bottleneck"
severity = "warning"
evidence = ["l1_passes_pct", "fma_per_shared_pass_ratio", "stall_shared_pct"]

[actions]
native = """
Use a value of shared memory several times from a register: compute 4 x 4 or 8 x 8 results per thread, and load four
at a time."""
cute = "A larger tile per thread: more values in registers for each load from shared memory."

[params]
above = [60.0, "Passes of the data stage of L1 and shared memory above which they bound a kernel, in % of the peak"]
fma = [2.0, """Multiply-adds of a warp per pass of shared memory below which values are hardly reused: 4 x 4 results per
    thread have 2, 8 x 8 have 4"""]
waiting = [20.0, "Share of a warp's time in which it waits for shared memory or its queue, in %"]
*/
SELECT launch, l1_passes_pct, fma_per_shared_pass_ratio, stall_shared_pct
FROM ncu_kernels
WHERE l1_passes_pct > $above AND fma_per_shared_pass_ratio BETWEEN 0.1 AND $fma AND stall_shared_pct >= $waiting
ORDER BY launch
