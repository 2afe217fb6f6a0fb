/*
title = "Shorten the stall codes of multiply-adds"
effort = "high"
rules = ["compute-ffma", "compute-imma"]
gain = """
Independent multiply-adds issue each cycle, until the pipe computes all the time. nsys-insight sass shows the codes."""
*/
SELECT
    launch,
    0 AS waiting_pct,
    100 - greatest(compute_pct, l1_passes_pct, l2_pct, dram_pct) AS max_pct,
    0 AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
WHERE compute_pct IS NOT NULL
