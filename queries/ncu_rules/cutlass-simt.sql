/*
title = "SIMT where a tensorop kernel would fit"
severity = "warning"
evidence = ["name_math", "tensor_pct", "fma_pct"]

[actions]
cutlass = "Use the tensorop kernel for the same problem (TF32 for fp32 data): 2 to 8 times as fast."
*/
SELECT launch, name_math, tensor_pct, fma_pct
FROM ncu_kernels
WHERE name_math = 'simt'
ORDER BY launch
