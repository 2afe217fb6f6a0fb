/*
title = "Bound by fp32 multiply-adds"
evidence = ["bound", "fma_pct", "tensor_pct"]

[actions]
native = """
Look at the stall codes in the SASS: independent FFMA S04 can be S01; TF32 on tensor cores has eight times the rate."""

[params]
above = [40.0, "FMA pipe utilization from which it bounds the kernel, in %"]
*/
SELECT launch, bound, fma_pct, tensor_pct
FROM ncu_kernels
WHERE bound = 'compute' AND fma_pct > $above AND fma_pct > coalesce(tensor_pct, 0)
ORDER BY launch
