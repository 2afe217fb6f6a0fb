/*
title = "Warps wait for memory"
severity = "warning"
evidence = ["stall_long_scoreboard_pct", "dram_pct", "eligible_warps_ratio", "blocks_count", "sm_count", "request_kind"]

[actions]
native = """
Load ahead of use: cp.async with two buffers (sm_80 and newer), TMA (sm_90 and newer), or more independent loads per
thread."""
cutlass = "Use more stages: 3 to 5 on Ampere, 2 to 3 on Hopper."
triton = """
Raise num_stages (2, 3, 4 on Ampere; 2, 3 on Hopper, with block pointers for TMA). Narrow the autotune list to these."""
cute = "Copy 128 bits at a time, more elements per thread, CpAsync (sm_80 and newer) with two buffers."

[ncu_rules]
CPIStall = "L1TEX"

[params]
above = [30.0, "Share of warp time above which it matters, in %: common practice"]
ceiling = [80.0, "DRAM throughput above which waiting only means that memory is saturated, in %: common practice"]
*/
-- More loads in flight do not end the wait for an atomic operation, another block, the host, or a flag.
SELECT launch, stall_long_scoreboard_pct, dram_pct, eligible_warps_ratio, blocks_count, sm_count, request_kind
FROM ncu_kernels
WHERE stall_long_scoreboard_pct > $above AND dram_pct <= $ceiling AND blocks_count >= sm_count
    AND coalesce(request_kind, 'loads and stores') = 'loads and stores'
ORDER BY launch
