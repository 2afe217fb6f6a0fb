/*
title = "Compute several results per thread"
effort = "high"
rules = ["shared-passes"]
gain = """
Values of shared memory are used several times from registers: waiting for it goes away, until arithmetic or DRAM is
busy all the time. Assumes 8 x 8 results per thread."""
*/
SELECT
    launch,
    stall_shared_pct AS waiting_pct,
    100 - greatest(compute_pct, dram_pct) AS max_pct,
    64 AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
