/*
title = "Warps wait for atomic operations"
severity = "warning"
evidence = ["atomic_pct", "stall_memory_pct", "stall_shared_pct", "l2_pct", "dram_pct"]

[actions]
native = """
Combine values before they meet in one address: within a warp (__reduce_add_sync), then within a block in shared memory,
and one atomicAdd per block; or give each block an address of its own, and add these up."""
triton = "Reduce within the program (tl.sum), and call tl.atomic_add once, or write partial results and add them up."

[params]
above = [50.0, "Share of atomic operations in the requests above which the waiting is theirs, in %: most of them"]
waiting = [30.0, "Share of a warp's time spent waiting above which it matters, in %: as for other waits"]
idle = [40.0, "L2 and DRAM throughput below which one address is the limit, not the number of operations, in %"]
*/
SELECT launch, atomic_pct, stall_memory_pct, stall_shared_pct, l2_pct, dram_pct
FROM ncu_kernels
WHERE atomic_pct > $above AND stall_memory_pct + stall_shared_pct > $waiting AND l2_pct < $idle AND dram_pct < $idle
ORDER BY launch
