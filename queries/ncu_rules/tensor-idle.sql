/*
title = "A matrix product that does not use the tensor cores"
severity = "warning"
evidence = ["tensor_pct", "fma_pct", "blocks_count", "sm_count"]

[actions]
native = "Use mma (wmma, or CUTLASS / CuTe) for fp16 and bf16; TF32 for fp32 data."
triton = """
With tl.dot: allow_tf32 for fp32, BLOCK_K a multiple of 16, 16-bit operands. Without it: restructure the sum as
tl.dot."""
cute = "Use an MMA atom. (Reductions have no use for tensor cores.)"

[params]
below = [5.0, "Tensor pipe below which it is idle, in %: common practice"]
*/
SELECT launch, tensor_pct, fma_pct, blocks_count, sm_count
FROM ncu_kernels
WHERE family IN ('gemm', 'attention') AND tensor_pct < $below AND blocks_count >= sm_count
ORDER BY launch
