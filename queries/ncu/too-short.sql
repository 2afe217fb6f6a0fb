/*
title = "The kernel is over before the GPU is busy"
severity = "WARNING"
evidence = ["duration_ns", "bound", "sm_pct", "memory_pct"]

[actions]
native = """
Fuse it with its neighbours, or batch: at this length launching and draining are most of the time."""
triton = """
Fuse it with its neighbours, or batch."""
cute = """
Fuse it with its neighbours, or batch."""
pytorch = """
Fuse the element-wise neighbours (torch.compile, or one hand-written kernel): each saves a launch and a round trip of the tensor."""
inductor = """
Let more be fused into one kernel, or use CUDA graphs (mode='reduce-overhead')."""

[params.below_ns]
default = 10000
help = "Duration below which launch and drain are most of it"
*/
SELECT launch, duration_ns, bound, sm_pct, memory_pct
FROM ncu_kernels
WHERE bound = 'latency' AND duration_ns < $below_ns
ORDER BY launch
