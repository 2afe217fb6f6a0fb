/*
title = "A CUTLASS 2.x kernel on Hopper or newer"
severity = "warning"
evidence = ["name_arch", "compute_major", "sm_pct"]

[actions]
cutlass = "Build with CUTLASS 3.x for sm_90: warp-specialized with TMA, 1.2 to 1.5 times as fast."
*/
SELECT launch, name_arch, compute_major, sm_pct
FROM ncu_kernels
WHERE name_arch < 90 AND compute_major >= 9
ORDER BY launch
