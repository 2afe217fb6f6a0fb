/*
title = "Full grid, idle SM"
severity = "warning"
evidence = ["sm_pct", "waves_per_sm_ratio", "bound"]

[actions]
triton = "Raise BLOCK_M and BLOCK_N: each program does too little."

[params]
below = [30.0, "SM throughput, in %: common practice"]
*/
SELECT launch, sm_pct, waves_per_sm_ratio, bound
FROM ncu_kernels
WHERE sm_pct < $below AND waves_per_sm_ratio >= 1 AND bound <> 'memory'
ORDER BY launch
