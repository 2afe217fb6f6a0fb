/*
title = "Keep several independent loads per thread in flight"
effort = "low"
rules = ["stall-long-scoreboard"]
gain = "Waiting for memory goes away, until DRAM, L2 or the SM is busy all the time. Assumes four values of 32 bits."
*/
SELECT
    launch,
    stall_memory_pct AS waiting_pct,
    100 - greatest(l1_passes_pct, l2_pct, dram_pct, compute_pct, issue_pct) AS max_pct,
    4 AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
