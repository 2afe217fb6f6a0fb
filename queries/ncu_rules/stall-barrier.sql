/*
title = "Warps wait at barriers"
severity = "warning"
evidence = ["stall_barrier_pct", "threads_per_block"]

[actions]
native = """
Replace block-wide steps with warp primitives (__shfl_sync, __reduce_sync); fewer __syncthreads(), smaller blocks."""
cute = "Use fewer threads per CTA, replace the second sync by a shuffle, and merge the reductions."

[ncu_rules]
CPIStall = "barrier"

[params]
above = [25.0, "Share of warp time above which it matters, in %: common practice"]
*/
SELECT launch, stall_barrier_pct, threads_per_block
FROM ncu_kernels
WHERE stall_barrier_pct > $above
ORDER BY launch
