/*
title = "DRAM is near its ceiling"
evidence = ["dram_pct", "dram_bytes_per_s", "sm_pct"]

[actions]
native = """
Only less data helps: a narrower type, compressed weights, fusion with the kernel that writes or reads the same data."""
cutlass = "Only less data helps: a narrower type, or an epilogue that includes the next operation."
triton = "Only less data or more reuse helps: a larger BLOCK_K, a narrower type, fusion with the neighbors."
cute = "Only less data helps: a narrower type, fusion with the neighbors."
pytorch = """
The kernel is at the memory limit: fuse it with its neighbors (torch.compile) so that the tensor is not read and
written again, or use a narrower type."""
inductor = "The kernel is at the memory limit: fuse more into it, or use a narrower type."

[params]
above = [80.0, "DRAM throughput near the ceiling, in %: common practice (optimization stops at 85)"]
*/
SELECT launch, dram_pct, dram_bytes_per_s, sm_pct
FROM ncu_kernels
WHERE dram_pct > $above
ORDER BY launch
