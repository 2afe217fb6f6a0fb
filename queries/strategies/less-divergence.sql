/*
title = "Keep the threads of a warp together"
effort = "medium"
rules = ["divergence"]
gain = "Instructions are executed by all lanes."
*/
SELECT
    launch,
    0 AS waiting_pct,
    least(divergence_pct, 100 - greatest(l1_passes_pct, l2_pct, dram_pct, compute_pct)) AS max_pct,
    0 AS more_registers,
    0 AS more_shared_bytes
FROM _ncu_roofs()
