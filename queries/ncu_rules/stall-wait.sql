/*
title = "Warps wait for fixed latencies, not for memory"
evidence = ["stall_wait_pct", "stall_long_scoreboard_pct"]

[actions]
native = "Memory latency is hidden well enough: one stage fewer frees registers and shared memory for more warps."
cutlass = "Memory latency is hidden well enough: use one stage fewer."
triton = "Memory latency is hidden well enough: lower num_stages by one."
cute = "Give each thread more elements, or use fewer stages."

[ncu_rules]
CPIStall = "fixed latency"

[params]
above = [30.0, "Share of warp time above which it matters, in %: common practice"]
scoreboard = [15.0, "Share of time waiting for memory below which memory latency is hidden, in %: common practice"]
*/
SELECT launch, stall_wait_pct, stall_long_scoreboard_pct
FROM ncu_kernels
WHERE stall_wait_pct > $above AND stall_long_scoreboard_pct < $scoreboard
ORDER BY launch
