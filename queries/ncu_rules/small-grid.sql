/*
title = "The grid has fewer blocks than the GPU has SMs"
severity = "warning"
evidence = ["blocks_count", "sm_count", "sm_pct"]

[actions]
native = """
Use more blocks: split the work along another dimension, give each thread less, process several inputs in one launch."""
cutlass = """
Give each SM more work at once: a larger threadblock; where K is long, split-K or stream-K creates more blocks."""
triton = "Use more programs: a smaller BLOCK along the dimension of the grid, or split-K; or batch the calls."
cute = "Use more CTAs: fewer elements per CTA, or a second dimension of the grid."
pytorch = """
The tensor is too small to fill the GPU: batch it, or fuse the operation with its neighbors (torch.compile); a CUDA
graph saves the host its launches."""
inductor = """
The tensor is too small to fill the GPU: batch at the PyTorch level, let more be fused into one kernel, or use
mode='reduce-overhead' (CUDA graphs)."""

[ncu_rules]
LaunchConfiguration = ""
SOLBottleneck = "too small"

[params]
cutlass_below = [30.0,
    "SM throughput of CUTLASS kernels below which the small grid is the problem, in %: common practice"]
*/
SELECT launch, blocks_count, sm_count, sm_pct
FROM ncu_kernels
WHERE blocks_count < sm_count AND (implementation <> 'cutlass' OR sm_pct < $cutlass_below)
ORDER BY launch
