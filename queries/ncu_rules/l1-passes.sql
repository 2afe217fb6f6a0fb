/*
title = "Requests take many passes through L1 or shared memory"
severity = "warning"
evidence = ["l1_passes_pct", "l1_passes_per_request_ratio", "dram_pct"]

[actions]
native = """
Look for bank conflicts in shared memory and for accesses that are not coalesced (ncu --set full counts both): let \
neighboring threads access neighboring addresses, and pad or swizzle the rows of shared memory."""

[params]
above = [80.0, "Passes of the data stage of L1 and shared memory above which they bound a kernel, in % of the peak"]
passes = [4.0, """Passes per request of a warp, by their shares of the peaks, above which accesses conflict or are
    scattered (4: one of 16 bytes per thread takes 4)"""]
dram = [60.0, "DRAM throughput from which DRAM may be the bound, in %"]
*/
SELECT launch, l1_passes_pct, l1_passes_per_request_ratio, dram_pct
FROM ncu_kernels
WHERE l1_passes_pct > $above AND l1_passes_per_request_ratio > $passes AND dram_pct < $dram
ORDER BY launch
