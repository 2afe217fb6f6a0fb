/*
title = "Pad or swizzle rows of shared memory"
effort = "low"
rules = ["bank-conflicts"]
gain = "The shared memory passes due to conflicts go away, until the next unit is busy all the time."
*/
SELECT
    launch,
    stall_shared_pct * conflicts_pct / 100 AS waiting_pct,
    least(
        conflicts_pct,
        100 - greatest(l1_passes_pct * (1 - conflicts_pct / 100), l2_pct, dram_pct, compute_pct, issue_pct)
    ) AS max_pct,
    0 AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
