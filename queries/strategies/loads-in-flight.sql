/*
title = "Keep several independent loads per thread under way"
effort = "low"
rules = ["stall-long-scoreboard"]
gain = """
Waiting for memory goes, until DRAM, L2 or the SM is busy all the time. Four values of 32 bits are taken as needed."""
*/
SELECT
    launch,
    stall_memory_pct AS waiting_pct,
    100 - greatest(l1_passes_pct, l2_pct, dram_pct, compute_pct, issue_pct) AS most_pct,
    4 AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
