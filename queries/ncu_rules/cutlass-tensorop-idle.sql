/*
title = "A tensorop kernel that hardly uses the tensor cores"
severity = "warning"
evidence = ["tensor_pct", "name_math", "name_alignment", "waves_per_sm_ratio"]

[actions]
cutlass = "Check the alignment of the leading dimensions first, then whether the problem is too small for the tile."

[params]
below = [5.0, "Tensor pipe below which it is idle, in %: common practice"]
*/
SELECT launch, tensor_pct, name_math, name_alignment, waves_per_sm_ratio
FROM ncu_kernels
WHERE name_math = 'tensorop' AND tensor_pct < $below
ORDER BY launch
