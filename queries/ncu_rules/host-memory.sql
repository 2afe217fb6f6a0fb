/*
title = "Loads read the memory of the host"
severity = "warning"
evidence = ["host_load_pct", "stall_long_scoreboard_pct", "dram_pct", "bound"]

[actions]
native = """
Copy the data to the GPU first (cudaMemcpyAsync; cudaMemPrefetchAsync for managed memory): the link to the host is
many times slower than DRAM. If each value is read once, it is the floor: overlap it with other work."""
triton = "Move the input to the GPU before the kernel: it is in pinned memory of the host."

[params]
above = [50.0, "Share of the sectors of global loads that come from the host, in %: most of them"]
waiting = [30.0, "Share of a warp's time spent waiting above which it matters, in %: as for other waits"]
*/
SELECT launch, host_load_pct, stall_long_scoreboard_pct, dram_pct, bound
FROM ncu_kernels
WHERE host_load_pct > $above AND stall_long_scoreboard_pct > $waiting
ORDER BY launch
