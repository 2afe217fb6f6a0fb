/*
title = "fp16 arithmetic runs on the FMA pipe"
severity = "warning"
evidence = ["fma_half_pct", "tensor_pct"]

[actions]
native = "Move the products to tensor cores: 16-bit mma has many times the rate of HFMA2."
triton = "Write the product as tl.dot with 16-bit operands."
cute = "Use an MMA atom for 16-bit operands."
cutlass = "Use a tensorop kernel instead of SIMT."

[params]
above = [10.0, "fp16 on the FMA pipe from which it matters, in %: common practice"]
below = [5.0, "Tensor pipe below which it is idle, in %: common practice"]
*/
SELECT launch, fma_half_pct, tensor_pct
FROM ncu_kernels
WHERE fma_half_pct > $above AND tensor_pct < $below
ORDER BY launch
