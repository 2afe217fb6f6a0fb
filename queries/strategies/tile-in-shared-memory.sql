/*
title = "Load a tile once into shared memory, and use it often"
effort = "medium"
rules = ["low-reuse"]
gain = """
Waiting for global memory goes away, until arithmetic or DRAM is busy all the time. Assumes two tiles of 32 x 32
floats."""
*/
SELECT
    launch,
    stall_memory_pct AS waiting_pct,
    100 - greatest(compute_pct, dram_pct) AS max_pct,
    0 AS more_registers,
    8192 AS more_shared_bytes
FROM _ncu_roofs()
