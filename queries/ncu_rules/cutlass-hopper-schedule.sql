/*
title = "The kernel waits for memory and is not scheduled cooperatively"
severity = "warning"
evidence = ["stall_long_scoreboard_pct", "compute_major", "name_schedule"]

[actions]
cutlass = "Use KernelTmaWarpSpecializedCooperative: a producer warp loads while two consumer groups share a tile."

[ncu_rules]
CPIStall = "L1TEX"

[params]
above = [30.0, "Share of warp time above which it matters, in %: common practice"]
*/
SELECT launch, stall_long_scoreboard_pct, compute_major, name_schedule
FROM ncu_kernels
WHERE stall_long_scoreboard_pct > $above AND compute_major >= 9 AND name_schedule IS DISTINCT FROM 'cooperative'
ORDER BY launch
