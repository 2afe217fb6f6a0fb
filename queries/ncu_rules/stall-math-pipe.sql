/*
title = "Warps wait for a saturated pipe"
evidence = ["stall_math_pipe_pct", "fma_pct", "alu_pct", "xu_pct", "tensor_pct"]

[actions]
native = """
The pipe is saturated: move the work to tensor cores, or do fewer operations (cheaper intrinsics, precomputed
values)."""

[ncu_rules]
CPIStall = "pipe"

[params]
above = [20.0, "Share of warp time above which it matters, in %: common practice"]
*/
SELECT launch, stall_math_pipe_pct, fma_pct, alu_pct, xu_pct, tensor_pct
FROM ncu_kernels
WHERE stall_math_pipe_pct > $above
ORDER BY launch
