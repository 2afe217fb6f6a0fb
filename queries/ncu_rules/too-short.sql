/*
title = "Kernel too short to fill the GPU"
severity = "warning"
evidence = ["duration_ns", "sm_pct", "memory_pct"]

[actions]
native = "Fuse it with its neighbors, or batch: at this duration, launching and draining take most of the time."
triton = "Fuse it with its neighbors, or batch."
cute = "Fuse it with its neighbors, or batch."
pytorch = """
Fuse the element-wise neighbors (torch.compile, or one hand-written kernel): each saves a launch and a round trip of
the tensor."""
inductor = "Let more be fused into one kernel, or use CUDA graphs (mode='reduce-overhead')."

[params]
below_ns = [10000, "Duration below which launching and draining take most of it"]
busy = [40.0, "Throughput, in %, below which neither the SM nor memory is busy: common practice"]
*/
SELECT launch, duration_ns, sm_pct, memory_pct
FROM ncu_kernels
WHERE sm_pct < $busy AND memory_pct < $busy AND duration_ns < $below_ns
ORDER BY launch
