/*
title = "Load and store 128 bits at a time"
effort = "low"
rules = ["scalar-loads"]
gain = """
A quarter of the loads and stores moves the same bytes: at most the waiting for memory goes away, and only until
DRAM or L2 is busy all the time."""
*/
SELECT
    launch,
    0 AS waiting_pct,
    least(stall_memory_pct, 100 - greatest(l1_passes_pct, l2_pct, dram_pct, compute_pct, issue_pct / 4)) AS max_pct,
    3 AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
