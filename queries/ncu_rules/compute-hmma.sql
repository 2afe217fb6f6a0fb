/*
title = "Bound by the tensor cores"
severity = "info"
evidence = ["bound", "tensor_half_pct", "fma_pct"]

[actions]
native = """
More reuse per tile: larger warp tiles, operands kept in registers. HMMA issues at the hardware's minimum already."""

[params.above]
default = 40.0
help = "Tensor pipe from which it is what bounds, in %"
*/
SELECT launch, bound, tensor_half_pct, fma_pct
FROM ncu_kernels
WHERE bound = 'compute' AND tensor_half_pct > $above AND tensor_half_pct >= coalesce(fma_pct, 0)
ORDER BY launch
