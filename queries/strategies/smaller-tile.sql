/*
title = "Use less shared memory per block, so that more blocks fit"
effort = "low"
rules = ["occupancy-shared", "shared-cliff", "cutlass-stages", "few-active-warps"]
gain = """
As many blocks as everything else allows share the waiting, until the next unit is busy all the time; nothing is
saved where other warps already hide it. Assumes one more block."""
*/
SELECT
    launch,
    0 AS waiting_pct,
    least(
        100 * (1 - blocks_per_sm / blocks_without_shared),
        100 - greatest(l1_passes_pct, l2_pct, dram_pct, compute_pct, issue_pct)
    ) AS max_pct,
    0 AS more_registers,
    next_shared_bytes - shared_bytes AS more_shared_bytes
FROM _ncu_roofs()
WHERE next_shared_bytes < shared_bytes
