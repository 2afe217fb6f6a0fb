/*
title = "Threads exchange more than they compute or move"
severity = "warning"
evidence = [
    "stall_exchange_pct", "fp32_pct", "tensor_pct", "fp64_pct", "dram_pct", "bank_conflicts_count",
    "shared_wavefronts_count",
]

[actions]
native = """
Give a thread more elements (a loop over the grid, 128 bits a load), so that fewer threads exchange; exchange within
a warp by __shfl_down_sync, and once per block through shared memory."""
cute = "More elements per thread, shuffles instead of shared memory within a warp."

[params]
above = [30.0, "Share of a warp's time in which it waits at barriers and for shared memory, in %"]
flop = [5.0,
    "Operations of fp32, tensor cores and the fp64 pipe, in % of the peak, below which a kernel does not compute"]
dram = [60.0, "DRAM throughput below which there is bandwidth left, in %"]
conflicts = [20.0, "Bank conflicts, in % of the passes of shared memory, below which they do not take the time"]
*/
SELECT
    launch, stall_exchange_pct, fp32_pct, tensor_pct, fp64_pct, dram_pct, bank_conflicts_count, shared_wavefronts_count
FROM ncu_kernels
WHERE stall_exchange_pct >= $above AND fp32_pct < $flop AND tensor_pct < $flop AND coalesce(fp64_pct, 0) < $flop
    AND dram_pct < $dram
    AND bank_conflicts_count <= shared_wavefronts_count * $conflicts / 100
ORDER BY launch
