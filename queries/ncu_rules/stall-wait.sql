/*
title = "Warps wait for fixed latencies, not for memory"
severity = "info"
evidence = ["stall_wait_pct", "stall_long_scoreboard_pct"]

[actions]
native = """
Memory is hidden well enough: one stage fewer frees registers and shared memory for more warps."""
cutlass = """
Memory is hidden well enough: take one stage fewer."""
triton = """
Memory is hidden well enough: lower num_stages by one."""
cute = """
Give a thread more elements, or take fewer stages."""

[ncu_rules]
CPIStall = "fixed latency"

[params.above]
default = 30.0
help = "Share of warp time from which it matters, in %: common practice"

[params.scoreboard]
default = 15.0
help = "Share of waiting for memory below which memory is hidden, in %: common practice"
*/
SELECT launch, stall_wait_pct, stall_long_scoreboard_pct
FROM ncu_kernels
WHERE stall_wait_pct > $above AND stall_long_scoreboard_pct < $scoreboard
ORDER BY launch
