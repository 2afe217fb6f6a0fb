/*
title = "Too few warps to hide latency"
severity = "warning"
evidence = [
    "active_warps_ratio", "occupancy_limit", "registers_per_thread", "shared_per_block_bytes", "sm_pct", "memory_pct",
    "blocks_count", "sm_count",
]

[actions]
native = "Use less shared memory or fewer registers until at least 8 warps are on an SM."
triton = "Use fewer stages or a smaller BLOCK until at least 8 warps are on an SM."
cute = "Use less shared memory or fewer registers until at least 8 warps are on an SM."

[params]
warps = [8.0, "Active warps per SM that suffice: common practice"]
busy = [40.0, "Throughput, in %, below which neither the SM nor memory is busy: common practice"]
*/
SELECT
    launch, active_warps_ratio, occupancy_limit, registers_per_thread, shared_per_block_bytes, sm_pct, memory_pct,
    blocks_count, sm_count
FROM ncu_kernels
WHERE sm_pct < $busy AND memory_pct < $busy AND active_warps_ratio < $warps AND blocks_count >= sm_count
    AND list_has_any(string_split(occupancy_limit, ' and '), ['registers', 'shared memory'])
ORDER BY launch
