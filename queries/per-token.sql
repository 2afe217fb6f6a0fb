/*
title = "Cost per token or step"
aliases = ["per-step"]
description = """
Divides what happened in scope by the number of tokens (training steps, frames): --tokens, or one per range under --nvtx.
wall_ns is the scope's own time: the ranges of --nvtx, the window of --from and --to, else from the first to the last CUDA
event. gpu_busy_ns is the part of it in which a GPU worked on what is in scope (the union of kernels, copies, memsets and
whole graphs, the mean over the GPUs that were used), gpu_idle_ns the rest. launch_calls are the calls that put kernels on
the GPU, graph launches among them: one graph launch runs many kernels. Calls inside other calls are not counted, nor
their time added to api_ns."""
reading = """
gpu_idle_ns is what can be won without making a kernel faster: see gaps and syncs. Hundreds of launch calls per token at
a kernel_avg_ns of a few microseconds are launch-bound: use a CUDA graph (torch.compile mode reduce-overhead) or fuse.
Allocations per token should be 0: see mallocs. More than one sync call or D2H copy per token: the host reads back more
than the sampled token, see syncs."""
empty = "No CUDA events in this scope; if the program did use the GPU, capture with: nsys profile -t cuda"

[params.tokens]
type = "integer"
required_without = "nvtx"
help = "tokens (or steps) that the trace or scope holds"

[columns]
metric = "What was counted or measured"
total = "In the whole scope; NULL for a mean"
per_token = "total / tokens; for kernel_avg_ns the mean itself"
wall_pct = "Share of the wall, for times: kernels that overlap, and calls of several threads, may add up to more than 100 %"

[notes]
tokens = """
SELECT 'one token per range: ' || range_count || ' ranges match ' || nvtx FROM scope WHERE $tokens IS NULL"""
whole = """
SELECT 'the whole trace is divided, with its warm-up and prefill; narrow it with --nvtx RANGE or --from and --to'
FROM scope WHERE nvtx IS NULL AND from_ns IS NULL AND to_ns IS NULL"""
outside = """
SELECT 'x'"""
*/
SELECT 1
