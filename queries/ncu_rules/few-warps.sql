/*
title = "Few warps per program and an idle SM"
severity = "warning"
evidence = ["sm_pct", "warps_per_block_ratio", "active_warps_ratio"]

[actions]
triton = "Raise num_warps to 4 or 8."

[params]
below = [30.0, "SM throughput, in %: common practice"]
warps = [4, "Warps per program below which they are few"]
*/
SELECT launch, sm_pct, warps_per_block_ratio, active_warps_ratio
FROM ncu_kernels
WHERE sm_pct < $below AND warps_per_block_ratio < $warps
ORDER BY launch
