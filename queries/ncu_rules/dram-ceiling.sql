/*
title = "DRAM is near its ceiling"
severity = "info"
evidence = ["dram_pct", "dram_bytes_per_s", "sm_pct"]

[actions]
native = """
Only less data helps: a narrower type, compressed weights, fusion with the kernel that writes or reads the same data."""
cutlass = """
Only less data helps: a narrower type, or an epilogue that takes the next operation in."""
triton = """
Only less data or more reuse helps: a larger BLOCK_K, a narrower type, fusion with the neighbours."""
cute = """
Only less data helps: a narrower type, fusion with the neighbours."""
pytorch = """
The kernel does what the memory can: fuse it with its neighbours (torch.compile) so that the tensor is not read and
written again, or use a narrower type."""
inductor = """
The kernel does what the memory can: fuse more into it, or use a narrower type."""

[params.above]
default = 80.0
help = "DRAM throughput near the ceiling, in %: common practice (the loop stops at 85)"
*/
SELECT launch, dram_pct, dram_bytes_per_s, sm_pct
FROM ncu_kernels
WHERE dram_pct > $above
ORDER BY launch
