/*
title = "Bound by the tensor cores"
evidence = ["bound", "tensor_half_pct", "fma_pct"]

[actions]
native = """
More reuse per tile: larger warp tiles, operands kept in registers. HMMA issues at the hardware's minimum already."""

[params]
above = [40.0, "Tensor pipe utilization from which it bounds the kernel, in %"]
*/
SELECT launch, bound, tensor_half_pct, fma_pct
FROM ncu_kernels
WHERE bound = 'compute' AND tensor_half_pct > $above AND tensor_half_pct >= coalesce(fma_pct, 0)
ORDER BY launch
