/*
title = "SIMT where a tensorop kernel would fit"
severity = "warning"
evidence = ["name_math", "tensor_pct", "fma_pct"]

[actions]
cutlass = """
Take the tensorop kernel of the same problem (TF32 for fp32 data): 2 to 8 times quicker."""
*/
SELECT launch, name_math, tensor_pct, fma_pct
FROM ncu_kernels
WHERE name_math = 'simt'
ORDER BY launch
